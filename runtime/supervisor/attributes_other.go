//go:build !linux

package supervisor

import "syscall"

// attributes: here the end of the input pipe alone ends an orphan.
func attributes() *syscall.SysProcAttr { return nil }
