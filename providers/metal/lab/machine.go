//go:build e2e && linux

package lab

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// AdminPassword is what the user admin of every machine logs in with and gives
// to sudo. The user ops logs in with the lab's key, and sudo asks for nothing.
const AdminPassword = "stoke lab"

// Machine is a Debian machine: systemd, sshd, apt, nftables, a kernel that it
// shares. Its methods fail the test when they cannot do what they say.
type Machine struct {
	Name    string // its host name
	Address string
	HostKey string // an authorized_keys line
	// PrivateAddress is its address in a network that only machines made with
	// Private are in.
	PrivateAddress string

	lab  *Lab
	t    testing.TB
	last int // of the address
	dir  string

	vm      *vm      // nil for a container
	binds   []string // what it sees of this machine, as arguments of systemd-nspawn
	options options

	mu    sync.Mutex
	pid   int           // of systemd-nspawn; 0 when it is off
	boots int           // since it was made
	off   chan struct{} // closed when it went off
	why   error         // of its going off
}

// Option changes a machine before it is first switched on.
type Option func(*options)

type options struct {
	noMirror bool
	mirror   []string // nil: all of it
	private  bool
	disk     string
	own      *hardware
	files    map[string]string
	pods     bool
	folders  [][2]string // here, there
	memory   int         // of a virtual machine, in MiB
}

// Pods gives a machine a file system where overlays can be made, as on a real
// disk, so that containerd can run pods. Images count as content of its disk.
func Pods() Option { return func(o *options) { o.pods = true } }

// Folder shows a machine a folder of this one, which it cannot write to.
func Folder(here, there string) Option {
	return func(o *options) { o.folders = append(o.folders, [2]string{here, there}) }
}

// Disk is the size of a machine's disk, such as "300M"; it is 16G otherwise, of
// which the memory of this machine holds what is written.
func Disk(size string) Option { return func(o *options) { o.disk = size } }

// NoMirror leaves a machine's apt without Debian's mirror: it is several times
// as quick, and knows only what is installed and the repositories that it gets.
func NoMirror() Option { return func(o *options) { o.noMirror = true } }

// Memory is what a virtual machine has, in MiB; 2048 otherwise.
func Memory(mib int) Option { return func(o *options) { o.memory = mib } }

// Private plugs a machine into a second network as well, which only such
// machines are in: as a cluster's network beside the one for operators.
func Private() Option { return func(o *options) { o.private = true } }

// With puts a file on the machine before it is first switched on. A script
// /usr/local/sbin/machine-hardware is run at each boot before anything else: it
// may mount over what the kernel shows of the hardware.
func With(path, content string) Option {
	return func(o *options) {
		if o.files == nil {
			o.files = map[string]string{}
		}
		o.files[path] = content
	}
}

// Machine makes a machine of that name and switches it on.
func (l *Lab) Machine(name string, opts ...Option) *Machine {
	l.t.Helper()
	m := l.make(name, opts)
	m.PowerOn()
	return m
}

// Machines makes several at once.
func (l *Lab) Machines(names ...string) []*Machine {
	l.t.Helper()
	return l.MachinesWith(nil, names...)
}

// MachinesWith makes several at once, with the same options.
func (l *Lab) MachinesWith(opts []Option, names ...string) []*Machine {
	l.t.Helper()
	made := make([]*Machine, len(names))
	for i, name := range names {
		made[i] = l.make(name, opts)
		made[i].start()
	}
	for _, m := range made {
		m.awaitUp(0)
	}
	return made
}

func (l *Lab) make(name string, opts []Option) *Machine {
	l.t.Helper()
	o := options{disk: "16G"}
	for _, opt := range opts {
		opt(&o)
	}
	m := l.add(name)
	m.options = o
	if o.private {
		m.PrivateAddress = l.slot.privateAddress(m.last)
	}
	m.install()
	return m
}

