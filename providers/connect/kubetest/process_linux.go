package kubetest

import "syscall"

// attributes gives a program a group of its own and ends it with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
