package main

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// errInterrupted is the end of a run that the caller has stopped.
var errInterrupted = errors.New("interrupted: the processes of the suite were stopped, the suites after it did not run")

// stopTime is how long the processes of a suite may take to stop. A test changes it.
var stopTime = 10 * time.Second

// command returns a command in a process group of its own, which ends with the
// runner's context: first SIGTERM, and SIGKILL after stopTime.
func (r *runner) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		group := -cmd.Process.Pid
		time.AfterFunc(stopTime, func() { _ = syscall.Kill(group, syscall.SIGKILL) }) // the group may have ended
		return syscall.Kill(group, syscall.SIGTERM)
	}
	return cmd
}

// killLeft kills what an interrupted command that has ended leaves of its process group.
func (r *runner) killLeft(cmd *exec.Cmd) {
	if r.ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nothing is left
	}
}
