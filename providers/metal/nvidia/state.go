package nvidia

import (
	"maps"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/packages"
	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/pattern"
)

// State is a machine as it is, as far as its GPUs and their driver go.
type State struct {
	OS, Release, Codename string       // as in os-release: ubuntu, 24.04, noble
	Arch                  string       // as dpkg calls it
	Devices               []Device     // NVIDIA's GPUs
	NVSwitch              bool         // they hang on a switch
	Kernel                facts.Kernel // which runs and which boots next
	Kernels               []Kernel

	Health gpu.Health // of the GPUs, where the driver is loaded

	Loaded      string // version of the module in the kernel; "" for none
	LoadedOpen  bool
	Nouveau     bool // loaded
	NouveauBusy bool // and, as far as is known, in use
	NouveauOff  bool // blacklisted, by whomever
	GPUs        []GPU
	Smi         string // why nvidia-smi failed; "" when it did not, or was not asked
	Users       []User
	SecureBoot  bool
	MOK         bool     // dkms' signing key is enrolled
	RunFile     string   // what NVIDIA's .run installer left; "" for nothing
	Rivals      []Rival  // drivers that are somebody else's business
	Holders     []string // modules that use the driver's
	Displays    bool     // something has nvidia_drm open
	Packages    map[string]string
	Held        []string
	Pins        []Pin
	Free        map[string]int64 // KiB, by directory
	Units       map[string]Unit
	CDI         map[string]string // CDI specifications: file to the driver's version in it
	Containerd  Containerd
	Files       map[string]string         // this package's files; those that there are not are absent
	OldInitrd   []string                  // initramfs files older than the blacklist
	Stopped     []string                  // units that a change has stopped and not started again
	Unread      bool                      // containerd runs without what RuntimeFile says
	offers      map[string]packages.Offer // what apt has of the packages that want is about
}

// Kernel is an installed kernel.
type Kernel struct {
	Release string
	Image   bool   // there is an image in /boot
	Modules bool   // there are modules
	Headers bool   // there are headers to build modules with
	Version string // of its nvidia module; "" for none
	License string // NVIDIA for the proprietary module
}

// GPU is one that the driver itself lists.
type GPU struct {
	Index  int
	Bus    string // domain:bus:device.function, in lower case, as Device.Address
	Name   string
	UUID   string
	Memory int64 // MiB
	Driver string
	MIG    bool // it is split into instances
}

// Rival is a driver that came by another way than packages of this machine.
type Rival struct{ Kind, File string }

// Kinds of rivals.
const (
	rivalOperator = "operator"   // GPU Operator's driver, in a container
	rivalHost     = "vgpu-host"  // the vGPU manager of a hypervisor
	rivalGuest    = "vgpu-guest" // the driver for a share of a GPU
	rivalTegra    = "tegra"      // Jetson's, which is part of its system
)

// User is a process that has a GPU's device open.
type User struct {
	PID       int
	Name      string
	Device    string
	Container string // id of the kubelet's container that it runs in; "" for none
}

// Pin is an apt preference about the driver.
type Pin struct{ File, Owner, Line string }

// Unit is the state of a systemd unit.
type Unit struct {
	Exists, Active bool
	Enabled        bool
	File           string // what systemctl is-enabled says, such as enabled or static
}

// Containerd is what matters here of containerd's configuration.
type Containerd struct {
	Configured bool // there is a config.toml
	Version    int  // of config.toml; 1 where it says nothing
	Imports    bool // it imports conf.d
}

// fabric are the fabric manager's package and nvlsm, where the fabric needs that, too.
func (s State) fabric(manager Package) []Package {
	if s.NVSwitch && slices.ContainsFunc(s.Devices, Device.fabric) {
		return []Package{manager, {Name: "nvlsm"}}
	}
	return []Package{manager}
}

func (s State) fabricManager(want Spec) bool {
	return want.FabricManager == Always || want.FabricManager == Auto && s.NVSwitch
}

func (s State) kernel(release string) Kernel {
	if i := slices.IndexFunc(s.Kernels, func(k Kernel) bool { return k.Release == release }); i >= 0 {
		return s.Kernels[i]
	}
	return Kernel{Release: release}
}

func (s State) neededPackages() []string {
	if s.Kernel.Next == s.Kernel.Running {
		return []string{s.Kernel.Running}
	}
	return []string{s.Kernel.Running, s.Kernel.Next}
}

// driverPackage matches the packages of driver, toolkit and fabric.
var driverPackage = pattern.New(`^(lib)?nvidia-|^libnvidia|^linux-(modules|objects|signatures)-nvidia-|^cuda-drivers|^libcuda1$|^nvlsm$|^xserver-xorg-video-nvidia|^firmware-nvidia-gsp`)

