package nvidia

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// Problem is something that stands in the way of the declared driver, found
// before anything is changed.
type Problem struct {
	Summary string // at most eight words
	Detail  string // what to do next
	// Warning says that it does not stand in the way, but may be unexpected.
	Warning bool
}

// What installing a driver takes, in KiB: packages and dkms' build tree under
// /usr and /var, a new initramfs with the modules' firmware in /boot.
const (
	needUsr  = 4 << 20
	needVar  = 3 << 20
	needBoot = 256 << 10
)

// Check reports all obstacles to the declared driver on the machine, not only
// the first. managed is set if stoke has installed the present driver.
func Check(want Spec, have State, managed bool) []Problem {
	c := checker{want: want, have: have}
	if err := want.Validate(); err != nil {
		c.problem("The driver is declared wrongly", "%v.", err)
		return c.found
	}
	c.gpus()
	c.system()
	c.rivals()
	c.changes = !have.ready(want)
	if c.changes {
		c.kernels()
		c.secureBoot()
		c.disk()
		c.checkForeign(managed)
		c.available()
		c.fabricVersion()
	}
	c.reboot()
	c.containers()
	return c.found
}

func (s State) ready(want Spec) bool {
	if !want.satisfied(s.Installed()) || s.Loaded != s.Installed() || s.LoadedOpen != (want.Modules == Open) {
		return false
	}
	for _, k := range s.neededPackages() {
		if s.kernel(k).Version != s.Installed() {
			return false
		}
	}
	return true
}

type checker struct {
	want    Spec
	have    State
	changes bool
	found   []Problem
}

func (c *checker) problem(summary, detail string, args ...any) {
	c.found = append(c.found, Problem{Summary: summary, Detail: fmt.Sprintf(detail, args...)})
}

func (c *checker) warn(summary, detail string, args ...any) {
	c.found = append(c.found, Problem{Summary: summary, Detail: fmt.Sprintf(detail, args...), Warning: true})
}

func (c *checker) gpus() {
	gpus := c.have.Devices
	if len(gpus) == 0 {
		if c.rival(rivalTegra) != "" {
			return // others says so
		}
		c.problem("No NVIDIA GPU found", "The PCI bus has no display or 3D controller of vendor 10de. Take this host out of metal_gpu_driver, or look at the firmware's settings (above 4G decoding, PCIe slots) and, in a virtual machine, at the passthrough.")
		return
	}
	seen := map[uint16]bool{}
	for _, d := range gpus {
		if !seen[d.ID] {
			seen[d.ID] = true
			c.gpu(d)
		}
		if d.Driver == "vfio-pci" {
			c.problem("A GPU is given to virtual machines", "%s at %s is bound to vfio-pci. Remove that binding (kernel command line, /etc/modprobe.d) to use it on the host.", d.Name(), d.Address)
		}
	}
	c.fabric()
}

func (c *checker) gpu(d Device) {
	a := d.Architecture()
	newest, oldest := branches[a].newest, d.oldest()
	switch {
	case a == Unknown:
		c.warn("An unknown GPU", "%s at %s is in no list of this version of stoke, and so not checked against branch %s.", d.Name(), d.Address, c.want.Branch)
	case newest != 0 && c.want.branch() > newest:
		c.problem("The branch is too new for the GPU", "%s (%s) is driven by branches up to %d, not by %s. Set branch = \"%d\".", d.Name(), a, newest, c.want.Branch, newest)
	case c.want.branch() < oldest:
		c.problem("The branch is too old for the GPU", "%s (%s) is driven by branch %d and later, not by %s.", d.Name(), a, oldest, c.want.Branch)
	}
	switch {
	case c.want.Modules == Open && d.tooOldForOpen():
		c.problem("The GPU needs the proprietary modules", "%s (%s) is older than Turing, and the open kernel modules do not drive it. Set modules = \"proprietary\".", d.Name(), a)
	case c.want.Modules == Proprietary && d.needsOpen():
		c.problem("The GPU needs the open modules", "%s (%s) is driven by the open kernel modules only. Set modules = \"open\".", d.Name(), a)
	}
}

func (c *checker) system() {
	s := c.have
	if !slices.Contains(facts.Supported(), s.OS+" "+s.Release) {
		c.problem("The operating system is not supported", "It is %s %s; Ubuntu 22.04 and 24.04, Debian 12 and 13 are.", s.OS, s.Release)
	}
	if s.Arch != "amd64" && s.Arch != "arm64" {
		c.problem("The architecture is not supported", "A driver for %s does not exist.", s.Arch)
	}
}

