package nvidia

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// box is a machine in memory that behaves as far as the driver goes: what apt
// would install, which module a kernel has, who keeps it loaded.
type box struct {
	hosttest.Machine
	os, release, codename string
	pci                   []string // id class
	running, next         string
	kernels               map[string]string // release to version of its module
	headers               []string
	open                  bool // flavour of the modules that are installed
	loaded                string
	loadedOpen            bool
	nouveau, off          bool
	packages              map[string]string
	held                  []string
	archive               map[string]string   // what apt could install
	versions              map[string][]string // what it knows besides
	bound                 string              // driver of the GPUs
	units                 map[string]string   // "active enabled", "inactive disabled", …
	users                 []string            // pid, name, device, container
	extra                 []string            // lines as they are
	smi                   string              // instead of the table, with exit status 9
	mig                   string              // mode, where the GPUs have it
	lost                  int                 // GPUs that the driver does not list
	stopped               []string
	unread                bool   // containerd is to be restarted
	runtime               string // RuntimeFile as containerd has read it
	reboots, drains       int
	stuck                 bool // the module cannot be unloaded
	broken                bool // the module cannot be loaded
	cdi                   map[string]string
	installs              []Target
}

var (
	a100    = "0x20b2 0x030200"
	h100    = "0x2330 0x030200"
	nvsw    = "0x22a3 0x068000"
	t4      = "0x1eb8 0x030200"
	p100    = "0x15f8 0x030200"
	b200    = "0x2901 0x030200"
	b300    = "0x3182 0x030200"
	r4090   = "0x2684 0x030000"
	gh200   = "0x2342 0x030200"
	unheard = "0x7777 0x030200"
)

func ubuntu(kernel string, pci ...string) *box {
	b := &box{
		os: "ubuntu", release: "24.04", codename: "noble", pci: pci, running: kernel, next: kernel,
		kernels: map[string]string{kernel: ""}, packages: map[string]string{}, archive: map[string]string{},
		units: map[string]string{}, cdi: map[string]string{},
	}
	b.Answer = b.answer
	return b
}

func debian(release string, pci ...string) *box {
	b := ubuntu("6.1.0-40-amd64", pci...)
	b.os, b.release, b.codename = "debian", release, map[string]string{"12": "bookworm", "13": "trixie"}[release]
	b.packages["linux-image-amd64"] = "6.1.153-1"
	return b
}

// facts is what package facts would hear.
func (b *box) facts() string {
	sections := map[string]string{
		"hostname": "node", "os": fmt.Sprintf("ID=%s\n VERSION_ID=%s\n VERSION_CODENAME=%s", b.os, b.release, b.codename), "memory": "MemTotal: 1000 kB",
		"machine": "uid=0\n arch=x86_64\n cpus=1\n kernel=" + b.running, "grub": "menuentry 'x' {\n linux /boot/vmlinuz-" + b.next + "\n }",
	}
	for i, d := range b.pci {
		id, class, _ := strings.Cut(d, " ")
		sections["pci"] += fmt.Sprintf("0000:%02x:00.0\t%s\t0x10de\t%s\t%s\t-1\t\n ", i+1, class, id, b.bound)
		if d == b200 || d == b300 {
			sections["nvswitch_management"] = "0000:a0:00.0"
		}
	}
	if slices.Contains(b.extra, "secureboot 1") {
		sections["machine"] += "\n secure_boot=6 0 0 0 1"
	}
	text := "#stoke-facts 1\n"
	for _, name := range []string{"begin", "hostname", "os", "machine", "memory", "swaps", "disks", "filesystems", "space", "nics", "resolv", "environment", "apt", "kernels", "links",
		"grub", "grubenv", "modules", "features", "pci", "pci_names", "nvidia_version", "nvidia_gpus", "nvidia_smi", "nvswitch_management", "units", "time", "processes", "packages", "runtimes", "end"} {
		text += "#" + name + "\n " + sections[name] + "\n"
	}
	return text
}

