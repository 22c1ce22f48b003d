//go:build e2e && linux

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Device is something on a machine's PCI bus.
type Device struct {
	ID     uint16 // of vendor 10de, NVIDIA
	Class  uint32 // 0: 0x030200, a 3D controller
	Name   string // as nvidia-smi calls it
	Memory int    // MiB; 0: 81559
}

// Some devices.
var (
	H100     = Device{ID: 0x2330, Name: "NVIDIA H100 80GB HBM3", Memory: 81559}
	T4       = Device{ID: 0x1eb8, Name: "Tesla T4", Memory: 15360}
	V100     = Device{ID: 0x1db1, Name: "Tesla V100-SXM2-16GB", Memory: 16384}
	NVSwitch = Device{ID: 0x22a3, Class: 0x068000}
)

// DefaultKernel is the kernel of machines with hardware of their own, unless
// Kernel says otherwise.
const DefaultKernel = "6.1.0-40-amd64"

// hardware is what a machine shows in place of what this machine has. Modules
// are then files that are loaded by being shown in /sys/module, see
// testdata/machines/stand-ins.
type hardware struct {
	devices    []Device
	kernel     string
	headers    bool
	secureBoot bool
	console    bool // nouveau cannot be unloaded
	ubuntu     string
}

// PCI gives a machine devices, at 0000:01:00.0 and so on, and a kernel of its
// own (see Kernel) with nouveau, which takes the GPUs at boot unless the
// initramfs keeps it from that.
func PCI(devices ...Device) Option {
	return func(o *options) { o.hardware().devices = append(o.hardware().devices, devices...) }
}

// Kernel is the release of the kernel that the machine boots first, as package
// linux-image-RELEASE, with headers or without. KernelPackages makes others; the
// newest that is installed boots next.
func Kernel(release string, headers bool) Option {
	return func(o *options) { o.hardware().kernel, o.hardware().headers = release, headers }
}

// SecureBoot has the machine's kernel refuse modules without a signature.
func SecureBoot() Option { return func(o *options) { o.hardware().secureBoot = true } }

// NouveauConsole has a console on the GPU: nouveau cannot be unloaded.
func NouveauConsole() Option { return func(o *options) { o.hardware().console = true } }

// Ubuntu has the machine say that it is Ubuntu of that release, 22.04 or 24.04.
// Nothing else of it is.
func Ubuntu(release string) Option { return func(o *options) { o.hardware().ubuntu = release } }

func (o *options) hardware() *hardware {
	if o.own == nil {
		o.own = &hardware{kernel: DefaultKernel, headers: true}
	}
	return o.own
}

// equip gives a machine, which is off, its hardware.
func (m *Machine) equip(h *hardware) error {
	files := map[string]string{
		"/usr/local/sbin/machine-hardware": "hardware", "/usr/local/sbin/modprobe": "modprobe",
		"/usr/local/sbin/rmmod": "modprobe", "/usr/local/bin/uname": "uname",
	}
	for path, name := range files {
		if err := m.write(path, m.lab.standIn(name, "")); err != nil {
			return err
		}
	}
	const given = "/usr/lib/stoke-lab/"
	for i, d := range h.devices {
		dir := fmt.Sprintf("%spci/0000:%02x:00.0/", given, i+1)
		if d.Class == 0 {
			d.Class = 0x030200
		}
		if d.Memory == 0 {
			d.Memory = 81559
		}
		for name, value := range map[string]string{
			"vendor": "0x10de", "device": fmt.Sprintf("0x%04x", d.ID), "class": fmt.Sprintf("0x%06x", d.Class),
			"name": d.Name, "memory": fmt.Sprint(d.Memory), "numa_node": "0",
		} {
			if err := m.write(dir+name, value+"\n"); err != nil {
				return err
			}
		}
	}
	flags := map[string]bool{"secure-boot": h.secureBoot, "nouveau-console": h.console}
	for name, on := range flags {
		if on {
			if err := m.write(given+name, ""); err != nil {
				return err
			}
		}
	}
	if h.ubuntu != "" {
		if err := m.write("/usr/lib/os-release", ubuntuRelease(h.ubuntu)); err != nil {
			return err
		}
	}
	packages := append([]Package{m.lab.initramfsTools()}, m.lab.KernelPackages(h.kernel)...)
	if !h.headers {
		packages = packages[:3]
	}
	return m.preinstall(packages)
}

