package facts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Roles that a machine can have in a cluster; "" is none.
const (
	ControlPlane = "control-plane"
	Worker       = "worker"
)

// UnknownHostname stands for a host name that is declared, and not known yet.
const UnknownHostname = "known-after-apply"

// Needs are what a resource wants of a machine, as far as it is known yet: what
// is not known is left empty and not checked.
type Needs struct {
	Role string
	// Hostname is what the machine is to be called; "" keeps its name.
	Hostname string
	// NodeName is what the machine's kubelet calls its node; "" where that is not known.
	NodeName string
	// PrivateAddress is the machine's address in the cluster's network, which it
	// must have; "" where that is the address it is reached by.
	PrivateAddress string
	PodNetworks    []string // CIDR
	ServiceNetwork string   // CIDR
	Packages       bool     // the resource installs some
	AllowCgroupV1  bool
	SwapOff        bool // the resource switches it off
	TimeSync       bool // the resource sees to it
}

// Problem is an obstacle to the declaration.
type Problem struct {
	Severity providers.Severity
	Summary  string   // at most eight words
	Detail   string   // what was found and what to do
	Path     []string // the attribute it belongs to; nil for the machine itself
}

type problems []Problem

func (p *problems) add(s providers.Severity, path, summary, detail string, args ...any) {
	var at []string
	if path != "" {
		at = []string{path}
	}
	*p = append(*p, Problem{Severity: s, Path: at, Summary: summary, Detail: fmt.Sprintf(detail, args...)})
}

// Preflight reports all obstacles on one machine. Nothing is said about what
// Needs declares to be changed.
func Preflight(f Facts, want Needs) []Problem {
	var p problems
	p.system(f)
	p.space(f, want)
	p.clock(f, want)
	if want.Role != "" {
		p.node(f, want)
		p.name(f, want)
		p.features(f)
		p.ports(f, want)
	}
	p.renamed(f, want)
	p.networks(f, want)
	if len(f.Unread) > 0 {
		p.add(providers.Warning, "", "Some facts could not be read", "Parts of the machine's answer that stoke did "+
			"not understand: %s", strings.Join(f.Unread, "\n  "))
	}
	return p
}

func (p *problems) system(f Facts) {
	if !f.Sudo.Works {
		p.add(providers.Error, "credential", "No root by sudo",
			"%s\nLet the user become root: install the sudoers file of stoke's documentation, or give sudo_password in the credential.", cmp.Or(f.Sudo.Error, "The user "+f.Sudo.User+" is not root, and its credential says sudo = false."))
	}
	if !f.OS.Supported {
		p.add(providers.Error, "", "Operating system is not supported", "The machine runs %s (ID %s, VERSION_ID %s). stoke works on %s.",
			cmp.Or(f.OS.Name, "something without a name"), cmp.Or(f.OS.ID, "none"), cmp.Or(f.OS.Version, "none"), strings.Join(Supported(), ", "))
	}
	if f.Architecture != "amd64" && f.Architecture != "arm64" {
		p.add(providers.Error, "", "Processor is not supported", "The machine is %s. stoke works on amd64 and arm64.", f.Architecture)
	}
	if f.Systemd == 0 {
		p.add(providers.Error, "", "systemd does not run", "Process 1 is %s. Services, timers and the container runtime need systemd.", cmp.Or(f.Init, "not known"))
	}
	if !f.Packages.APT {
		p.add(providers.Error, "", "apt is missing", "apt-get or dpkg-query is not there. Install the package apt.")
	}
	if len(f.DNS.Servers) == 0 {
		p.add(providers.Warning, "", "No name server", "/etc/resolv.conf names none: packages and images cannot be fetched by name.")
	}
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Least memory and processors. A control plane's are kubeadm's own
// (cmd/kubeadm/app/constants: ControlPlaneMem, in MiB whatever its messages say,
// and ControlPlaneNumCPU). For a worker kubeadm asks for nothing.
const (
	controlPlaneMemory = 1700 * mib
	controlPlaneCPUs   = 2
	workerMemory       = 900 * mib
)

func (p *problems) node(f Facts, want Needs) {
	switch {
	case want.Role == ControlPlane && f.Memory < controlPlaneMemory:
		p.add(providers.Error, "role", "Too little memory", "The machine has %s; kubeadm wants at least %s for a control plane.", size(f.Memory), size(controlPlaneMemory))
	case want.Role == Worker && f.Memory < workerMemory:
		p.add(providers.Warning, "role", "Little memory", "The machine has %s. The system, the kubelet and the container runtime take about as much.", size(f.Memory))
	}
	if want.Role == ControlPlane && f.CPUs < controlPlaneCPUs {
		p.add(providers.Error, "role", "Too few processors", "The machine has %d; kubeadm wants at least %d for a control plane.", f.CPUs, controlPlaneCPUs)
	}
	if addresses := f.addresses(); len(addresses) > 0 && !slices.ContainsFunc(addresses, isIPv4) {
		p.add(providers.Error, "role", "The machine has IPv6 alone", "It has %s. Clusters of IPv6, and of both, are refused for now: give it an IPv4 address.", strings.Join(addresses, ", "))
	}
	if f.CgroupVersion < 2 {
		severity, advice := providers.Error, "Boot with systemd.unified_cgroup_hierarchy=1, or set allow_cgroup_v1 = "+
			"true to make the kubelet accept version 1 (failCgroupV1: false)."
		if want.AllowCgroupV1 {
			severity, advice = providers.Warning, "allow_cgroup_v1 lets it; it needs a setting (failCgroupV1: false), "+
				"and support ends with one of the next versions."
		}
		p.add(severity, "allow_cgroup_v1", "Control groups are version 1", "From Kubernetes 1.35 on the kubelet does not start with control groups of version 1. %s", advice)
	}
	if len(f.Swap) > 0 && !want.SwapOff {
		var names []string
		for _, s := range f.Swap {
			names = append(names, s.Name)
		}
		p.add(providers.Error, "swap", "Swap is in use", "The machine swaps to %s, and the kubelet does not start then. Set swap = \"off\".", strings.Join(names, ", "))
	}
	if f.Node.Other != "" {
		p.add(providers.Error, "role", "Another Kubernetes runs here", "The machine runs %s. Remove it first, or leave the machine out.", f.Node.Other)
	}
}

var label = pattern.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// ValidHostname reports whether a name can be a node's name: by RFC 1123 in
// lower case, and at most 63 characters, so that Kubernetes can use it as a
// label.
func ValidHostname(name string) bool {
	if len(name) > 63 {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) {
			return false
		}
	}
	return true
}

