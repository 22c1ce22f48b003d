package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process names a process of this computer so that another one can tell whether
// it still runs: boot id, namespace of process numbers, number, and when it
// began. pid is a number or "self". It is "" where that cannot be known.
func process(pid string) string {
	boot, err1 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	stat, err3 := os.ReadFile("/proc/" + pid + "/stat")
	if err1 != nil || err2 != nil || err3 != nil {
		return ""
	}
	number, rest, _ := strings.Cut(string(stat), " ")
	fields := strings.Fields(rest[strings.LastIndex(rest, ")")+1:]) // the name may hold anything
	if len(fields) < 20 {
		return ""
	}
	return fmt.Sprintf("%s %s %s %s", strings.TrimSpace(string(boot)), space, number, fields[19])
}

// hasEnded reports whether a process ran on this computer, where it could be seen
// from here, and runs no more.
func hasEnded(name string) bool {
	fields := strings.Fields(name)
	self := strings.Fields(process("self"))
	if len(fields) != 4 || len(self) != 4 || fields[0] != self[0] || fields[1] != self[1] {
		return false
	}
	n, err := strconv.Atoi(fields[2])
	if err != nil || n <= 1 {
		return false
	}
	if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) { // unlike /proc, it hides nobody
		return true
	}
	now := process(fields[2])
	return now != "" && now != name
}
