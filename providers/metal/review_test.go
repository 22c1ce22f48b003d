package metal

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// planned is a metal_host as a plan has it; nil is unknown, "" null.
func planned(n int, attributes map[string]any) providers.PlannedInstance {
	object := map[string]cty.Value{
		"address": cty.StringVal(fmt.Sprintf("10.40.5.%d", n)), "host_key": cty.StringVal(fmt.Sprintf("ssh-ed25519 key%d", n)),
		"cluster": cty.NullVal(cty.String), "role": cty.NullVal(cty.String), "private_address": cty.NullVal(cty.String), "hostname": cty.NullVal(cty.String),
	}
	for name, v := range attributes {
		if text, ok := v.(string); ok {
			object[name] = cty.StringVal(text)
		} else {
			object[name] = cty.UnknownVal(cty.String)
		}
	}
	v := cty.ObjectVal(object)
	return providers.PlannedInstance{Address: fmt.Sprintf("metal_host.n[%d]", n), Type: "metal_host", Prior: v, Planned: v}
}

func sighted(t *testing.T, n int) (*factsCache, []facts.Facts) {
	s := &factsCache{}
	var list []facts.Facts
	for i := range n {
		f := factsOf(t, "ubuntu2404-hgx")
		f.Hostname, f.MachineID, f.BootID, f.ProductUUID = fmt.Sprintf("n%d", i), fmt.Sprint("m", i), fmt.Sprint("b", i), fmt.Sprint("p", i)
		f.NICs = []facts.NIC{{Name: "eth0", MTU: 1500, MAC: fmt.Sprint(i), Addresses: []string{fmt.Sprintf("10.40.5.%d/24", i)}}}
		f.Routes, f.Proxy = nil, nil
		saw(s, i, f)
		list = append(list, f)
	}
	return s, list
}

func saw(s *factsCache, n int, f facts.Facts) {
	s.note(fmt.Sprintf("10.40.5.%d", n), fmt.Sprintf("ssh-ed25519 key%d", n), snapshot{facts: f})
}

