package nvidia

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Keys that packages are signed with, by the fingerprint of the primary key.
const (
	driverKey   = "EB693B3035CD5710E231E123A4B469963BF863CC" // NVIDIA's CUDA repositories, file 3bf863cc.pub
	debian13Key = "02182E60104FCDC26EAE1B8597A5D4CB8793F200" // the one for Debian 13, file 8793F200.pub
	toolkitKey  = "C95B321B61E88C1809C4F759DDCAE044F796ECB0" // nvidia.github.io/libnvidia-container
)

// Where NVIDIA's packages come from, as all of these URLs begin.
const (
	DriverURL  = "https://developer.download.nvidia.com/compute/cuda/repos" // CUDA, too
	ToolkitURL = "https://nvidia.github.io/libnvidia-container"
)

// Source is an apt repository that packages come from.
type Source struct {
	Name        string // what it is called in messages and file names
	URL         string
	Suite       string // "/" for a flat repository
	Components  []string
	KeyURL      string
	Fingerprint string
}

// Package is a package to install.
type Package struct {
	Name    string
	Version string // an exact version, or a pattern that ends in "*"; "" for any
}

// Target is what a declared driver means on a machine, for whoever installs it.
// Every package of driver, toolkit and fabric is held by Apply itself.
type Target struct {
	Sources []Source
	// Pin is the package that keeps NVIDIA's repository to the branch or version.
	// It has to be there before apt chooses the others.
	Pin      string
	Packages []Package
	// Pinned are patterns of the names of all that belongs to the driver, and its
	// version: what it needs asks for no more than "at least", and the pin, which
	// is NVIDIA's, may say another thing than its name.
	Pinned []Package
	// Remove are installed packages of another driver, which stand in the way.
	Remove []string
}

// pinning begins the names of NVIDIA's packages that keep to a branch or version.
const pinning = "nvidia-driver-pinning-"

func (w Target) hasPackage(name string) bool {
	return slices.ContainsFunc(w.Packages, func(p Package) bool { return p.Name == name })
}

// Want says which packages the declared driver means on this machine. It needs
// no candidates.
func (s Spec) Want(have State) (Target, error) {
	var w Target
	s.agreed = s.agree(have)
	switch {
	case s.Source == NVIDIA:
		w = s.fromNVIDIA(have)
	case have.OS == "ubuntu":
		w = s.fromUbuntu(have)
	case have.OS == "debian":
		w = s.fromDebian(have)
	default:
		return w, fmt.Errorf("no driver is known for %s %s: Ubuntu and Debian are supported", have.OS, have.Release)
	}
	if s.Toolkit != "" {
		w.Sources = append(w.Sources, s.toolkitSource(have))
		for _, name := range []string{"nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1"} {
			w.Packages = append(w.Packages, Package{name, s.Toolkit + "-*"})
		}
	}
	w.Remove = s.remove(have, w)
	w.Packages = append(w.Packages, s.dependencies(have, w)...)
	return w, nil
}

// dependencies are the installed packages that belong to the driver although
// nobody named them: they are held, and have to change their version together
// with it. One that the new version no longer has is left out.
func (s Spec) dependencies(have State, w Target) []Package {
	installed := have.Installed()
	var all []Package
	for _, name := range have.Driver() {
		version := have.Packages[name]
		switch {
		case w.hasPackage(name) || slices.Contains(w.Remove, name):
		case installed == "" || upstream(version) != installed: // it has versions of its own
		case s.satisfied(version), slices.ContainsFunc(have.offers[name].Versions, s.satisfied):
			all = append(all, Package{name, s.pattern()})
		}
	}
	return all
}

// fromUbuntu is the archive's driver: modules that Canonical has built and
// signed for each kernel, and the user space without a display.
func (s Spec) fromUbuntu(have State) Target {
	series := s.Branch
	if s.Server {
		series += "-server"
	}
	user := series
	if s.Modules == Open {
		series += "-open"
	}
	pattern := ""
	if s.Version != "" || s.agreed != "" {
		pattern = s.pattern()
	}
	w := Target{Packages: []Package{
		{"nvidia-headless-no-dkms-" + series, pattern},
		{"nvidia-utils-" + user, pattern},
		{"libnvidia-compute-" + user, pattern},
	}}
	for _, f := range have.flavours() {
		w.Packages = append(w.Packages, Package{Name: "linux-modules-nvidia-" + series + "-" + f})
	}
	for _, k := range have.neededPackages() {
		w.Packages = append(w.Packages, Package{Name: "linux-modules-nvidia-" + series + "-" + k})
	}
	if have.fabricManager(s) {
		w.Packages = append(w.Packages, have.fabric(Package{"nvidia-fabricmanager-" + s.Branch, pattern})...)
	}
	return w
}

