package facts

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// sound is a machine that nothing is wrong with: the Ubuntu one, up to date,
// without swap, and whose route into 10.0.0.0/8 is gone.
func sound(t testing.TB) Facts {
	t.Helper()
	f, _, err := parse(captured(t)["ubuntu2404-hgx"])
	if err != nil {
		t.Fatal(err)
	}
	f.Swap = nil
	f.Features["wireguard"] = Missing
	var routes []Route
	for _, r := range f.Routes {
		if r.To != "10.0.0.0/8" {
			routes = append(routes, r)
		}
	}
	f.Routes = routes
	return f
}

func wanted(role string) Needs {
	return Needs{Role: role, PrivateAddress: "10.40.7.17", PodNetworks: []string{"10.244.0.0/16"}, ServiceNetwork: "10.96.0.0/12"}
}

// heads are problems as "error path: summary".
func heads(list []Problem) []string {
	said := []string{}
	for _, p := range list {
		s := "error "
		if p.Severity == providers.Warning {
			s = "warning "
		}
		said = append(said, s+strings.Join(p.Path, ".")+": "+p.Summary)
	}
	return said
}

// say adds problems to the golden list.
func say(list *hosttest.Checks, found []Problem) {
	for i, head := range heads(found) {
		list.Say("%s: %s", head, found[i].Detail)
	}
}

