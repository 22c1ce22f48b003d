package process

import (
	"bytes"
	"fmt"
	"strconv"
)

// Stat is a part of /proc/PID/stat, see proc_pid_stat(5).
type Stat struct {
	Parent, Group int
	Zombie        bool   // ended, and not reaped
	Start         uint64 // in clock ticks since the machine's start; with the number of the process, this is unique
	CPU           int64  // user and system time, in clock ticks, without that of reaped children
	Pages         int64  // of memory
}

// ParseStat returns what the file of a process says.
func ParseStat(pid int, text []byte) (Stat, error) {
	// Field 2, the program's name, may itself hold spaces and brackets.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	bad := fmt.Errorf("read /proc/%d/stat: not as documented", pid)
	if len(fields) < 22 {
		return Stat{}, bad
	}
	var err error
	field := func(n int) int64 { // numbered from 1, as in the manual
		v, failed := strconv.ParseInt(string(fields[n-3]), 10, 64)
		if failed != nil {
			err = bad
		}
		return v
	}
	state := fields[0][0]
	s := Stat{
		Parent: int(field(4)), Group: int(field(5)), Zombie: state == 'Z' || state == 'X',
		Start: uint64(field(22)), CPU: field(14) + field(15), Pages: field(24),
	}
	return s, err
}