// fromNVIDIA is NVIDIA's repository: modules built on the machine by dkms.
func (s Spec) fromNVIDIA(have State) Target {
	driver, fabric := s.fabricPackages()
	w := Target{Sources: []Source{s.driverSource(have)}}
	if have.OS == "debian" {
		w.Sources = append(w.Sources, s.debianSources(have, "contrib")...)
	}
	if s.branch() >= 580 { // before, each branch had packages of its own instead
		w.Pin = pinning + s.versionText()
		w.Packages = append(w.Packages, Package{Name: w.Pin})
	}
	for _, names := range []string{"*nvidia*", "cuda-drivers*", "libcuda*", "libnv*"} {
		w.Pinned = append(w.Pinned, Package{names, s.pattern()})
	}
	w.Packages = append(w.Packages, have.headers()...)
	w.Packages = append(w.Packages, Package{driver, s.pattern()})
	if have.fabricManager(s) {
		w.Packages = append(w.Packages, have.fabric(Package{fabric, s.pattern()})...)
	}
	return w
}

// fromDebian is Debian's non-free driver: one branch for each release, built on
// the machine by dkms.
func (s Spec) fromDebian(have State) Target {
	module := "nvidia-open-kernel-dkms"
	if s.Modules == Proprietary {
		module = "nvidia-kernel-dkms"
	}
	w := Target{Sources: s.debianSources(have, "contrib", "non-free", "non-free-firmware")}
	w.Packages = append(w.Packages, have.headers()...)
	for _, name := range []string{module, "nvidia-smi", "libcuda1", "nvidia-persistenced", "firmware-nvidia-gsp"} {
		p := Package{name, s.pattern()}
		if name == "nvidia-persistenced" { // it has versions of its own
			p.Version = ""
		}
		w.Packages = append(w.Packages, p)
	}
	return w
}

func (s Spec) pattern() string {
	if v := cmp.Or(s.Version, s.agreed); v != "" {
		return v + "-*"
	}
	return s.Branch + ".*"
}

func (s Spec) driverSource(have State) Source {
	arch := "x86_64"
	if have.Arch == "arm64" {
		arch = "sbsa"
	}
	url := DriverURL + "/" + have.OS + strings.ReplaceAll(have.Release, ".", "") + "/" + arch + "/"
	key, file := driverKey, "3bf863cc.pub"
	if have.OS == "debian" && have.Release == "13" {
		key, file = debian13Key, "8793F200.pub"
	}
	return s.DriverRepository.Merge(Source{Name: "nvidia-driver", URL: url, Suite: "/", KeyURL: url + file, Fingerprint: key})
}

func (s Spec) toolkitSource(have State) Source {
	url := ToolkitURL + "/stable/deb/" + have.Arch + "/"
	return s.ToolkitRepository.Merge(Source{
		Name: "nvidia-toolkit", URL: url, Suite: "/",
		KeyURL: ToolkitURL + "/gpgkey", Fingerprint: toolkitKey,
	})
}

// debianSources is Debian's archive with the components that the machine's own
// sources may lack. It is added only where it is declared: apt refuses one
// repository with two keys, and the machine has Debian's already.
func (s Spec) debianSources(have State, components ...string) []Source {
	if s.DebianRepository.URL == "" {
		return nil
	}
	return []Source{s.DebianRepository.Merge(Source{Name: "nvidia-debian", Suite: have.Codename, Components: components})}
}

// Merge puts what is declared over a default. Another URL keeps the key's
// fingerprint: a mirror serves what its origin has signed.
func (r Repository) Merge(d Source) Source {
	d.URL, d.KeyURL, d.Fingerprint = cmp.Or(r.URL, d.URL), cmp.Or(r.KeyURL, d.KeyURL), cmp.Or(r.Fingerprint, d.Fingerprint)
	return d
}

