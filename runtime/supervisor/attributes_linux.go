package supervisor

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// self is the file that this process runs, even when another one has been put
// at its path since: a run that lives for days must not mix versions.
func self(path string) string {
	const exe = "/proc/self/exe"
	if _, err := os.Stat(exe); err != nil {
		return path // there is no /proc here
	}
	return exe
}