// install puts the system on a machine's disk.
func (m *Machine) install() {
	l, name, o := m.lab, m.Name, m.options
	l.t.Helper()
	if err := m.mount(o.disk); err != nil {
		l.t.Fatalf("make machine %s: %v", name, err)
	}
	if err := m.personalise(o.files); err != nil {
		l.t.Fatalf("make machine %s: %v", name, err)
	}
	if err := m.bind(o); err != nil {
		l.t.Fatalf("make machine %s: %v", name, err)
	}
	if o.noMirror {
		err := m.write("/etc/apt/sources.list", "")
		for _, dir := range []string{"etc/apt/sources.list.d", "var/lib/apt/lists"} {
			err = errors.Join(err, emptyFolder(filepath.Join(m.root(), dir)))
		}
		if err != nil {
			l.t.Fatalf("make machine %s: %v", name, err)
		}
	}
	if o.mirror != nil {
		if err := m.onlyOf(o.mirror); err != nil {
			l.t.Fatalf("make machine %s: %v", name, err)
		}
	}
	if o.own != nil {
		if err := m.equip(o.own); err != nil {
			l.t.Fatalf("make machine %s: %v", name, err)
		}
	}
}

// Reinstall cuts a machine's power, puts the system on an empty disk, and switches
// it on: it has its name and its address, and a host key that nobody has seen.
func (m *Machine) Reinstall() {
	m.t.Helper()
	m.cut()
	for _, mounted := range []string{m.root(), filepath.Join(m.dir, "disk")} {
		if err := syscall.Unmount(mounted, syscall.MNT_DETACH); err != nil {
			m.t.Fatalf("reinstall machine %s: %v", m.Name, err)
		}
	}
	m.binds = nil
	m.install()
	m.PowerOn()
}

// add gives a machine its place in the lab.
func (l *Lab) add(name string) *Machine {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := 10 + len(l.machines)
	m := &Machine{Name: name, Address: l.slot.address(last), lab: l, t: l.t, last: last, dir: l.slot.folder(name)}
	l.machines = append(l.machines, m)
	return m
}

func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

func (m *Machine) root() string { return filepath.Join(m.dir, "root") }

// mount puts a disk of its own, in memory, over the file system that all
// machines share.
func (m *Machine) mount(size string) error {
	disk := filepath.Join(m.dir, "disk")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		return fmt.Errorf("mount a disk: %w", err)
	}
	for _, dir := range []string{disk + "/upper", disk + "/work", m.root()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", m.lab.root, disk, disk)
	if err := syscall.Mount("overlay", m.root(), "overlay", 0, layers); err != nil {
		return fmt.Errorf("mount its root: %w", err)
	}
	return nil
}

// bind notes what the machine is to see of this one, at each of its boots.
func (m *Machine) bind(o options) error {
	for _, f := range o.folders {
		m.binds = append(m.binds, "--bind-ro="+f[0]+":"+f[1])
	}
	if !o.pods {
		return nil
	}
	const state = "/var/lib/containerd"
	dir := filepath.Join(m.dir, "disk", "containerd")
	m.binds = append(m.binds, "--bind="+dir+":"+state)
	return os.MkdirAll(dir, 0o711)
}