func TestPreflight(t *testing.T) {
	list := hosttest.NewChecks(t, "preflight")
	for _, tt := range []struct {
		name   string
		change func(f *Facts, n *Needs)
		want   []string
	}{
		{"nothing is wrong", func(*Facts, *Needs) {}, []string{}},
		{"no role, and nothing of Kubernetes matters", func(f *Facts, n *Needs) {
			n.Role, f.Memory, f.CPUs, f.CgroupVersion, f.Hostname, f.Features = "", gib, 1, 1, "a_b", nil
			f.Swap = []Swap{{Name: "/dev/sda2"}}
		}, []string{}},
		{"IPv6 alone", func(f *Facts, n *Needs) {
			for i := range f.NICs {
				f.NICs[i].Addresses = []string{"2001:db8::" + strconv.Itoa(i+1) + "/64"}
			}
			n.PrivateAddress = ""
		}, []string{"error role: The machine has IPv6 alone"}},
		{"no sudo", func(f *Facts, _ *Needs) { f.Sudo = Sudo{User: "ops"} }, []string{"error credential: No root by sudo"}},
		{"another system", func(f *Facts, _ *Needs) { f.OS = OS{ID: "fedora", Version: "42"} }, []string{"error : Operating system is not supported"}},
		{"another processor", func(f *Facts, _ *Needs) { f.Architecture = "riscv64" }, []string{"error : Processor is not supported"}},
		{"no systemd, no apt, no DNS", func(f *Facts, _ *Needs) { f.Systemd, f.Packages.APT, f.DNS.Servers = 0, false, nil },
			[]string{"error : systemd does not run", "error : apt is missing", "warning : No name server"}},
		{"1699 MiB", func(f *Facts, _ *Needs) { f.Memory = 1699 << 20 }, []string{"error role: Too little memory"}},
		{"1700 MiB", func(f *Facts, _ *Needs) { f.Memory = 1700 << 20 }, []string{}},
		{"one processor", func(f *Facts, _ *Needs) { f.CPUs = 1 }, []string{"error role: Too few processors"}},
		{"a small worker", func(f *Facts, n *Needs) { n.Role, f.Memory, f.CPUs = Worker, 512<<20, 1 }, []string{"warning role: Little memory"}},
		{"control groups 1", func(f *Facts, _ *Needs) { f.CgroupVersion = 1 }, []string{"error allow_cgroup_v1: Control groups are version 1"}},
		{"control groups 1, allowed", func(f *Facts, n *Needs) { f.CgroupVersion, n.AllowCgroupV1 = 1, true }, []string{"warning allow_cgroup_v1: Control groups are version 1"}},
		{"swap", func(f *Facts, _ *Needs) { f.Swap = []Swap{{Name: "/dev/sda2"}} }, []string{"error swap: Swap is in use"}},
		{"swap that will be off", func(f *Facts, n *Needs) { f.Swap, n.SwapOff = []Swap{{Name: "/dev/sda2"}}, true }, []string{}},
		{"k3s", func(f *Facts, _ *Needs) { f.Node.Other = "k3s" }, []string{"error role: Another Kubernetes runs here"}},
		{"a name that is none", func(f *Facts, _ *Needs) { f.Hostname = "gpu_1" }, []string{"error hostname: Host name cannot name a node"}},
		{"capital letters", func(f *Facts, _ *Needs) { f.Hostname = "GPU-1" }, []string{}},
		{"a name that will be another", func(f *Facts, n *Needs) { f.Hostname, n.Hostname = "gpu_1", "gpu-1" }, []string{}},
		{"no name", func(f *Facts, _ *Needs) { f.Hostname = "localhost" }, []string{"error hostname: The machine has no name"}},
		{"kernel", func(f *Facts, _ *Needs) {
			f.Features["overlay"], f.Features["nf_tables"], f.Features["vxlan"] = Missing, Blocked, Missing
		},
			[]string{"error kernel_modules: The module nf_tables is blocked", "error : The kernel lacks overlay"}},
		{"ports", func(f *Facts, _ *Needs) {
			f.Listeners = append(f.Listeners, Listener{Protocol: "tcp", Address: "0.0.0.0", Port: 6443, Process: "nginx"}, Listener{Protocol: "tcp", Address: "::", Port: 6443, Process: "nginx"})
		}, []string{"error role: Ports of Kubernetes are taken"}},
		{"a worker needs only its own", func(f *Facts, n *Needs) { n.Role, f.Listeners = Worker, []Listener{{Protocol: "tcp", Port: 6443}} }, []string{}},
		{"a node's own ports", func(f *Facts, _ *Needs) {
			f.Node = Node{Joined: true, Kubelet: true, ControlPlane: true}
			f.Listeners = []Listener{{Protocol: "tcp", Port: 6443}, {Protocol: "tcp", Port: 10250}}
		}, []string{}},
		{"a node under another name", func(f *Facts, n *Needs) { f.Node.Joined, n.Hostname = true, "gpu-2" }, []string{"error hostname: A node keeps its name"}},
		{"a node under another name, without a role", func(f *Facts, n *Needs) { f.Node.Joined, n.Hostname, n.Role = true, "gpu-2", "" }, []string{"error hostname: A node keeps its name"}},
		{"a node that gets its name back", func(f *Facts, n *Needs) { f.Node.Joined, n.Hostname, n.NodeName = true, "gpu-2", "gpu-2" }, []string{}},
		{"a node under its own name", func(f *Facts, n *Needs) { f.Node.Joined, n.Hostname = true, f.Hostname }, []string{}},
		{"a node under a name that is not known yet", func(f *Facts, n *Needs) { f.Node.Joined, n.Hostname = true, UnknownHostname }, []string{}},
		{"a machine under another name", func(_ *Facts, n *Needs) { n.Hostname = "gpu-2" }, []string{}},
		{"a wrong clock", func(f *Facts, _ *Needs) { f.Clock.Offset = -61 }, []string{"warning time_sync: The clock is wrong, or ours is"}},
		{"a clock by itself", func(f *Facts, _ *Needs) { f.Clock.Service, f.Clock.Synchronized = "", false }, []string{"warning time_sync: Nothing keeps the clock"}},
		{"a clock that will be kept", func(f *Facts, n *Needs) { f.Clock.Service, f.Clock.Synchronized, n.TimeSync = "", false, true }, []string{}},
		{"no such address", func(_ *Facts, n *Needs) { n.PrivateAddress = "10.40.7.99" }, []string{"error private_address: The machine lacks its private address"}},
		{"pods where the machine is", func(_ *Facts, n *Needs) { n.PodNetworks = []string{"10.40.0.0/16"} }, []string{"error pod_network: Network overlaps with the machine's own"}},
		{"services where docker is", func(_ *Facts, n *Needs) { n.ServiceNetwork = "172.16.0.0/12" }, []string{"error service_network: Network overlaps with the machine's own"}},
		{"pods and services", func(_ *Facts, n *Needs) { n.ServiceNetwork = "10.244.128.0/20" }, []string{"error service_network: Networks of the cluster overlap"}},
		{"a route", func(f *Facts, _ *Needs) {
			f.Routes = append(f.Routes, Route{To: "10.244.9.0/24", Via: "10.40.4.9", Dev: "bond0", Table: "main"})
		},
			[]string{"error pod_network: Network overlaps with the machine's own"}},
		{"a node's routes to other nodes' pods", func(f *Facts, _ *Needs) {
			f.Node.Joined = true
			f.Routes = append(f.Routes, Route{To: "10.244.9.0/24", Via: "10.40.4.9", Dev: "bond0", Table: "main"})
		}, []string{}},
		{"a name server among the services", func(f *Facts, _ *Needs) { f.DNS.Servers = []string{"10.96.0.53"} }, []string{"error service_network: Network overlaps with the machine's own"}},
		{"something not understood", func(f *Facts, _ *Needs) { f.Unread = []string{"pci: ?"} }, []string{"warning : Some facts could not be read"}},
	} {
		f, n := sound(t), wanted(ControlPlane)
		tt.change(&f, &n)
		got := Preflight(f, n)
		list.Case("%s", tt.name)
		say(list, got)
		if diff := cmp.Diff(tt.want, heads(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s%+v", tt.name, diff, got)
		}
		for _, p := range got {
			if words := len(strings.Fields(p.Summary)); words > 8 || p.Detail == "" || strings.Contains(p.Detail, "%!") {
				t.Errorf("%s: %d words of summary %q, detail %q", tt.name, words, p.Summary, p.Detail)
			}
		}
	}
}

func TestSpace(t *testing.T) {
	list := hosttest.NewChecks(t, "space")
	const gb = int64(gib)
	all := func(mount string, size, free int64) []Space {
		var list []Space
		for _, p := range []string{"/", "/boot", "/tmp", "/var/cache/apt/archives", "/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet"} {
			list = append(list, Space{Path: p, Mount: mount, Size: size, Free: free, FreeInodes: 1 << 20})
		}
		return list
	}
	for _, tt := range []struct {
		name  string
		role  string
		space []Space
		want  []string
	}{
		{"plenty", ControlPlane, all("/", 100*gb, 50*gb), []string{}},
		{"enough for a host, little for a node", "", all("/", 100*gb, 3*gb), []string{}},
		{"too little for packages", "", all("/", 20*gb, gb/4), []string{"error : Too little space on /"}},
		{"little", Worker, all("/", 20*gb, 10*gb), []string{"warning : Little space on /"}},
		{"too little", Worker, all("/", 20*gb, gb), []string{"error : Too little space on /"}},
		{"the kubelet would evict", Worker, all("/", 1000*gb, 120*gb), []string{"warning : Little space on /"}},
		{"not without a kubelet", "", all("/", 1000*gb, 120*gb), []string{}},
		{"one filesystem of two", Worker, append(all("/", 100*gb, 50*gb)[:4], Space{Path: "/var/lib/containerd", Mount: "/data", Size: 100 * gb, Free: gb}), []string{"error : Too little space on /data"}},
		{"inodes", Worker, append(all("/", 100*gb, 50*gb)[:6], Space{Path: "/var/lib/kubelet", Mount: "/", Size: 100 * gb, Free: 50 * gb, FreeInodes: 7}), []string{"warning : Little space on /"}},
		{"nothing is known", ControlPlane, nil, []string{}},
	} {
		f := sound(t)
		f.Space, f.Filesystems = tt.space, nil
		n := wanted(tt.role)
		n.Packages = true
		list.Case("%s", tt.name)
		say(list, Preflight(f, n))
		if diff := cmp.Diff(tt.want, heads(Preflight(f, n))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	for free, want := range map[int64][]string{gb / 4: {}, gb / 16: {"warning : Little space on /"}, gb / 256: {"error : Too little space on /"}} {
		f := sound(t) // of a machine that is to have no packages
		f.Space, f.Filesystems = all("/", gb, free), nil
		if diff := cmp.Diff(want, heads(Preflight(f, wanted("")))); diff != "" {
			t.Errorf("%d bytes free (-want +got):\n%s", free, diff)
		}
	}
	f := Facts{Filesystems: []Filesystem{{Mount: "/", Free: 1}, {Mount: "/var", Free: 2}, {Mount: "/varnish", Free: 3}}}
	if s, ok := f.SpaceAt("/var/lib"); !ok || s.Free != 2 {
		t.Errorf("/var/lib is on %v, %v", s, ok)
	}
}

func TestValidHostname(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "gpu-1": true, "gpu1.lab.example.com": true, "1": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "a..b": false, "a_b": false, "A": false, "ü": false, strings.Repeat("a", 64): false, "a b": false, "a.": false,
	} {
		if got := ValidHostname(name); got != want {
			t.Errorf("ValidHostname(%q) = %v", name, got)
		}
	}
}
