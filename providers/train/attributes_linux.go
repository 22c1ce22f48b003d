package train

import "syscall"

// attributes keeps Ctrl-C to us, who pass it on, and ends the child with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
