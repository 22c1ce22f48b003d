//go:build !linux

package probe

import "syscall"

// attributes returns nil: the child ends when its standard input does.
func attributes() *syscall.SysProcAttr { return nil }
