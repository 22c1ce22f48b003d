package object

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process names one process on one machine since its start, so that another
// one on that machine can tell whether it lives. The zero value names none.
type process struct {
	Machine string `json:",omitempty"` // digest of the machine's identity, boot and process namespace
	ID      int    `json:",omitempty"`
	Start   string `json:",omitempty"` // in the kernel's ticks
}

// thisProcess names the process that asks.
func thisProcess() process {
	start, _ := startOf(os.Getpid())
	machine := thisMachine()
	if start == "" || machine == "" {
		return process{}
	}
	return process{Machine: machine, ID: os.Getpid(), Start: start}
}

// thisMachine identifies the process namespace: numbers of processes are only
// meaningful within one. A restart makes it another one.
func thisMachine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	// Containers on one machine may share what is above in odd set-ups.
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(boot)) + space + host))
	return hex.EncodeToString(sum[:12])
}

// startOf is when a process began; dead is a process that has ended and has
// not been waited for. "" where nothing can be seen.
func startOf(pid int) (start string, dead bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// The command in parentheses may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const stateAt, startAt = 0, 19 // fields 3 and 22 of proc_pid_stat(5)
	if len(fields) <= startAt {
		return "", false
	}
	return fields[startAt], fields[stateAt] == "Z"
}

// hasEnded reports that the process ran on this machine and has ended.
func (p process) hasEnded() bool {
	if p.Machine == "" || p.ID <= 0 || p.Machine != thisMachine() {
		return false
	}
	start, dead := startOf(p.ID)
	if start == "" { // ended, or hidden from us
		return errors.Is(syscall.Kill(p.ID, 0), syscall.ESRCH)
	}
	return dead || start != p.Start
}
