//go:build e2e && linux

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// where is the folder of all labs that there are.
const where = "/run/stoke-lab"

// slots is how many labs there can be at once: as many as there are networks
// of 256 addresses in 198.18.0.0/16, half of the block that is set aside for
// tests of networks (RFC 2544), which no other network should be using. The
// other half is for private networks.
const slots = 256

// slot is a place for a lab: the number that all its names and addresses are
// made of. It is claimed by a lock on a file, which falls with the process, so
// that what a killed process leaves behind is known for what it is.
type slot struct {
	n    int
	lock *os.File
}

// claim takes a free slot and sweeps what dead processes left behind.
func claim() (slot, error) {
	if err := os.MkdirAll(where, 0o755); err != nil {
		return slot{}, err
	}
	stale, _ := filepath.Glob(filepath.Join(where, "*.lock"))
	for _, name := range stale {
		n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".lock"))
		if err != nil {
			continue
		}
		if s, ok := try(n); ok {
			err := s.sweep()
			s.release()
			if err != nil {
				return slot{}, fmt.Errorf("sweep a dead lab: %w", err)
			}
		}
	}
	for i := range slots {
		if s, ok := try((os.Getpid() + i) % slots); ok {
			return s, s.sweep()
		}
	}
	return slot{}, fmt.Errorf("all %d labs are taken: see %s", slots, where)
}

// try takes one slot unless somebody has it.
func try(n int) (slot, bool) {
	f, err := os.OpenFile(filepath.Join(where, strconv.Itoa(n)+".lock"), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return slot{}, false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		f.Close()
		return slot{}, false
	}
	// Whoever removed the file while we opened it has locked another one.
	opened, err := f.Stat()
	named, err2 := os.Stat(f.Name())
	if err != nil || err2 != nil || !os.SameFile(opened, named) {
		f.Close()
		return slot{}, false
	}
	return slot{n: n, lock: f}, true
}

func (s slot) release() {
	os.Remove(s.lock.Name())
	s.lock.Close()
}

func (s slot) dir() string                    { return filepath.Join(where, strconv.Itoa(s.n)) }
func (s slot) namespace() string              { return "stoke-lab-" + strconv.Itoa(s.n) }
func (s slot) machine(name string) string     { return s.namespace() + "-" + name }
func (s slot) link() string                   { return "slab" + strconv.Itoa(s.n) }
func (s slot) address(last int) string        { return fmt.Sprintf("198.18.%d.%d", s.n, last) }
func (s slot) privateAddress(last int) string { return fmt.Sprintf("198.19.%d.%d", s.n, last) }
func (s slot) gateway() string                { return s.address(1) }
func (s slot) hardware(last int) string       { return fmt.Sprintf("02:77:c6:12:%02x:%02x", s.n, last) }
func (s slot) cgroups() ([]string, error)     { return cgroups("stoke-lab-" + strconv.Itoa(s.n)) }
func (s slot) folder(name string) string      { return filepath.Join(s.dir(), name) }
func (s slot) namespaces() ([]string, error) {
	all, err := filepath.Glob("/run/netns/" + s.namespace() + "*")
	var ours []string
	for _, name := range all {
		base := filepath.Base(name)
		if base == s.namespace() || strings.HasPrefix(base, s.machine("")) {
			ours = append(ours, base)
		}
	}
	return ours, err
}

// up makes the bridge that machines are plugged into, in a namespace of its
// own, and one link from it to here.
func (s slot) up() error {
	if err := os.MkdirAll(s.dir(), 0o755); err != nil {
		return err
	}
	ns := s.namespace()
	return errors.Join(
		ip("", "netns add "+ns, "link add "+s.link()+" type veth peer name outside netns "+ns),
		ip(ns, "link set lo up", "link add bridge type bridge", "link set bridge up", "link set outside master bridge up",
			"link add private type bridge", "link set private up"),
		ip("", "addr add "+s.gateway()+"/24 dev "+s.link(), "link set "+s.link()+" up"),
	)
}

// plug gives a machine a new network namespace with a link to the bridge: the
// state of the old one (rules, sysctls) is lost, as on a real machine that
// boots. The hardware address follows from the address, or else others would
// look for the machine at its old one for a while. A private machine has a
// second link, to a network without this machine.
func (s slot) plug(name string, last int, private bool) error {
	ns := s.machine(name)
	port := "p" + strconv.Itoa(last)
	s.unplug(name, last)
	if err := errors.Join(
		ip("", "netns add "+ns),
		ip(s.namespace(), "link add "+port+" type veth peer name host0 address "+s.hardware(last)+" netns "+ns, "link set "+port+" master bridge up"),
	); err != nil {
		return err
	}
	if err := ip(ns, "link set lo up", "addr add "+s.address(last)+"/24 dev host0", "link set host0 up", "route add default via "+s.gateway()); err != nil || !private {
		return err
	}
	port = "q" + strconv.Itoa(last)
	return errors.Join(
		ip(s.namespace(), "link add "+port+" type veth peer name host1 netns "+ns, "link set "+port+" master private up"),
		ip(ns, "addr add "+s.privateAddress(last)+"/24 dev host1", "link set host1 up"),
	)
}

// unplug takes it away again, link first: a namespace's links live on until
// the kernel comes round to it.
func (s slot) unplug(name string, last int) {
	_ = ip(s.namespace(), "link del p"+strconv.Itoa(last))
	_ = ip(s.namespace(), "link del q"+strconv.Itoa(last))
	_ = ip("", "netns del "+s.machine(name))
}

// sweep removes everything that a lab leaves: processes, mounts, namespaces,
// control groups, files. That something is not there is no error.
func (s slot) sweep() error {
	groups, err := s.cgroups()
	if err != nil {
		return err
	}
	if err := empty(groups); err != nil {
		return err
	}
	mounts, err := mountsBelow(s.dir())
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if err := syscall.Unmount(m, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	names, err := s.namespaces()
	if err != nil {
		return err
	}
	_ = ip("", "link del "+s.link())
	for _, ns := range names {
		if err := ip("", "netns del "+ns); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := removeGroup(g); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.dir())
}

// ip runs lines of ip(8) in a network namespace, or here.
func ip(namespace string, lines ...string) error {
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(lines, "; "), err, bytes.TrimSpace(out))
	}
	return nil
}

// mountsBelow lists the mounts in a folder, outermost first.
func mountsBelow(dir string) ([]string, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var below []string
	for line := range strings.Lines(string(info)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			below = append(below, f[4])
		}
	}
	return below, nil
}

// eventually asks every now and then, until it is so or the time is over.
func eventually(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
