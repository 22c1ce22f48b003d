package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// forgetProgram gives back the pages of the program's own file: now, as
// starting up has touched nearly all of them, and again each time that the heap
// was collected, as every stage of a run needs others. What is needed again
// comes back from the page cache.
func forgetProgram() {
	if pages := programPages(); len(pages) > 0 {
		pages.forget()
		pages.forgetOnceCollected()
	}
}

// mappings are the parts of the address space where a file is: from, to.
type mappings [][2]uintptr

// programPages are those of the program's file that are as the file has them:
// they cannot be written, and no linker has written to them (a program that may
// lie anywhere is relocated before it starts). Where anything is not as
// expected there are none.
func programPages() mappings {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer maps.Close()
	return readMappings(maps, self)
}

// readMappings finds the mappings of a file in the format of proc_pid_smaps(5):
// a line for each, and below it what is known of it.
func readMappings(smaps io.Reader, file string) mappings {
	var found mappings
	var part [2]uintptr // {}: the one that is being read is not wanted
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			part = [2]uintptr{}
			if len(fields) != 6 || fields[5] != file || strings.Contains(fields[1], "w") {
				continue
			}
			var from, to uintptr
			if n, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); n == 2 && err == nil {
				part = [2]uintptr{from, to}
			}
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && part != [2]uintptr{}:
			found = append(found, part)
		}
	}
	return found
}

func (m mappings) forget() {
	for _, part := range m {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, part[0], part[1]-part[0], syscall.MADV_DONTNEED)
	}
}

// forgetOnceCollected forgets when the next collection is over, which finds
// that nobody holds the canary, and so on.
func (m mappings) forgetOnceCollected() {
	type canary struct{ _ [16]byte }
	runtime.AddCleanup(new(canary), func(m mappings) {
		m.forget()
		m.forgetOnceCollected()
	}, m)
}
