//go:build !linux

package kubetest

import "syscall"

// attributes gives a program a group of its own. It outlives us only where we
// are killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