// kernels checks that there are modules, or what they are built with, for the
// kernels that run and boot.
func (c *checker) kernels() {
	s := c.have
	if !s.kernel(s.Kernel.Running).Modules {
		c.problem("The running kernel's modules are gone", "/lib/modules/%s does not exist, so that no module can be "+
			"loaded into the running kernel. Reboot the machine into an installed kernel first.", s.Kernel.Running)
	}
	if s.Kernel.DecidedBy == "running" {
		c.warn("The next kernel is not known", "Neither GRUB's configuration nor /boot says which kernel boots next; only the running one, %s, is checked.", s.Kernel.Running)
	}
	if len(s.offers) == 0 {
		return
	}
	for _, k := range s.neededPackages() {
		have := s.kernel(k)
		if have.Version != "" && c.want.satisfied(have.Version) && (have.License == "NVIDIA") == (c.want.Modules == Proprietary) {
			continue
		}
		name := "linux-headers-" + k
		what, instead := "headers", "Install the headers of that kernel by hand, or boot another kernel."
		if c.want.precompiled(s) {
			name = c.modulesFor(k)
			what, instead = "driver modules", "Boot a kernel that has them (apt-cache search "+strings.TrimSuffix(name, "-"+k)+"), or set source = \"nvidia\", which builds them."
		} else if have.Headers {
			continue
		}
		if s.offers[name].Candidate == "" && s.Packages[name] == "" {
			role := "runs"
			if k != s.Kernel.Running {
				role = "boots next (" + map[string]string{"grub": "GRUB's configuration", "link": "the link vmlinuz", "newest": "the newest image in /boot"}[s.Kernel.DecidedBy] + ")"
			}
			c.problem("No "+what+" for a kernel", "Kernel %s, which %s, has no %s, and apt knows no package %s. %s If apt's lists are old, run apt-get update.", k, role, what, name, instead)
		}
	}
}

func (c *checker) modulesFor(kernel string) string {
	name := "linux-modules-nvidia-" + c.want.Branch
	if c.want.Server {
		name += "-server"
	}
	if c.want.Modules == Open {
		name += "-open"
	}
	return name + "-" + kernel
}

func (c *checker) secureBoot() {
	if c.have.SecureBoot && !c.want.precompiled(c.have) && !c.have.MOK {
		c.problem("Secure Boot refuses unsigned modules", "Modules that dkms builds are signed with a key made on the "+
			"machine, and the firmware does not know it. Enrol it (mokutil --import /var/lib/dkms/mok.pub, then confirm at the console on the next boot), use Ubuntu's signed modules (source = \"distribution\"), or switch Secure Boot off.")
	}
}

func (c *checker) disk() {
	for _, d := range []struct {
		dir  string
		need int64
	}{{"/usr", needUsr}, {"/var", needVar}, {"/boot", needBoot}} {
		if free, known := c.have.Free[d.dir]; known && free < d.need {
			c.problem("Too little free disk space", "%s has %d MiB free; a driver takes %d MiB there.", d.dir, free>>10, d.need>>10)
		}
	}
}

// rival is the file that gives a rival of a kind away; "" for none.
func (c *checker) rival(kind string) string {
	i := slices.IndexFunc(c.have.Rivals, func(r Rival) bool { return r.Kind == kind })
	if i < 0 {
		return ""
	}
	return c.have.Rivals[i].File
}

// rivals looks for drivers that do not come from packages of the machine. GPU
// Operator mounts its driver container's files at /run/nvidia/driver and needs
// a setting if the host has a driver (its documentation, "Pre-Installed NVIDIA
// GPU Drivers"); the vGPU software contains both programs (Virtual GPU Software
// User Guide); Jetson Linux names its release in /etc/nv_tegra_release.
func (c *checker) rivals() {
	for _, r := range []struct{ kind, summary, detail string }{
		{rivalOperator, "GPU Operator brings the driver", "%s shows that a container of GPU Operator's has loaded it. Set driver.enabled=false there and wait until its driver pods have gone, or take this machine out of metal_gpu_driver."},
		{rivalHost, "The machine shares out its GPUs", "%s is of the vGPU manager, whose driver is not this one. Take this machine out of metal_gpu_driver."},
		{rivalGuest, "The GPU is a share of one", "%s is of the vGPU guest driver, which the NVIDIA licensing portal " +
			"provides and which has to match the host's driver. Take this machine out of metal_gpu_driver."},
		{rivalTegra, "The machine is a Jetson", "%s: its driver is a part of Jetson Linux. Take this machine out of metal_gpu_driver."},
	} {
		if f := c.rival(r.kind); f != "" {
			c.problem(r.summary, r.detail, f)
		}
	}
}

func (c *checker) checkForeign(managed bool) {
	s := c.have
	if s.RunFile != "" {
		c.problem("A driver from a .run file", "%s was left by NVIDIA's installer, whose files no package knows. Run nvidia-uninstall on the machine first.", s.RunFile)
	}
	for _, p := range s.Pins {
		if !strings.HasPrefix(p.Owner, pinning) {
			who := "an unknown program"
			if p.Owner != "" {
				who = "the package " + p.Owner
			}
			c.problem("The driver is pinned by another program", "%s, written by %s, has %q. Remove that preference, or declare what it says.", p.File, who, p.Line)
		}
	}
	if managed {
		return
	}
	if held := ofDriver(s.heldPackages()); len(held) > 0 {
		c.problem("The driver is held by a user", "Held: %s. Release them (apt-mark unhold %[1]s), or declare the version that is there, %s.", strings.Join(held, " "), cmp.Or(s.Installed(), "none"))
	}
}