func ofDriver(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !driverPackage.MatchString(name) })
}

// Driver lists the installed packages of driver, toolkit and fabric, sorted.
func (s State) Driver() []string {
	return ofDriver(slices.Sorted(maps.Keys(s.Packages)))
}

// Installed is the version of the installed driver without its packages'
// revision, by the library that talks to the kernel; "" for none.
func (s State) Installed() string {
	best := ""
	for name, version := range s.Packages {
		if name == "libcuda1" || strings.HasPrefix(name, "libnvidia-compute") || strings.HasPrefix(name, "nvidia-utils") || name == "nvidia-smi" {
			if v := upstream(version); versionForm.MatchString(v) && packages.Compare(v, best) > 0 {
				best = v
			}
		}
	}
	return best
}

func upstream(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	version, _, _ = strings.Cut(version, "-")
	version, _, _ = strings.Cut(version, "~")
	return version
}

// metapackages are the installed packages that bring new kernels: of each flavour the image, the headers
// and the package of both.
func (s State) metapackages() []string {
	var names []string
	for _, f := range s.flavours() {
		for _, name := range []string{"linux-" + f, "linux-headers-" + f, "linux-image-" + f} {
			if s.Packages[name] != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// builtFor begins the names of packages with modules that were built for one kernel.
var builtFor = []string{"linux-modules-nvidia-", "linux-objects-nvidia-", "linux-signatures-nvidia-"}

// kernels are the metapackages where the driver's modules come built. Such modules are held with the
// driver: a kernel that an update brings has none, and the machine would be without its GPUs after the
// next reboot. So kernels are held with them. Modules that dkms builds follow each kernel by themselves.
func (s State) kernels() []string {
	for name := range s.Packages {
		if slices.ContainsFunc(builtFor, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return s.metapackages()
		}
	}
	return nil
}

// Waiting describes the kernels that wait for the driver, each with the command that brings it.
func (s State) Waiting() []string {
	var all []string
	for _, name := range s.kernels() {
		flavour, image := strings.CutPrefix(name, "linux-image-")
		offer, is := s.offers[name].Candidate, s.Packages[name]
		if !image || offer == "" || packages.Compare(offer, is) <= 0 {
			continue
		}
		var install []string
		for _, kernel := range s.kernels() { // they depend on each other by their versions
			if strings.HasSuffix(kernel, name[len("linux-image"):]) {
				install = append(install, kernel)
			}
		}
		for _, module := range s.Driver() {
			series, ours := strings.CutSuffix(module, "-"+flavour)
			if ours && strings.HasPrefix(module, builtFor[0]) && !strings.Contains(series, ".") { // not of one kernel
				install = append(install, module)
			}
		}
		all = append(all, name+" "+is+" waits at its version, and "+offer+" is available: kernels are held with the driver's modules. "+
			"Install these, and reboot: apt-get install --allow-change-held-packages "+strings.Join(install, " "))
	}
	return all
}

// notHeld and held are the packages of the driver, and the kernels, that are not held and that are.
func (s State) notHeld() []string {
	return slices.DeleteFunc(slices.Concat(s.Driver(), s.kernels()), s.holds)
}

func (s State) heldPackages() []string {
	return slices.DeleteFunc(slices.Concat(s.Driver(), s.kernels()), func(name string) bool { return !s.holds(name) })
}

func (s State) holds(name string) bool { return slices.Contains(s.Held, name) }

// services are processes that hold the driver and are known to go when asked.
var services = map[string]string{
	"nvidia-persiste": "nvidia-persistenced.service", // the kernel cuts a process's name to 15 bytes
	"nv-fabricmanage": "nvidia-fabricmanager.service",
	"nv-hostengine":   "nvidia-dcgm.service",
}

// ForeignProcesses are the processes that use a GPU and are neither a service of the
// driver nor in a container, which the kubelet would start again: only their owner
// can stop them.
func (s State) ForeignProcesses() []User {
	return slices.DeleteFunc(slices.Clone(s.Users), func(u User) bool { return u.Container != "" || services[u.Name] != "" })
}

// own are the driver's modules and those that unload takes out with them.
var own = []string{"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem", "nvidia_fs", "gdrdrv", "nv_peer_mem"}

// stuck says which modules unload cannot take out of the kernel's way; "" for
// none, as far as one can see.
func (s State) stuck() string {
	for _, h := range s.Holders {
		if !slices.Contains(own, h) {
			return "the module " + h + " uses them"
		}
	}
	if s.Displays {
		return "a display uses nvidia_drm"
	}
	return ""
}
