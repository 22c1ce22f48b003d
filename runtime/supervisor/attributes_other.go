//go:build !linux

package supervisor

import "syscall"

// attributes: here only the end of the input pipe ends an orphan.
func attributes(bool) *syscall.SysProcAttr { return nil }

// beginStarting: here nothing has to be prepared.
func beginStarting() {}

// self: here a role starts from what is at the path now.
func self(path string) string { return path }