func (p *problems) name(f Facts, want Needs) {
	if want.Hostname != "" {
		return // its own validator has seen it
	}
	switch {
	case f.Hostname == "localhost" || strings.HasPrefix(f.Hostname, "localhost."):
		p.add(providers.Error, "hostname", "The machine has no name", "It is called %s, as any other without a name is. Set hostname.", f.Hostname)
	case !ValidHostname(strings.ToLower(f.Hostname)):
		p.add(providers.Error, "hostname", "Host name cannot name a node", "It is %q; a node's name has letters, digits, '-' and '.', at most 63 (RFC 1123). Set hostname.", f.Hostname)
	}
}

// renamed refuses to rename a node: its kubelet is known to the cluster by the
// name that the machine had when it joined, which it may get back.
func (p *problems) renamed(f Facts, want Needs) {
	if to := want.Hostname; f.Node.Joined && to != "" && to != UnknownHostname && to != f.Hostname && to != want.NodeName {
		p.add(providers.Error, "hostname", "A node keeps its name", "The machine has joined a cluster as %s, and its kubelet would not find its node as %s. Declare the name that it has, or take it out of the cluster first (kubeadm reset).", cmp.Or(want.NodeName, f.Hostname), to)
	}
}

func (p *problems) features(f Facts) {
	for _, name := range FeatureNames() {
		if name == "vxlan" || name == "wireguard" {
			continue // whether they are needed, the pods' network decides
		}
		switch f.Features[name] {
		case Missing:
			p.add(providers.Error, "", "The kernel lacks "+name, "The running kernel %s has %s neither built in nor as a module. "+
				"Install the modules of this kernel (linux-modules-extra-… on Ubuntu) or another kernel, or boot the kernel "+
				"of the installed modules.", f.Kernel.Running, name)
		case Blocked:
			p.add(providers.Error, "kernel_modules", "The module "+name+" is blocked", "Something in /etc/modprobe.d has an \"install %s\" line, so that it is never loaded. Remove that line.", name)
		}
	}
}

// portsOf are those that kubeadm's own checks want to be free, by role.
func portsOf(role string) []int {
	if role == ControlPlane {
		return []int{2379, 2380, 6443, 10250, 10257, 10259}
	}
	return []int{10250}
}

func (p *problems) ports(f Facts, want Needs) {
	if f.Node.Joined || f.Node.Kubelet {
		return // they are Kubernetes' own
	}
	var taken []string
	for _, l := range f.Listeners {
		if l.Protocol == "tcp" && slices.Contains(portsOf(want.Role), l.Port) {
			taken = append(taken, fmt.Sprintf("%d by %s", l.Port, cmp.Or(l.Process, "an unknown process")))
		}
	}
	if taken = slices.Compact(taken); len(taken) > 0 {
		p.add(providers.Error, "role", "Ports of Kubernetes are taken", "A %s needs them: %s. Stop what listens there.", want.Role, strings.Join(taken, ", "))
	}
}

func (p *problems) clock(f Facts, want Needs) {
	if math.Abs(f.Clock.Offset) > MaxOffset {
		p.add(providers.Warning, "time_sync", "The clock is wrong, or ours is", "It is %.1f s (± %.1f s) %s the clock here. Certificates and signatures of repositories are not valid yet, or no longer, for a clock that is too far off.",
			math.Abs(f.Clock.Offset), f.Clock.Resolution, side(f.Clock.Offset))
	}
	if want.Role != "" && !want.TimeSync && !f.Clock.Synchronized && f.Clock.Service == "" && f.Container == "none" {
		p.add(providers.Warning, "time_sync", "Nothing keeps the clock", "Neither chrony nor systemd-timesyncd runs. Set time_sync.")
	}
}

func side(offset float64) string {
	if offset < 0 {
		return "behind"
	}
	return "ahead of"
}

func size(n int64) string {
	switch {
	case n >= 10*gib:
		return fmt.Sprintf("%d GiB", n/gib)
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	}
	return fmt.Sprintf("%d MiB", n/mib)
}