// look is what the observing script would print.
func (b *box) look() string {
	var s strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	for _, k := range slices.Sorted(maps.Keys(b.kernels)) {
		license := ""
		if b.kernels[k] != "" {
			license = map[bool]string{true: "Dual MIT/GPL", false: "NVIDIA"}[b.open]
		}
		h := "n"
		if slices.Contains(b.headers, k) {
			h = "y"
		}
		p("kernel %s\ty\ty\t%s\t%s\t%s", k, h, b.kernels[k], license)
	}
	if b.loaded != "" {
		p("loaded NVRM version: NVIDIA UNIX %sKernel Module for x86_64  %s  Release Build", map[bool]string{true: "Open ", false: ""}[b.loadedOpen], b.loaded)
		p("module %s", b.loaded)
	}
	if b.nouveau {
		p("nouveau loaded")
	}
	if _, ours := b.Files[NouveauFile]; ours || b.off {
		p("nouveau blacklisted")
	}
	b.table(p)
	for _, name := range slices.Sorted(maps.Keys(b.packages)) {
		p("pkg %s\t%s\tii ", name, b.packages[name])
	}
	for _, h := range b.held {
		p("hold %s", h)
	}
	p("free /usr 90000000\nfree /boot 900000\nfree /var 90000000")
	for _, u := range b.users {
		p("user %s", u)
	}
	for _, u := range slices.Sorted(maps.Keys(b.units)) {
		active, file, _ := strings.Cut(b.units[u], " ")
		p("unit Id=%s\nunit LoadState=loaded\nunit ActiveState=%s\nunit ", u, active)
		p("enabled %s %s", u, file)
	}
	for _, f := range slices.Sorted(maps.Keys(b.cdi)) {
		p("cdi %s libcuda.so.%s", f, b.cdi[f])
	}
	for _, u := range b.stopped {
		p("stopped %s", u)
	}
	if b.unread {
		p("unread due")
	}
	for _, l := range b.extra {
		if l != "secureboot 1" {
			p("%s", l)
		}
	}
	for _, f := range []string{NouveauFile, UpgradesFile, RuntimeFile} {
		if c, ok := b.Files[f]; ok {
			p("file %s %s", f, base64.StdEncoding.EncodeToString(c.Content))
		}
	}
	p("end")
	return s.String()
}

// table is what nvidia-smi says.
func (b *box) table(p func(string, ...any)) {
	if b.loaded == "" {
		return
	}
	lib := State{Packages: b.packages}.Installed()
	switch {
	case b.smi != "":
		p("smirc 9\nsmi %s", b.smi)
		return
	case lib != b.loaded:
		p("smirc 18\nsmi Failed to initialize NVML: Driver/library version mismatch\nsmi NVML library version: %s", lib)
		return
	}
	p("smirc 0")
	n := 0
	for i, d := range b.pci {
		if strings.HasSuffix(d, "0x068000") {
			continue
		}
		if n++; n <= b.lost {
			continue
		}
		p("smi %d, 00000000:%02X:00.0, NVIDIA Something, GPU-%d, 81559, %s, %s", n-1-b.lost, i+1, i, b.loaded, first(b.mig, "[N/A]"))
	}
}

// answer does what the scripts do.
func (b *box) answer(cmd host.Command) (hosttest.Answer, bool) {
	var a hosttest.Answer
	if slices.Equal(cmd.Args, []string{"sh", "-s"}) {
		return hosttest.Answer{Stdout: b.facts()}, true
	}
	if cmd.Args[0] == "date" {
		return a, false
	}
	if len(cmd.Args) < 3 || cmd.Args[0] != "sh" {
		touched := slices.Equal(cmd.Args, []string{"touch", unreadFile})
		b.unread = b.unread || touched
		return a, touched || cmd.Args[0] == "mkdir"
	}
	args := cmd.Args[4:]
	switch cmd.Args[2] {
	case look:
		a.Stdout = lined(b.look())
	case hold:
		b.held = append(b.held, args...)
	case unhold:
		b.held = slices.DeleteFunc(b.held, func(h string) bool { return slices.Contains(args, h) })
	case unload:
		if b.stuck || len(b.users) > 0 {
			return hosttest.Answer{Status: 1, Stderr: "nvidia is in use"}, true
		}
		b.loaded = ""
	case insert:
		if b.broken || b.nouveau {
			return hosttest.Answer{Status: 1, Stderr: "modprobe: ERROR: could not insert 'nvidia': No such device"}, true
		}
		b.loaded, b.loadedOpen = b.kernels[b.running], b.open
	case dropNouveau:
		return hosttest.Answer{Status: 1, Stderr: "modprobe: FATAL: Module nouveau is in use."}, true
	case said:
		a.Stdout = "kernel: NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0xffff:1290)\n"
	default:
		if !strings.Contains(cmd.Args[2], "apt-cache policy") {
			return b.services(cmd.Args[2], args)
		}
		for _, name := range args {
			v := b.archive[name]
			if v == "" {
				v = "(none)"
			}
			a.Stdout += fmt.Sprintf("%s:\n  Installed: (none)\n  Candidate: %s\n  Version table:\n", name, v)
			for _, other := range b.versions[name] {
				a.Stdout += "     " + other + " 500\n        500 http://archive  Packages\n"
			}
		}
	}
	return a, true
}