func TestReview(t *testing.T) {
	list := hosttest.NewChecks(t, "review")
	ctx := context.Background()
	firewall := func(n int, network string) providers.PlannedInstance {
		return providers.PlannedInstance{Address: "metal_firewall.f", Type: "metal_firewall", Planned: cty.ObjectVal(map[string]cty.Value{
			"host":        planned(n, nil).Planned,
			"pod_network": cty.SetVal([]cty.Value{cty.StringVal(network)}),
		})}
	}
	another := firewall(0, "10.245.0.0/16")
	another.Address = "metal_firewall.g"
	installs := func(packages cty.Value) providers.PlannedInstance {
		p := planned(0, nil)
		object := p.Planned.AsValueMap()
		object["packages"] = packages
		p.Planned = cty.ObjectVal(object)
		return p
	}
	kind := cty.Object(map[string]cty.Type{"version": cty.String})
	brings := func(name string) providers.PlannedInstance {
		return installs(cty.MapVal(map[string]cty.Value{name: cty.ObjectVal(map[string]cty.Value{"version": cty.NullVal(cty.String)})}))
	}
	lacks := func(s *factsCache, _ []facts.Facts) { s.lacksNft("10.40.5.0", "ssh-ed25519 key0\n") }
	unready := func(s *factsCache, _ []facts.Facts) {
		s.lacks = map[string][]unfitness{machineKey("10.40.5.0", "ssh-ed25519 key0\n"): {{"it has no containerd", "containerd_package"}}}
	}
	control := providers.PlannedInstance{Address: "metal_cluster.c", Type: "metal_cluster", Planned: cty.ObjectVal(map[string]cty.Value{
		"control_plane": cty.ListVal([]cty.Value{planned(0, nil).Planned}),
	})}
	node := func(n int, name, endpoint string) providers.PlannedInstance {
		return providers.PlannedInstance{Address: fmt.Sprintf("metal_node.n[%d]", n), Type: "metal_node", Planned: cty.ObjectVal(map[string]cty.Value{
			"host": planned(n, nil).Planned, "name": cty.StringVal(name), "cluster": cty.ObjectVal(map[string]cty.Value{"endpoint": cty.StringVal(endpoint)}),
		})}
	}
	missing := []string{"Program nft is missing: metal_firewall.f: 10.40.5.0 has no nft, which loads the rules"}
	for _, tt := range []struct {
		name    string
		change  func(s *factsCache, f []facts.Facts)
		planned []providers.PlannedInstance
		want    []string
	}{
		{"nothing is wrong", nil, []providers.PlannedInstance{planned(0, nil), planned(1, nil), planned(2, nil), firewall(0, "10.244.0.0/16")}, nil},
		{"two firewalls", nil, []providers.PlannedInstance{planned(0, nil), firewall(0, "10.244.0.0/16"), firewall(1, "10.244.0.0/16"), another},
			[]string{"Machine has this already: metal_firewall.g: The firewall of 10.40.5.0 is declared by metal_firewall.f, too"}},
		{"a firewall without nft", lacks, []providers.PlannedInstance{planned(0, nil), firewall(0, "10.244.0.0/16"), planned(1, nil), firewall(1, "10.244.0.0/16")}, missing},
		{"a firewall without nft and other packages", lacks, []providers.PlannedInstance{brings("jq"), firewall(0, "10.244.0.0/16")}, missing},
		{"a firewall without nft and no packages", lacks, []providers.PlannedInstance{installs(cty.NullVal(cty.Map(kind))), firewall(0, "10.244.0.0/16")}, missing},
		{"a firewall without nft alone", lacks, []providers.PlannedInstance{firewall(0, "10.244.0.0/16")}, missing},
		{"a firewall whose nft comes", lacks, []providers.PlannedInstance{brings("nftables"), firewall(0, "10.244.0.0/16")}, nil},
		{"a firewall whose nft may come", lacks, []providers.PlannedInstance{installs(cty.UnknownVal(cty.Map(kind))), firewall(0, "10.244.0.0/16")}, nil},
		{"a control plane without containerd", unready, []providers.PlannedInstance{planned(0, nil), control},
			[]string{"Machine is not ready yet: metal_cluster.c: 10.40.5.0: kubeadm refuses it as it is, unless a metal_host fixes that before:\n  it has no containerd"}},
		{"a control plane whose containerd comes", unready, []providers.PlannedInstance{planned(0, map[string]any{"containerd_package": "2.2"}), control}, nil},
		{"nodes of one name", nil, []providers.PlannedInstance{planned(0, nil), planned(1, nil), planned(2, nil), node(0, "gpu", "10.40.5.9:6443"), node(1, "gpu", "10.40.6.9:6443"), node(2, "gpu", "10.40.5.9:6443")},
			[]string{"Two nodes have one name: metal_node.n[2]: metal_node.n[0] is the node gpu of that cluster, too"}},
		{"a name twice", func(s *factsCache, f []facts.Facts) { f[1].Hostname = "n0"; saw(s, 1, f[1]) },
			[]providers.PlannedInstance{planned(0, nil), planned(1, nil)}, []string{"Machines share a host name: metal_host.n[0], metal_host.n[1]"}},
		{"a name that the plan changes", func(s *factsCache, f []facts.Facts) { f[1].Hostname = "n0"; saw(s, 1, f[1]) },
			[]providers.PlannedInstance{planned(0, nil), planned(1, map[string]any{"hostname": "n1"})}, nil},
		{"a name in two clusters", func(s *factsCache, f []facts.Facts) { f[1].Hostname = "n0"; saw(s, 1, f[1]) },
			[]providers.PlannedInstance{planned(0, map[string]any{"cluster": "a"}), planned(1, map[string]any{"cluster": "b"})}, nil},
		{"one machine in two clusters", func(s *factsCache, f []facts.Facts) {
			f[0].NICs = append(f[0].NICs, f[1].NICs...)
			saw(s, 0, f[0])
			saw(s, 1, f[0])
		}, []providers.PlannedInstance{planned(0, map[string]any{"cluster": "a"}), planned(1, map[string]any{"cluster": "b"})},
			[]string{"These resources are one machine: metal_host.n[0] and metal_host.n[1]"}},
		{"a machine that is destroyed", func(s *factsCache, f []facts.Facts) { f[1].Hostname = "n0"; saw(s, 1, f[1]) },
			[]providers.PlannedInstance{planned(0, nil), {Address: "x", Type: "metal_host", Prior: planned(1, nil).Planned, Planned: cty.NullVal(cty.DynamicPseudoType)}}, nil},
		{"a machine that nobody looked at", nil, []providers.PlannedInstance{planned(0, nil), planned(9, nil), planned(8, map[string]any{"address": nil})}, nil},
		{"pods where machines are", nil, []providers.PlannedInstance{planned(0, nil), planned(1, nil), firewall(0, "10.40.0.0/16")},
			[]string{"Machines are inside a cluster's network: ", "Network overlaps with the machine's own: metal_host.n[0]"}},
		{"a cluster behind the proxy", func(s *factsCache, f []facts.Facts) {
			s.note("10.40.5.0", "ssh-ed25519 key0", snapshot{facts: f[0], noProxy: []string{"10.244.0.0/16", "10.96.0.0/11", "10.40.4.0/24"}})
			s.note("10.40.5.1", "ssh-ed25519 key1", snapshot{facts: f[1], noProxy: []string{"10.40.0.0/16", "10.96.0.0/12"}})
		}, []providers.PlannedInstance{planned(0, map[string]any{"role": "worker"}), planned(1, map[string]any{"role": "worker"}), firewall(0, "10.244.0.0/16"), firewall(1, "10.244.0.0/16")},
			[]string{"Cluster's network is reached through the proxy: lacks:\n  10.40.5.0, metal_host.n[0]\n  10.244.0.0/16, the pods' network\nAdd"}},
		{"services behind the proxy", func(s *factsCache, f []facts.Facts) {
			s.note("10.40.5.0", "ssh-ed25519 key0", snapshot{facts: f[0], noProxy: []string{"10.40.0.0/16", "10.96.0.0/13"}})
		}, []providers.PlannedInstance{planned(0, map[string]any{"role": "worker"})},
			[]string{"Cluster's network is reached through the proxy: lacks:\n  10.96.0.0/12, the services' network\nAdd"}},
		{"machines with a proxy of their own", func(s *factsCache, f []facts.Facts) {
			f[0].Proxy = map[string]string{"https_proxy": "http://x:3128", "no_proxy": "localhost, 10.40.0.0/16,.svc"}
			f[1].Proxy = map[string]string{"http_proxy": "http://x:3128", "no_proxy": "10.0.0.0/8"}
			f[2].Proxy = map[string]string{"http_proxy": "http://x:3128"}
			saw(s, 0, f[0])
			saw(s, 1, f[1])
			saw(s, 2, f[2])
		}, []providers.PlannedInstance{planned(0, map[string]any{"role": "worker"}), planned(1, map[string]any{"role": "worker"}), planned(2, nil), firewall(0, "10.244.0.0/16")},
			[]string{"Machine asks its proxy for the cluster: metal_host.n[0]: 10.40.5.0 has a proxy for all users (/etc/environment, or the login environment), and its no_proxy lacks:\n  10.244.0.0/16, the pods' network\n  10.96.0.0/12, the services' network\nAdd"}},
	} {
		s, f := sighted(t, 3)
		if tt.change != nil {
			tt.change(s, f)
		}
		_, diags := s.review(ctx, providers.Review{Planned: tt.planned})
		list.Case("%s", tt.name)
		var got []string
		for i, d := range diags {
			list.Say("%v %s: %s: %s", d.Severity, d.Address, d.Summary, d.Detail)
			if i < len(tt.want) {
				if summary, text, _ := strings.Cut(tt.want[i], ": "); d.Summary == summary && strings.Contains(d.Address+": "+d.Detail, text) {
					got = append(got, tt.want[i])
					continue
				}
			}
			got = append(got, d.Summary+": "+d.Address+": "+d.Detail)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestPeers: only machines of one cluster ask for each other, and only where
// something changes.
func TestPeers(t *testing.T) {
	s, _ := sighted(t, 3)
	in := func(cluster string) map[string]any { return map[string]any{"cluster": cluster, "role": "worker"} }
	var r reviewed
	changed := planned(0, in("a"))
	changed.Prior = cty.NullVal(changed.Planned.Type())
	for _, p := range []providers.PlannedInstance{changed, planned(1, in("a")), planned(2, in("b"))} {
		r.host(s, p)
	}
	addresses, names, called := r.peers(r.hosts[1])
	if diff := cmp.Diff([]string{"10.40.5.0"}, addresses); diff != "" || len(names) != 0 || called["10.40.5.0"] != "metal_host.n[0]" {
		t.Error(diff, names, called)
	}
	if addresses, _, _ := r.peers(r.hosts[2]); len(addresses) != 0 {
		t.Errorf("a machine of another cluster asks for %v", addresses)
	}
	r.hosts[0].changes = false
	if addresses, _, _ := r.peers(r.hosts[1]); len(addresses) != 0 {
		t.Errorf("nothing changes, and %v are asked for", addresses)
	}
}

// TestReachMany: 40 machines ask for each other, as many at a time as are
// bearable and no fewer.
func TestReachMany(t *testing.T) {
	const n = 40
	s, f := sighted(t, n)
	var list []providers.PlannedInstance
	var now, most, ran atomic.Int64
	full := make(chan struct{})
	for i := range n {
		m := &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
			defer now.Add(-1)
			for is := now.Add(1); is > most.Load(); {
				most.Store(is)
			}
			if ran.Add(1) == maxAsked {
				close(full)
			}
			<-full // one after the other would wait here for ever
			out := ""
			for j, a := range cmd.Args {
				if a == "peer" {
					out += "peer\t" + cmd.Args[j+1] + "\treached\n"
				}
			}
			return hosttest.Answer{Stdout: strings.Replace(out, "10.40.5.7\treached", "10.40.5.7\tsmall", 1)}, true
		}}
		s.note(fmt.Sprintf("10.40.5.%d", i), fmt.Sprintf("ssh-ed25519 key%d", i), snapshot{facts: f[i], m: m})
		p := planned(i, map[string]any{"cluster": "a", "role": "worker"})
		p.Prior = cty.NullVal(p.Planned.Type())
		list = append(list, p)
	}
	_, diags := s.review(context.Background(), providers.Review{Planned: list})
	if ran.Load() != n || most.Load() > maxAsked {
		t.Errorf("%d asked, %d at a time", ran.Load(), most.Load())
	}
	if len(diags) != n-1 || diags[0].Summary != "Full-size packets do not arrive" || !strings.Contains(diags[0].Detail, "metal_host.n[7] (10.40.5.7)") {
		t.Errorf("%d diagnostics: %v", len(diags), diags)
	}
}

// TestRepositoryNames: names that a machine has to know by itself are asked
// for there, and are no error: what the plan changes may fix it.
func TestRepositoryNames(t *testing.T) {
	uris := func(list ...string) cty.Value {
		var values []cty.Value
		for _, u := range list {
			values = append(values, cty.StringVal(u))
		}
		return cty.ObjectVal(map[string]cty.Value{"uris": cty.ListVal(values)})
	}
	p := planned(0, nil)
	object := p.Planned.AsValueMap()
	object["apt_repositories"] = cty.MapVal(map[string]cty.Value{
		"a": uris("https://Download.docker.com/linux/debian", "http://192.0.2.1:8080/x", "file:///srv/x"),
		"b": uris("http://mirror.invalid/x"),
	})
	p.Planned, p.Prior = cty.ObjectVal(object), cty.NullVal(cty.DynamicPseudoType)
	for _, tt := range []struct {
		name    string
		noProxy []string
		proxy   map[string]string
		asked   string
		said    int
	}{
		{"directly", nil, nil, "name download.docker.com - name mirror.invalid -", 1},
		{"through the provider's proxy", []string{}, nil, "", 0},
		{"through the machine's own", nil, map[string]string{"apt http": "http://x"}, "name download.docker.com -", 0},
	} {
		s, f := sighted(t, 1)
		m := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) {
			return hosttest.Answer{Stdout: "name\tdownload.docker.com\treached\nname\tmirror.invalid\tunknown\n"}, true
		}}
		f[0].Proxy = tt.proxy
		s.note("10.40.5.0", "ssh-ed25519 key0", snapshot{facts: f[0], m: m, noProxy: tt.noProxy})
		_, diags := s.review(context.Background(), providers.Review{Planned: []providers.PlannedInstance{p}})
		if len(diags) != tt.said || diags.HasErrors() {
			t.Errorf("%s: %v", tt.name, diags)
		}
		ran := strings.Join(m.Ran, " ")
		if _, asked, _ := strings.Cut(ran, " sh name"); strings.TrimSpace("name"+asked) != tt.asked && ran != tt.asked {
			t.Errorf("%s: asked for %q", tt.name, "name"+asked)
		}
	}
}
