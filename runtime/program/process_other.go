//go:build !linux

package program

import "syscall"

// process has no content here: Start fails before one is made.
type process struct {
	pid, parent, group int
	start              uint64
	zombie             bool
}

func (p process) signal(syscall.Signal) {}
func (p process) reap() bool            { return true }

func attributes() *syscall.SysProcAttr { return nil }

func adoptOrphans() error {
	return &StartError{Kind: ErrPlatform, What: "programs run on Linux only",
		Advice: "run the experiment on a machine with Linux, or in a cluster"}
}

func awaitExit(int)                   {}
func signalGroup(int, syscall.Signal) {}

func listProcesses() ([]process, error) { return nil, ErrPlatform }

func isMarked(int, Mark) bool { return false }
func nameOf(int) string       { return "" }
