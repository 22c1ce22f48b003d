//go:build !linux

package train

import "syscall"

// attributes keeps Ctrl-C to us, who pass it on. Here a child outlives us if
// we are killed: it ends with its work, and what it wrote is swept up.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