func (b *box) services(script string, args []string) (hosttest.Answer, bool) {
	switch script {
	case enable:
		b.units[args[0]] = "active enabled"
	case disable:
		b.units[args[0]] = "inactive disabled"
	case setUnit:
		now, boot, _ := strings.Cut(b.units[args[0]], " ")
		if b.units[args[0]] == "" {
			return hosttest.Answer{Stdout: "Failed to start: Unit not found.\n", Status: 5}, true
		}
		boot = cmp.Or(map[string]string{"enable": "enabled", "disable": "disabled"}[args[1]], boot)
		now = cmp.Or(map[string]string{"start": "active", "stop": "inactive"}[args[2]], now)
		b.units[args[0]] = now + " " + boot
	case stopUnits:
		for _, u := range args {
			b.stopped = append(b.stopped, u)
			b.units[u] = "inactive" + strings.TrimPrefix(b.units[u], "active")
			b.users = slices.DeleteFunc(b.users, func(l string) bool { return services[strings.Split(l, "\t")[1]] == u })
		}
	case endProcesses:
		b.users = slices.DeleteFunc(b.users, func(l string) bool { return slices.Contains(args, strings.Split(l, "\t")[0]) })
	case again:
		for _, u := range args {
			_, file, _ := strings.Cut(b.units[u], " ")
			b.units[u] = "active " + file
		}
		b.stopped = nil
	case restartContainerd:
		b.unread, b.runtime = false, string(b.Files[RuntimeFile].Content)
	case refresh:
		b.cdi[newCDIFile] = b.loaded
	case generate:
		b.cdi[args[0]] = b.loaded
	case absent, initramfs, autoinstall, `rmdir -- "$@" 2>/dev/null || :`:
		if script == autoinstall {
			b.kernels[args[0]] = State{Packages: b.packages}.Installed()
		}
	default:
		return hosttest.Answer{}, false
	}
	return hosttest.Answer{}, true
}

// hooks install what is wanted at a version, as apt and dkms would.
func (b *box) hooks(version string, open bool) Hooks {
	return Hooks{
		Install: func(_ context.Context, w Target) error {
			b.installs = append(b.installs, w)
			for _, name := range w.Remove {
				delete(b.packages, name)
			}
			for _, p := range w.Packages {
				v := version + "-1"
				switch {
				case strings.Contains(p.Name, "container"):
					v = strings.TrimSuffix(p.Version, "*") + "1"
				case strings.HasPrefix(p.Name, "linux-"):
					v = "1"
				}
				b.packages[p.Name] = v
			}
			if len(w.Packages) > 1 || w.Pin == "" {
				b.packages["libnvidia-compute"] = version + "-1"
				b.packages["dkms"] = "3"
				b.units[persistenced] = first(b.units[persistenced], "inactive disabled")
				b.open = open
				for k := range b.kernels {
					b.kernels[k] = version
				}
			}
			return nil
		},
		Drain:  func(context.Context) error { b.drains++; return nil },
		Reboot: func(context.Context) error { b.reboot(); return nil },
	}
}

// reboot is another life: nothing is loaded but what starts by itself.
func (b *box) reboot() {
	b.reboots++
	b.running, b.loaded, b.users, b.stopped, b.stuck, b.unread = b.next, "", nil, nil, false, false
	b.runtime = string(b.Files[RuntimeFile].Content)
	if _, off := b.Files[NouveauFile]; off || b.off {
		b.nouveau = false
	}
	for u, s := range b.units {
		if strings.HasSuffix(s, " enabled") {
			b.units[u] = "active enabled"
		}
	}
	delete(b.cdi, newCDIFile)
}

// first is the first of the words that says anything.
func first(words ...string) string { return cmp.Or(words...) }
