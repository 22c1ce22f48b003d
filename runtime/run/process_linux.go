package run

import (
	"fmt"
	"os"
	"strings"

	"github.com/stokehq/stoke/runtime/process"
)

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// startTime returns when a process was started, in clock ticks. A zombie has ended.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	s, err := process.ParseStat(pid, text)
	if err == nil && s.Zombie {
		return 0, os.ErrProcessDone
	}
	return s.Start, err
}