// available compares what is declared with what apt would install. Packages of
// a repository that is not there yet have no candidate.
func (c *checker) available() {
	w, err := c.want.Want(c.have)
	if err != nil || len(c.have.offers) == 0 {
		return
	}
	var missing, other []string
	for _, p := range w.Packages {
		have := c.have.offers[p.Name].Candidate
		switch {
		case c.want.Source == NVIDIA || p.Version == "" && strings.HasPrefix(p.Name, "linux-"): // kernels looks at those
		case strings.Contains(p.Name, "container"): // of the toolkit's repository
		case have == "" && c.have.Packages[p.Name] == "":
			missing = append(missing, p.Name)
		case have != "" && p.Version != "" && !slices.ContainsFunc(all(c.have.offers[p.Name]), func(v string) bool { return packages.Matches(p.Version, v) }) && !c.want.satisfied(upstream(c.have.Packages[p.Name])):
			other = append(other, p.Name+" "+have)
		}
	}
	if len(other) > 0 {
		c.problem("The distribution has another version", "apt would install %s, not %s. Declare a version that the distribution has, or set source = \"nvidia\".", strings.Join(other, ", "), c.want.versionText())
	}
	if len(missing) > 0 {
		how := "Set a branch that the distribution has (apt-cache search nvidia-headless-no-dkms), or source = \"nvidia\"."
		if c.have.OS == "debian" {
			how = "Add the components contrib, non-free and non-free-firmware to the machine's sources (or give debian_repository), or set source = \"nvidia\"."
		}
		c.problem("The distribution lacks the driver", "apt knows no %s. %s", strings.Join(missing, ", "), how)
	}
}

// reboot looks at what only a reboot can change, and at what does not outlive an
// exchange of the modules.
func (c *checker) reboot() {
	s := c.have
	if c.changes && s.Loaded != "" && !s.keepsModules(c.want) {
		var split []string
		for _, g := range s.GPUs {
			if g.MIG {
				split = append(split, strconv.Itoa(g.Index))
			}
		}
		if len(split) > 0 { // instances never do, and the mode does not from Hopper on (MIG User Guide, "Enable MIG Mode")
			c.warn("GPUs lose their MIG instances", "GPU %s is split into instances, which do not outlive an exchange of the driver. "+
				"Have nvidia-mig-parted or GPU Operator's MIG manager make them again.", strings.Join(split, ", "))
		}
	}
	if c.want.Reboot != Never {
		return
	}
	if s.NouveauBusy && s.Loaded == "" {
		c.problem("nouveau drives the GPUs", "It cannot be unloaded while a console uses it, and then NVIDIA's driver "+
			"does not load. Set reboot = \"if-needed\", or reboot the machine by hand once nouveau is blacklisted.")
	}
	if !c.changes || s.Loaded == "" || s.keepsModules(c.want) {
		return
	}
	if why := s.stuck(); why != "" {
		c.problem("Modules keep the driver loaded", "The modules cannot be exchanged while %s. Unload it, or set reboot = \"if-needed\".", why)
	}
	if users := s.ForeignProcesses(); len(users) > 0 {
		c.problem("Processes keep the driver loaded", "The modules cannot be exchanged while %s. Stop them, or set reboot = \"if-needed\".", describe(users))
	}
}

// keepsModules reports whether the module in the kernel is the declared one, so
// that it need not be exchanged whatever else is missing.
func (s State) keepsModules(want Spec) bool {
	return s.Loaded != "" && want.satisfied(s.Loaded) && s.LoadedOpen == (want.Modules == Open)
}

func describe(users []User) string {
	var all []string
	for i, u := range users {
		if i == 5 {
			all = append(all, fmt.Sprintf("%d more", len(users)-i))
			break
		}
		all = append(all, fmt.Sprintf("%s (process %d) uses %s", u.Name, u.PID, u.Device))
	}
	return strings.Join(all, ", ")
}

func (c *checker) containers() {
	ctd := c.have.Containerd
	if c.want.Toolkit == "" || !ctd.Configured {
		return
	}
	if !ctd.Imports {
		c.problem("containerd does not read conf.d", "/etc/containerd/config.toml imports no files of /etc/containerd/conf.d, where the runtime nvidia is declared. Let metal_host manage it, or add imports = [\"/etc/containerd/conf.d/*.toml\"].")
	}
	if ctd.Version < 3 {
		c.problem("containerd's configuration is too old", "/etc/containerd/config.toml has version %d, and a file of version 3 in conf.d would keep containerd from starting. Containerd 2 is needed, whose configuration has version 3: set containerd_package of metal_host to version \"2.2\", and containerd.", ctd.Version)
	}
}