var (
	metaImage = pattern.New(`^linux-image-([a-z][a-z0-9.-]*)$`)
	notMeta   = pattern.New(`^(unsigned-|extra-|uc-)|-dbg`)
)

// flavours are the kernel packages that bring new kernels, such as generic,
// generic-hwe-24.04 or gcp. Modules for new kernels do not come along: they are held, and the kernels with them.
func (s State) flavours() []string {
	var found []string
	for name := range s.Packages {
		if m := metaImage.FindStringSubmatch(name); m != nil && !notMeta.MatchString(m[1]) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return found
}

// headers are the packages to build modules with: for the kernels that need
// them, and for those to come.
func (s State) headers() []Package {
	var p []Package
	for _, k := range s.neededPackages() {
		p = append(p, Package{Name: "linux-headers-" + k})
	}
	for _, f := range s.flavours() {
		p = append(p, Package{Name: "linux-headers-" + f})
	}
	return p
}

// precompiled reports whether the modules come built, so that neither headers
// nor a key for signing them are needed.
func (s Spec) precompiled(have State) bool { return s.Source == Distribution && have.OS == "ubuntu" }

func (s State) asks(want Spec) []string {
	if want.Branch == "" {
		return nil
	}
	w, err := want.Want(s)
	if err != nil {
		return nil
	}
	names := []string{}
	for _, p := range w.Packages {
		names = append(names, p.Name)
	}
	for _, name := range slices.Concat(s.Driver(), s.kernels()) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// series matches what names a driver of a branch, to see whether an installed
// package is of another one.
var series = pattern.New(`-([1-9][0-9]{2})(-server)?(-open)?(-|$)`)

// remove lists installed packages of another driver. Packages without a branch
// in their name change their version instead, but for the module's own when the
// other modules are wanted.
func (s Spec) remove(have State, w Target) []string {
	return slices.DeleteFunc(have.Driver(), func(name string) bool { return w.hasPackage(name) || !s.foreign(name, have) })
}

// otherModules are the packages of one kind of modules without a branch in their
// name.
var otherModules = map[string][]string{
	Open:        {"nvidia-kernel-dkms", "nvidia-dkms", "cuda-drivers"},
	Proprietary: {"nvidia-open-kernel-dkms", "nvidia-kernel-open-dkms", "nvidia-dkms-open", "nvidia-open"},
}

func (s Spec) foreign(name string, have State) bool {
	m := series.FindStringSubmatch(name)
	switch {
	case slices.Contains(otherModules[s.Modules], name) || strings.HasPrefix(name, pinning):
		return true
	case m == nil:
		return false
	case m[1] != s.Branch:
		return true
	case !s.precompiled(have) || strings.HasPrefix(name, "nvidia-fabricmanager"):
		return false
	}
	// Ubuntu: the open modules' packages say so, and so do the server's
	modules := strings.HasPrefix(name, "linux-modules-nvidia-") || strings.HasPrefix(name, "nvidia-headless-") ||
		strings.HasPrefix(name, "nvidia-dkms-") || strings.HasPrefix(name, "nvidia-kernel-source-")
	return (m[2] != "") != s.Server || modules && (m[3] != "") != (s.Modules == Open)
}

// IsHeld reports whether the package is one of driver, toolkit and fabric, which
// nobody changes but by plan.
func (p Package) IsHeld() bool { return driverPackage.MatchString(p.Name) }

// AsSpec is a Spec that the machine fulfils as it is, as far as it has a
// driver.
func (s State) AsSpec() Spec {
	d := Spec{Modules: Open, Source: Distribution, FabricManager: Auto, Reboot: Never}
	d.Branch, _, _ = strings.Cut(s.Installed(), ".")
	if k := s.kernel(s.Kernel.Running); s.Loaded != "" && !s.LoadedOpen || s.Loaded == "" && k.License == "NVIDIA" {
		d.Modules = Proprietary
	}
	for name := range s.Packages {
		if name == "nvidia-open" || name == "cuda-drivers" || strings.HasPrefix(name, pinning) {
			d.Source = NVIDIA
		}
		d.Server = d.Server || strings.HasPrefix(name, "nvidia-utils-") && strings.HasSuffix(name, "-server")
	}
	d.Toolkit = upstream(s.Packages["nvidia-container-toolkit"])
	d.Persistence = s.Units[persistenced].Active
	d.NoNouveau = s.NouveauOff
	return d
}
