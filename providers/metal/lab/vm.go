//go:build e2e && linux

package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// VM makes a virtual machine and switches it on: Debian as the other machines
// are, but with a kernel of its own, modules, control groups of version 2, swap
// and reboots that are real. It is emulated in software, boots in about half a
// minute where nothing else runs, and works at a tenth of the speed; tests with
// it have the build tag e2evm as well. All methods of Machine work on it; Exec
// goes over SSH, as root. Of the options With, Mirror, Memory and Folder count,
// whose content is copied.
func (l *Lab) VM(name string, opts ...Option) *Machine {
	l.t.Helper()
	for _, tool := range []string{"qemu-system-x86_64", "mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			l.refuse(tool + " is not installed (testdata/machines/install vm brings what is needed)")
		}
	}
	image, err := l.vmImage()
	if err != nil {
		l.t.Fatalf("build the virtual machine's disk: %v", err)
	}
	m := l.add(name)
	m.vm = &vm{image: image}
	m.options = options{memory: 2048}
	for _, opt := range opts {
		opt(&m.options)
	}
	if err := m.makeDisk(); err != nil {
		l.t.Fatalf("make machine %s: %v", name, err)
	}
	m.PowerOn()
	return m
}

// vm is what a Machine has that is virtual.
type vm struct {
	image string // the folder with disk, kernel and initramfs

	mu     sync.Mutex
	client *ssh.Client // as root; nil when there is none
}

// vmImage returns the folder with what a virtual machine boots; it is built
// when there is none.
func (l *Lab) vmImage() (string, error) {
	recipe, err := os.ReadFile(filepath.Join(l.recipe, "build-vm"))
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(recipe)
	image := fmt.Sprintf("%s-vm-%x", l.root, key[:8])
	lock, err := os.OpenFile(image+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if exists(image) {
		return image, nil
	}
	began := time.Now()
	half := image + ".half"
	if err := os.RemoveAll(half); err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(l.recipe, "build-vm"), half, l.root, "http://"+net.JoinHostPort(l.slot.gateway(), proxyPort))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w:\n%s", err, lastLines(string(out), 30))
	}
	l.t.Logf("built %s in %.0f s", image, time.Since(began).Seconds())
	return image, os.Rename(half, image)
}

func (m *Machine) disk() string { return filepath.Join(m.dir, "disk.img") }

// makeDisk copies the disk and makes it this machine's.
func (m *Machine) makeDisk() error {
	if err := os.MkdirAll(m.root(), 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "--sparse=always", "--reflink=auto", filepath.Join(m.vm.image, "disk.img"), m.disk()).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the disk: %w: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", m.disk(), m.root()).CombinedOutput(); err != nil {
		return fmt.Errorf("mount the disk: %w: %s", err, out)
	}
	files := map[string]string{
		"/root/.ssh/authorized_keys": m.lab.authorized + "\n",
		"/etc/systemd/network/10-lab.network": fmt.Sprintf("[Match]\nMACAddress=%s\n\n[Network]\nAddress=%s/24\nGateway=%s\n",
			m.lab.slot.hardware(m.last), m.Address, m.lab.slot.gateway()),
	}
	maps.Copy(files, m.options.files)
	err := m.personalise(files)
	if err == nil && m.options.mirror != nil {
		err = m.onlyOf(m.options.mirror)
	}
	for _, f := range m.options.folders {
		to := filepath.Join(m.root(), f[1])
		err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755))
		if out, failed := exec.Command("cp", "-a", f[0], to).CombinedOutput(); failed != nil {
			err = errors.Join(err, fmt.Errorf("copy a folder: %w: %s", failed, out))
		}
	}
	return errors.Join(err, syscall.Unmount(m.root(), 0))
}

// qemu is the command that is the machine. Its kernel trusts the counter of cycles,
// without which each look at the clock is fifteen times slower: kubeadm and the API
// server look at it all the time.
func (m *Machine) qemu() []string {
	image := m.vm.image
	return []string{
		"nsenter", "--net=/run/netns/" + m.lab.slot.namespace(), "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", strconv.Itoa(m.options.memory),
		"-display", "none", "-kernel", filepath.Join(image, "vmlinuz"), "-initrd", filepath.Join(image, "initrd"),
		"-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off tsc=reliable no5lvl quiet", "-drive", "file=" + m.disk() + ",if=virtio,format=raw,cache=unsafe",
		"-netdev", "tap,id=n,ifname=" + m.tap() + ",script=no,downscript=no", "-device", "virtio-net-pci,netdev=n,mac=" + m.lab.slot.hardware(m.last),
		"-device", "virtio-rng-pci", "-serial", "stdio", "-monitor", "none",
	}
}

func (m *Machine) tap() string { return fmt.Sprintf("t%d", m.last) }

// plugVM gives the machine its link to the bridge.
func (m *Machine) plugVM() error {
	_ = ip(m.lab.slot.namespace(), "link del "+m.tap())
	return ip(m.lab.slot.namespace(), "tuntap add dev "+m.tap()+" mode tap", "link set "+m.tap()+" master bridge up")
}

// run runs a command as root, over a connection that is kept while the machine
// is on.
func (v *vm) run(m *Machine, args []string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if v.client == nil {
		target := m.Target()
		target.Credential = ssh.Credential{User: "root", PrivateKey: m.lab.Key}
		client, err := ssh.Dial(ctx, target, ssh.Timeouts{})
		if err != nil {
			return "", err
		}
		v.client = client
	}
	env := append([]string{"env", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, args...)
	out, err := v.client.Run(ctx, ssh.Command{Args: env})
	var failed *ssh.CommandError
	if err != nil && !errors.As(err, &failed) {
		v.client.Close()
		v.client = nil
	}
	return string(out.Stdout), err
}

func (v *vm) hangUp() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.client != nil {
		v.client.Close()
		v.client = nil
	}
}

// rebootVM has the machine boot again, by itself.
func (m *Machine) rebootVM() {
	m.t.Helper()
	const bootID = "/proc/sys/kernel/random/boot_id"
	before := m.Exec("cat", bootID)
	_, _ = m.try("systemctl", "reboot") // it may be quicker than its answer
	m.vm.hangUp()
	if !eventually(m.patience(), func() bool {
		if !m.answers() {
			return false
		}
		now, err := m.try("cat", bootID)
		if err == nil && strings.TrimSpace(now) == before {
			m.vm.hangUp()
			time.Sleep(time.Second)
			return false
		}
		return err == nil
	}) {
		m.logEnd()
		m.t.Fatalf("machine %s does not come up again", m.Name)
	}
	m.mu.Lock()
	m.boots++
	m.mu.Unlock()
}
