package nvidia

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Names of units.
const (
	persistenced   = "nvidia-persistenced.service"
	fabricmanager  = "nvidia-fabricmanager.service"
	hostengine     = "nvidia-dcgm.service"
	cdiRefresh     = "nvidia-cdi-refresh.service"
	cdiRefreshPath = "nvidia-cdi-refresh.path"
	kubelet        = "kubelet.service"
	containerd     = "containerd.service"
)

// Diff returns the differences between the declared driver and the machine, and
// the disruption of fixing them. Package packages compares packages; here only
// their result counts.
func Diff(want Spec, have State) []host.Change {
	d := differ{want: want, have: have}
	d.driver()
	d.kernels()
	d.answers()
	d.fabric()
	d.toolkit()
	d.keeping()
	for _, u := range have.Stopped {
		d.add("unit "+u, nil, "stopped", "running", host.None)
	}
	return d.changes
}

type differ struct {
	want    Spec
	have    State
	changes []host.Change
}

func (d *differ) add(fact string, path []string, have, want string, disruption host.Disruption) {
	d.changes = append(d.changes, host.Change{Fact: fact, Path: path, Have: have, Want: want, Disruption: disruption})
}

func (d *differ) exchange() host.Disruption {
	switch {
	case d.have.NouveauBusy && d.have.Loaded == "":
		return host.Reboots
	case d.have.Loaded == "":
		return host.ReloadsSystemd // the packages' scripts do
	case (len(d.have.ForeignProcesses()) > 0 || d.have.stuck() != "") && d.want.Reboot == IfNeeded:
		return host.Reboots
	}
	return host.Drains
}

// MayReboot reports whether Apply may turn out to need a reboot, and is allowed
// one, where Diff knows of none: a module may not let itself be exchanged.
func MayReboot(want Spec, have State) bool {
	if want.Reboot != IfNeeded {
		return false
	}
	if have.Loaded == "" {
		return len(Diff(want, have)) > 0
	}
	return have.exchanges(want)
}

// exchanges reports whether the kernel must load another module, or the present
// one again.
func (s State) exchanges(want Spec) bool {
	d := differ{want: want, have: s}
	d.driver()
	d.answers()
	return s.Loaded != "" && len(d.changes) > 0
}

func flavour(open bool) string {
	if open {
		return Open
	}
	return Proprietary
}

func (d *differ) driver() {
	installed := d.have.Installed()
	if !d.want.satisfied(installed) {
		d.add("driver", []string{"version"}, installed, d.want.versionText(), d.exchange())
	}
	if k := d.have.kernel(d.have.Kernel.Running); d.have.Loaded != "" && d.have.LoadedOpen != (d.want.Modules == Open) {
		d.add("kernel modules", []string{"modules"}, flavour(d.have.LoadedOpen), d.want.Modules, d.exchange())
	} else if d.have.Loaded == "" && k.Version != "" && (k.License != "NVIDIA") != (d.want.Modules == Open) {
		d.add("kernel modules", []string{"modules"}, flavour(k.License != "NVIDIA"), d.want.Modules, d.exchange())
	}
	if d.want.satisfied(installed) && d.have.Loaded != installed {
		disruption := d.exchange()
		if d.have.Loaded == "" && !d.have.Nouveau {
			disruption = host.None
		}
		d.add("driver in the kernel", nil, d.have.Loaded, installed, disruption)
	}
}

// version returns the version that belongs to the driver: the installed one, if it
// is the declared one.
func (d *differ) version() string {
	if installed := d.have.Installed(); d.want.satisfied(installed) {
		return installed
	}
	return d.want.versionText()
}

// kernels compares the modules of the kernels that run and boot. A kernel that
// an update brought without a module would come up without GPUs.
func (d *differ) kernels() {
	want := d.version()
	for _, release := range d.have.neededPackages() {
		k := d.have.kernel(release)
		if k.Version != "" && (k.Version == want || !d.want.satisfied(d.have.Installed()) && d.want.satisfied(k.Version)) {
			continue
		}
		role := "runs"
		if release == d.have.Kernel.Next && release != d.have.Kernel.Running {
			role = "boots next"
		}
		d.add(fmt.Sprintf("module of kernel %s, which %s", release, role), nil, k.Version, want, host.None)
	}
}