// personalise gives a machine what no other has.
func (m *Machine) personalise(files map[string]string) error {
	private, public, err := newKey()
	if err != nil {
		return err
	}
	m.HostKey = public
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	gateway := m.lab.slot.gateway()
	all := map[string]string{
		"/etc/hostname":                         m.Name + "\n",
		"/etc/hosts":                            "127.0.0.1\tlocalhost\n127.0.1.1\t" + m.Name + "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		"/etc/machine-id":                       hex.EncodeToString(id) + "\n",
		"/etc/resolv.conf":                      "nameserver " + gateway + "\n",
		"/etc/ssh/ssh_host_ed25519_key":         private,
		"/etc/ssh/ssh_host_ed25519_key.pub":     public + "\n",
		"/home/ops/.ssh/authorized_keys":        m.lab.authorized + "\n",
		"/home/admin/.ssh/authorized_keys":      m.lab.authorized + "\n",
		"/etc/systemd/journald.conf.d/lab.conf": "[Journal]\nReadKMsg=no\n", // the kernel speaks of all machines
		"/etc/apt/apt.conf.d/01lab":             fmt.Sprintf("Acquire::http::Proxy \"http://%s:%s\";\nAcquire::http::Proxy::%[1]s \"DIRECT\";\n", gateway, proxyPort),
	}
	recipe := map[string]string{"/etc/sudoers.d/stoke": "../../docs/sudoers.d-stoke"}
	if m.vm == nil {
		recipe["/usr/local/sbin/machine-init"] = "machine-init"
		recipe["/etc/systemd/system/systemd-sysctl.service.d/lab.conf"] = "sysctl-plain-files.conf"
		maps.Copy(all, builtinModules())
		files, links := light()
		maps.Copy(all, files)
		for path, target := range links {
			if err := m.link(path, target); err != nil {
				return err
			}
		}
	}
	for path, name := range recipe {
		content, err := os.ReadFile(filepath.Join(m.lab.recipe, name))
		if err != nil {
			return err
		}
		all[path] = string(content)
	}
	maps.Copy(all, files)
	for path, content := range all {
		if err := m.write(path, content); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file into a machine that is off.
func (m *Machine) write(path, content string) error {
	name := filepath.Join(m.root(), path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be a link, which is not to be followed
		return err
	}
	mode := os.FileMode(0o644)
	switch {
	case strings.HasSuffix(path, "_key"):
		mode = 0o600
	case strings.HasPrefix(path, "/etc/sudoers"):
		mode = 0o440
	case strings.HasPrefix(content, "#!"):
		mode = 0o755
	}
	return os.WriteFile(name, []byte(content), mode)
}

// link makes a link on a machine that is off.
func (m *Machine) link(path, target string) error {
	name := filepath.Join(m.root(), path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, name)
}

// builtinModules is what modprobe reads. Machines share this kernel, which may
// have no modules at all; those that a cluster needs are then built in.
func builtinModules() map[string]string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil
	}
	dir := "/lib/modules/" + strings.TrimSpace(string(release))
	if exists(dir) {
		return nil // start gives it to the machine
	}
	return map[string]string{dir + "/modules.builtin": builtinList(), dir + "/modules.order": "", dir + "/modules.builtin.modinfo": ""}
}

func builtinList() string {
	var builtin strings.Builder
	for _, name := range []string{"fs/overlayfs/overlay", "net/bridge/bridge", "net/bridge/br_netfilter", "net/netfilter/nf_conntrack", "net/netfilter/nf_tables", "drivers/net/veth", "drivers/net/vxlan"} {
		fmt.Fprintf(&builtin, "kernel/%s.ko\n", name)
	}
	return builtin.String()
}

// Target is the machine as stoke is to reach it: as ops, who becomes root by
// the documented sudoers file.
func (m *Machine) Target() ssh.Target {
	return ssh.Target{Hop: ssh.Hop{Address: m.Address, HostKey: m.HostKey, Credential: ssh.Credential{User: "ops", PrivateKey: m.lab.Key, Sudo: true}}}
}

// AdminTarget is the machine as a user reaches it who has a password, for
// logging in and for sudo.
func (m *Machine) AdminTarget() ssh.Target {
	return ssh.Target{Hop: ssh.Hop{Address: m.Address, HostKey: m.HostKey, Credential: ssh.Credential{
		User: "admin", Password: AdminPassword, Sudo: true, SudoPassword: AdminPassword,
	}}}
}

// Remote is the machine as the parts of the provider metal work on it, over
// SSH. The connection ends with the lab.
func (m *Machine) Remote() *host.Remote {
	return &host.Remote{Pool: &m.lab.pool, Target: m.Target()}
}
