package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// forgetStart gives back the pages of the program's own file that starting up
// has touched: the initialisation of what is linked reaches nearly all of
// them, a run a third. What is needed again comes back from the page cache.
// Only mappings that cannot be written are given back; where anything is not
// as expected, nothing happens.
func forgetStart() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != self || strings.Contains(fields[1], "w") {
			continue
		}
		var from, to uintptr
		if n, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); n == 2 && err == nil {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
