package run

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// startTime reads field 22 of /proc/PID/stat (proc_pid_stat(5)). The second
// field, the program's name, may itself hold spaces and brackets.
func startTime(pid int) (uint64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(data[:], []byte("("))
	if end := bytes.LastIndexByte(rest, ')'); ok && end >= 0 {
		fields := bytes.Fields(rest[end+1:]) // fields[0] is field 3, the state
		if len(fields) >= 20 {
			if state := fields[0][0]; state == 'Z' || state == 'X' {
				return 0, os.ErrProcessDone
			}
			return strconv.ParseUint(string(fields[19]), 10, 64)
		}
	}
	return 0, fmt.Errorf("read %s: not as documented", path)
}