func (d *differ) answers() {
	if d.have.Loaded == "" || !d.want.satisfied(d.have.Installed()) {
		return // it cannot answer before it is loaded
	}
	n := len(d.have.Devices)
	switch {
	case d.have.Smi != "":
		d.add("nvidia-smi", nil, d.have.Smi, fmt.Sprintf("lists %d GPUs", n), d.exchange())
	case len(d.have.GPUs) != n:
		d.add("GPUs that the driver lists", nil, strconv.Itoa(len(d.have.GPUs)), strconv.Itoa(n), d.exchange())
	}
}

func (d *differ) fabric() {
	if !d.have.fabricManager(d.want) {
		return
	}
	if is, agreed := d.have.Installed(), d.want.agree(d.have); agreed != "" && agreed != is && d.want.satisfied(is) {
		d.add("driver of the fabric manager's version", nil, is, agreed, d.exchange())
	}
	version := ""
	for name, v := range d.have.Packages {
		if strings.HasPrefix(name, "nvidia-fabricmanager") && !strings.Contains(name, "-dev") {
			version = upstream(v)
		}
	}
	want := d.version() // to the letter, or it refuses to start
	u := d.have.Units[fabricmanager]
	switch {
	case version != want && !(version != "" && !d.want.satisfied(d.have.Installed()) && d.want.satisfied(version)):
		disruption := host.ReloadsSystemd
		if version != "" {
			disruption = host.Drains
		}
		d.add("fabric manager", []string{"fabric_manager"}, version, want, disruption)
	case !u.runs():
		d.add("fabric manager", []string{"fabric_manager"}, u.word(), "running and enabled", host.None)
	}
}

func (d *differ) toolkit() {
	if d.want.Toolkit == "" {
		return
	}
	if have := upstream(d.have.Packages["nvidia-container-toolkit"]); have != d.want.Toolkit {
		d.add("container toolkit", []string{"toolkit"}, have, d.want.Toolkit, host.ReloadsSystemd)
	}
	if d.have.Unread && d.have.Units[containerd].Active {
		d.add("containerd", []string{"toolkit"}, "runs without "+RuntimeFile, "with it", host.RestartsContainer)
	}
	if loaded := d.have.Loaded; loaded != "" && d.want.satisfied(loaded) && d.have.CDI[d.want.cdiFile()] != loaded {
		have := d.have.CDI[d.want.cdiFile()]
		if _, there := d.have.CDI[d.want.cdiFile()]; there && have == "" {
			have = "of no driver"
		}
		d.add("CDI specification", nil, have, loaded, host.None)
	}
}

func (d *differ) keeping() {
	if free := d.have.notHeld(); len(free) > 0 {
		d.add("packages held", nil, "not "+strings.Join(free, " "), "all", host.None)
	}
	d.changes = append(d.changes, diffFiles(d.want, d.have)...)
	if d.want.NoNouveau && len(d.have.OldInitrd) > 0 {
		d.add("initramfs", nil, "older than the blacklist: "+strings.Join(d.have.OldInitrd, " "), "newer", host.None)
	}
	d.changes = append(d.changes, diffServices(d.want, d.have)...)
}

// runs reports whether the unit runs, now and after a reboot. A static unit is
// started by others: Ubuntu's persistence daemon by udev.
func (u Unit) runs() bool { return u.Active && (u.Enabled || u.File == "static") }

func (u Unit) word() string {
	switch {
	case !u.Exists:
		return ""
	case u.Active && u.Enabled:
		return "running and enabled"
	case u.Active:
		return "running, not enabled"
	case u.Enabled:
		return "stopped"
	}
	return "stopped and not enabled"
}
