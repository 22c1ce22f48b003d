package supervisor

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes has the kernel end a role with the supervisor. An agent ends by itself,
// with the end of its input, once it has ended its program.
func attributes(agent bool) *syscall.SysProcAttr {
	if agent {
		return nil
	}
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// slack is by how much the sleeps of roles may be longer than they ask for.
// Go's own monitor asks for 20 µs again and again while a process alternates
// between work and waiting, as roles do at every update: unless the kernel may
// put such sleeps off, half of a run's context switches are that.
const slack = time.Millisecond

// beginStarting prepares the thread that starts the roles: they inherit slack.
func beginStarting() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack.Nanoseconds()), 0, 0, 0) // without it, all is a little slower
}

// self is the file that this process runs, even when another one has been put
// at its path since: a run that lives for days must not mix versions.
func self(path string) string {
	const exe = "/proc/self/exe"
	if _, err := os.Stat(exe); err != nil {
		return path // there is no /proc here
	}
	return exe
}
