//go:build e2e && linux

package lab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is for how long the machine may take to come up or go down. A
// container takes two seconds where nothing else runs.
func (m *Machine) patience() time.Duration {
	if m.vm != nil {
		return 20 * time.Minute // half a minute with nothing else running, and what runs beside it may be a lot
	}
	return 90 * time.Second
}

// inGroups runs a program in control groups, all given before "--".
const inGroups = `while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit; shift; done; shift; exec "$@"`

// asksForReboot is how systemd-nspawn ends when the machine wants to boot again.
const asksForReboot = 133

// PowerOn switches a machine on that is off, and waits until users can log in.
func (m *Machine) PowerOn() {
	m.t.Helper()
	before := m.Boots()
	m.start()
	m.awaitUp(before)
}

// Boots is how often the machine has booted.
func (m *Machine) Boots() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boots
}

// Reboot has the machine boot again, as its owner does, and waits until users
// can log in.
func (m *Machine) Reboot() {
	m.t.Helper()
	if m.vm != nil {
		m.rebootVM()
		return
	}
	before := m.Boots()
	m.Exec("systemctl", "reboot")
	m.awaitUp(before)
}

// Stop shuts the machine down.
func (m *Machine) Stop() {
	m.t.Helper()
	m.mu.Lock()
	pid, off := m.pid, m.off
	m.mu.Unlock()
	if pid == 0 {
		return
	}
	if m.vm != nil {
		_, _ = m.try("systemctl", "poweroff")
		m.vm.hangUp()
	} else {
		_ = syscall.Kill(pid, syscall.SIGTERM) // nspawn passes it on
	}
	select {
	case <-off:
	case <-time.After(m.patience()):
		m.t.Fatalf("machine %s does not shut down", m.Name)
	}
}

// Crash cuts the machine's power: nothing on it does anything more. What was
// written without fsync is still there afterwards, unlike on some real disks.
func (m *Machine) Crash() {
	m.t.Helper()
	m.cut()
}

// cut kills the machine's first process, and so all others.
func (m *Machine) cut() {
	m.mu.Lock()
	pid, off := m.pid, m.off
	m.mu.Unlock()
	if pid == 0 {
		return
	}
	if m.vm != nil {
		defer m.vm.hangUp()
	}
	if leader := m.Leader(); leader != 0 {
		pid = leader
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	select {
	case <-off:
	case <-time.After(m.patience()):
		m.t.Errorf("machine %s survives a power cut", m.Name)
	}
}

// start switches the machine on.
func (m *Machine) start() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off != nil {
		select {
		case <-m.off:
		default:
			m.t.Fatalf("machine %s is on already", m.Name)
		}
	}
	m.off, m.why = make(chan struct{}), nil
	go m.run(m.off)
}

// run is the machine while it is on. Its thread is the one that the machine
// dies with, if this process is killed.
func (m *Machine) run(off chan struct{}) {
	runtime.LockOSThread() // never unlocked: the thread ends here
	defer close(off)
	for {
		err := m.boot()
		m.mu.Lock()
		m.pid, m.why = 0, err
		m.mu.Unlock()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != asksForReboot {
			return
		}
	}
}

