package program

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	proc "github.com/stokehq/stoke/runtime/process"
)

// attributes puts a rank into a process group of its own. It ends when the thread
// that started it ends: see process.Thread.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes this process the parent of all descendants whose parent ends.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return &StartError{Kind: ErrStart, What: "the machine does not let stoke adopt orphans", Err: err}
	}
	return nil
}

// awaitExit returns when a child has ended, and leaves it a zombie: until it is
// reaped, its number and the number of its group are not used again.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// signalGroup sends a signal to a process group that exists.
func signalGroup(group int, signal syscall.Signal) {
	if group > 1 { // -1 is all processes
		unix.Kill(-group, signal)
	}
}

// process is a process as /proc shows it.
type process struct {
	pid, parent, group int
	start              uint64 // with pid, this is unique
	zombie             bool
}

// listProcesses returns all processes of the machine.
func listProcesses() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil { // else it has ended
			all = append(all, p)
		}
	}
	return all, nil
}

// readProcess reads the state of a process.
func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	s, err := proc.ParseStat(pid, text)
	return process{pid: pid, parent: s.Parent, group: s.Group, zombie: s.Zombie, start: s.Start}, err
}

// isMarked reports whether a process carries a mark in its first environment. A
// zombie and a process that has overwritten its environment do not.
func isMarked(pid int, mark Mark) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	text = append([]byte{0}, text...)
	return bytes.Contains(text, []byte("\x00"+markVariable+"="+mark.String()))
}

// signal sends a signal to exactly this process, also when its number has been
// used again.
func (p process) signal(signal syscall.Signal) {
	if p.pid <= 1 {
		return // 0 is the own group, and 1 is not a process of a program
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a sandbox
		unix.Kill(p.pid, signal)
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, err := readProcess(p.pid); err == nil && now.start == p.start {
		unix.PidfdSendSignal(fd, signal, nil, 0)
	}
}

// reap removes a zombie that is a child of this process, and reports whether it is
// removed: while other threads of it are still ending, it cannot be.
func (p process) reap() bool {
	var status unix.WaitStatus
	pid, err := unix.Wait4(p.pid, &status, unix.WNOHANG, nil)
	return pid == p.pid || err != nil
}

// nameOf returns the command of a process for people.
func nameOf(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	return harmless(bytes.ReplaceAll(bytes.TrimRight(text[:min(len(text), tailBytes)], "\x00"), []byte{0}, []byte(" ")))
}
