package run

import (
	"os"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

func startTime(pid int) (uint64, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	if info.Proc.P_stat == zombie || int(info.Proc.P_pid) != pid {
		return 0, os.ErrProcessDone
	}
	t := info.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec), nil
}
