package run

import "os"

// Process identifies a process for good: its number is used again after its
// death, the number together with the start time within one boot is not.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start_time"` // clock ticks since boot (Linux), microseconds since 1970 (darwin)
	Boot  string `json:"boot_id"`
}

// Self identifies the calling process.
func Self() (Process, error) { return Identify(os.Getpid()) }

// Identify identifies a running process.
func Identify(pid int) (Process, error) {
	boot, err := bootID()
	if err != nil {
		return Process{}, err
	}
	start, err := startTime(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, Start: start, Boot: boot}, nil
}

// Alive reports whether exactly this process still runs; one that has ended
// and was not reaped yet does not.
func (p Process) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	now, err := Identify(p.PID)
	return err == nil && now == p
}