// boot runs the machine until it goes off or asks to boot again.
func (m *Machine) boot() error {
	if m.vm != nil {
		if err := m.plugVM(); err != nil {
			return err
		}
	} else {
		if err := m.lab.slot.plug(m.Name, m.last, m.PrivateAddress != ""); err != nil {
			return err
		}
		defer m.lab.slot.unplug(m.Name, m.last)
	}
	args, err := m.command()
	if err != nil {
		return err
	}
	console, err := os.OpenFile(m.console(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer console.Close()
	cmd := exec.Command("sh", args...)
	cmd.Stdout, cmd.Stderr = console, console
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network", "SYSTEMD_NSPAWN_LOCK=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.mu.Lock()
	m.pid = cmd.Process.Pid
	m.boots++
	m.mu.Unlock()
	return cmd.Wait()
}

// command is the command that is the machine, in control groups of its own.
func (m *Machine) command() ([]string, error) {
	args := []string{"-c", inGroups, "sh"}
	labs, err := m.lab.slot.cgroups()
	if err != nil {
		return nil, err
	}
	for _, lab := range labs {
		group, err := makeGroup(lab, m.Name)
		if err != nil {
			return nil, fmt.Errorf("make a control group: %w", err)
		}
		args = append(args, group)
	}
	args = append(args, "--")
	if m.vm != nil {
		return append(args, m.qemu()...), nil
	}
	return append(args, m.nspawn()...), nil
}

func (m *Machine) nspawn() []string {
	var args []string
	if m.lab.codename != Bookworm { // its systemd knows no other
		args = []string{"env", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1"}
	}
	args = append(args,
		"systemd-nspawn", "--quiet", "--directory="+m.root(), "--machine="+m.lab.slot.machine(m.Name), "--hostname="+m.Name,
		"--register=no", "--keep-unit", "--kill-signal=SIGRTMIN+4", "--network-namespace-path=/run/netns/"+m.lab.slot.machine(m.Name),
		"--resolv-conf=off", "--timezone=off", "--link-journal=no", "--capability=all", "--system-call-filter=@keyring bpf", "--console=pipe",
		"--drop-capability=CAP_SYS_TIME", // the clock is not theirs
	)
	if exists("/dev/kmsg") {
		args = append(args, "--bind-ro=/dev/kmsg")
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		if dir := "/lib/modules/" + strings.TrimSpace(string(release)); exists(dir) {
			args = append(args, "--bind-ro="+dir)
		}
	}
	args = append(args, m.binds...)
	return append(args, "/usr/local/sbin/machine-init")
}

// Leader is the machine's first process as this machine counts them; 0 when
// there is none.
func (m *Machine) Leader() int {
	m.mu.Lock()
	pid := m.pid
	m.mu.Unlock()
	if pid == 0 || m.vm != nil {
		return 0
	}
	if children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid)); err == nil {
		if f := bytes.Fields(children); len(f) > 0 {
			leader, _ := strconv.Atoi(string(f[0]))
			return leader
		}
		return 0
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // a kernel without CONFIG_PROC_CHILDREN
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// pid (name) state parent …, where name may be anything
		_, rest, ok := bytes.Cut(stat, []byte(") "))
		if f := bytes.Fields(rest); ok && len(f) > 1 && string(f[1]) == strconv.Itoa(pid) {
			leader, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return leader
		}
	}
	return 0
}

// awaitUp waits until the machine has booted more often than before and users
// can log in.
func (m *Machine) awaitUp(before int) {
	m.t.Helper()
	up := eventually(m.patience(), func() bool {
		m.mu.Lock()
		off, boots := m.off, m.boots
		m.mu.Unlock()
		select {
		case <-off:
			return true
		default:
			return boots > before && m.answers()
		}
	})
	m.mu.Lock()
	pid, why := m.pid, m.why
	m.mu.Unlock()
	if pid == 0 || !up {
		m.logEnd()
		m.t.Fatalf("machine %s does not come up: %v", m.Name, why)
	}
}

// answers tells whether sshd does and lets users in: systemd keeps them out
// with a file until it has come far enough.
func (m *Machine) answers() bool {
	if m.vm == nil {
		root := fmt.Sprintf("/proc/%d/root", m.Leader())
		if !exists(root+"/run/systemd/private") || exists(root+"/run/nologin") {
			return false
		}
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(m.Address, "22"), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	banner, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(banner, "SSH-") {
		return false
	}
	if m.vm != nil {
		_, err = m.try("test", "!", "-e", "/run/nologin")
	}
	return err == nil
}

func (m *Machine) console() string { return filepath.Join(m.dir, "console") }

// logEnd shows the end of what the machine had to say.
func (m *Machine) logEnd() {
	console, _ := os.ReadFile(m.console())
	m.t.Logf("end of %s's console:\n%s", m.Name, lastLines(string(console), 25))
	if out, err := m.try("journalctl", "--no-pager", "--boot", "--lines=40", "--output=short-monotonic"); err == nil {
		m.t.Logf("end of %s's journal:\n%s", m.Name, lastLines(out, 40))
	}
}