func ubuntuRelease(release string) string {
	codename := map[string]string{"22.04": "jammy", "24.04": "noble"}[release]
	return fmt.Sprintf("PRETTY_NAME=\"Ubuntu %s LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"%[1]s\"\nVERSION=\"%[1]s LTS\"\nVERSION_CODENAME=%s\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=%[2]s\n", release, codename)
}

// preinstall installs packages on a machine that is off.
func (m *Machine) preinstall(packages []Package) error {
	const dir = "/var/cache/stoke-lab"
	args := []string{m.root(), "env", "LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "dpkg", "--install"}
	for _, p := range packages {
		deb, err := p.build()
		if err != nil {
			return err
		}
		name := filepath.Join(dir, p.file())
		if err := m.write(name, string(deb)); err != nil {
			return err
		}
		args = append(args, name)
	}
	if out, err := exec.Command("chroot", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("install packages: %w\n%s", err, lastLines(string(out), 20))
	}
	return os.RemoveAll(filepath.Join(m.root(), dir))
}

// standIn reads one of testdata/machines/stand-ins, with a version put in.
func (l *Lab) standIn(name, version string) string {
	l.t.Helper()
	content, err := os.ReadFile(filepath.Join(l.recipe, "stand-ins", name))
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.ReplaceAll(string(content), "VERSION", version)
}

func (l *Lab) initramfsTools() Package {
	return Package{Name: "initramfs-tools", Version: "0.142+stoke1", All: true, Files: map[string]string{"/usr/sbin/update-initramfs": l.standIn("update-initramfs", "")}}
}

// KernelPackages are a kernel as Debian packages it: its image, the package
// that brings the newest image, its headers, and the package that brings those.
// The hooks in /etc/kernel run as they do with real ones. Both metapackages have
// the kernel's version.
func (l *Lab) KernelPackages(release string) []Package {
	version, flavour := release, "generic"
	if i := strings.LastIndexByte(release, '-'); i > 0 {
		version, flavour = release[:i], release[i+1:]
	}
	version = "1:" + strings.ReplaceAll(version, "-", ".") + "-1" // Debian has kernels of these names, too
	hooks := func(dir string) string {
		return fmt.Sprintf("#!/bin/sh\nset -e\n[ \"$1\" = configure ] || exit 0\n[ ! -d /etc/kernel/%s ] || run-parts --exit-on-error --arg=%s --arg=/boot/vmlinuz-%[2]s /etc/kernel/%[1]s\n", dir, release)
	}
	link := "newest=$(cd /boot && ls vmlinuz-* 2>/dev/null | sort -V | tail -n 1)\nif [ -n \"$newest\" ]; then ln -sfn boot/$newest /vmlinuz; else rm -f /vmlinuz; fi\n"
	postinst := "#!/bin/sh\nset -e\nPATH=$PATH:/usr/sbin\ndepmod " + release + "\n" + link + "! command -v update-initramfs >/dev/null || update-initramfs -c -k " + release + "\n"
	modules := "/lib/modules/" + release
	return []Package{
		{
			Name: "linux-image-" + release, Version: version,
			Files: map[string]string{
				"/boot/vmlinuz-" + release: "stand-in\n", modules + "/modules.order": "", modules + "/modules.builtin.modinfo": "", modules + "/modules.builtin": builtinList(),
				modules + "/kernel/drivers/gpu/drm/nouveau/nouveau.ko": Module("nouveau", "", "GPL", "Debian Secure Boot CA"),
			},
			Scripts: map[string]string{
				"postinst": postinst + strings.TrimPrefix(hooks("postinst.d"), "#!/bin/sh\n"),
				"postrm":   "#!/bin/sh\nset -e\nrm -f /boot/initrd.img-" + release + "\n" + link + "[ \"$1\" != purge ] || rm -rf " + modules + "\n",
			},
		},
		{Name: "linux-image-" + flavour, Version: version, Fields: map[string]string{"Depends": "linux-image-" + release}},
		{
			Name: "linux-headers-" + release, Version: version,
			Files:   map[string]string{"/usr/src/linux-headers-" + release + "/Makefile": "# stand-in\n", modules + "/build": "-> /usr/src/linux-headers-" + release},
			Scripts: map[string]string{"postinst": hooks("header_postinst.d")},
		},
		{Name: "linux-headers-" + flavour, Version: version, Fields: map[string]string{"Depends": "linux-headers-" + release}},
	}
}
