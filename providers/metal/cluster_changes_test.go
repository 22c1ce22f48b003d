package metal

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// declaredCluster is a cluster with all that is left out at its defaults.
func declaredCluster(t *testing.T, change func(*clusterModel)) clusterSpec {
	t.Helper()
	m := clusterModel{
		Version: types.StringValue("1.36"), Installed: types.StringValue("1.36.3"), Domain: types.StringValue("cluster.local"), Schedulable: types.BoolValue(false),
		Patches: types.MapNull(types.StringType), APIServer: types.MapNull(types.StringType), CertSANs: types.ListNull(types.StringType),
		IgnorePreflight: types.SetNull(types.StringType), Pods: types.ListNull(types.StringType), Services: types.ListNull(types.StringType),
	}
	m.assume()
	if change != nil {
		change(&m)
	}
	spec, err := m.spec(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// carriedOut is what a look finds after a spec was carried out.
func carriedOut(t *testing.T, s clusterSpec) clusterLook {
	t.Helper()
	is := kubeadm.Facts{
		Role: kubeadm.ControlPlane, Whole: true, Etcd: true, KubeletActive: true, KubeletEnabled: true, NodeName: "node",
		KubeletConfig: map[string]any{"cgroupDriver": "systemd", "shutdownGracePeriod": "0s"}, APIServer: map[string][]string{"profiling": {"false"}},
		Certificates: map[string]kubeadm.Certificate{apiServerCertificate: {Names: append([]string{"kubernetes"}, s.cluster.CertNames...)}},
	}
	for name, value := range s.cluster.APIServer {
		is.APIServer[name] = []string{value}
	}
	was, err := s.hashes()
	if err != nil {
		t.Fatal(err)
	}
	if was.OnHost, err = kubeadm.Hash(is.KubeletConfig); err != nil {
		t.Fatal(err)
	}
	was.Uploaded = map[string]string{"kubelet-config": "a", "kube-proxy": "b"}
	member := kubeadm.Member{Name: "node", Ready: true}
	if !s.node.Schedulable {
		member.Taints = []string{"node-role.kubernetes.io/control-plane"}
	}
	return clusterLook{is: is, notes: notes{whole: "sha256:a", settled: was}, uploaded: maps.Clone(was.Uploaded), members: []kubeadm.Member{member}}
}

// TestClusterChanges: what differs is told from what is declared anew, what is
// declared no more and what somebody changed by hand, and what each interrupts.
func TestClusterChanges(t *testing.T) {
	args := func(pairs ...string) func(*clusterModel) {
		return func(m *clusterModel) {
			all := map[string]attr.Value{}
			for i := 0; i < len(pairs); i += 2 {
				all[pairs[i]] = types.StringValue(pairs[i+1])
			}
			m.APIServer = types.MapValueMust(types.StringType, all)
		}
	}
	names := func(all ...string) func(*clusterModel) {
		return func(m *clusterModel) {
			var values []attr.Value
			for _, name := range all {
				values = append(values, types.StringValue(name))
			}
			m.CertSANs = types.ListValueMust(types.StringType, values)
		}
	}
	for _, test := range []struct {
		name     string
		was, now func(*clusterModel)
		hand     func(*clusterLook)
		want     []string
	}{
		{"nothing", nil, nil, nil, nil},
		{"an argument comes", nil, args("audit-log-path", "/a"), nil, []string{"the API server's argument audit-log-path: makes the API unavailable"}},
		{"an argument changes", args("v", "1"), args("v", "2"), nil, []string{"the API server's argument v: makes the API unavailable"}},
		{"an argument goes", args("v", "1"), nil, nil, []string{"the API server's argument v: makes the API unavailable"}},
		{"an argument that somebody changed", args("v", "1"), args("v", "1"), func(l *clusterLook) { l.is.APIServer["v"] = []string{"9"} }, []string{"the API server's argument v: makes the API unavailable"}},
		{"an argument that somebody added", nil, nil, func(l *clusterLook) { l.is.APIServer["w"] = []string{"9"} }, nil},
		{"a name comes", names("a.example"), names("a.example", "b.example"), nil, []string{"the API server's certificate for b.example: makes the API unavailable"}},
		{"a name goes", names("a.example"), nil, nil, []string{"the API server's certificate for a.example: makes the API unavailable"}},
		{"the kubelet's configuration", nil, func(m *clusterModel) { m.Kubelet = types.StringValue("maxPods: 40") }, nil, []string{"the kubelet's configuration: restarts the kubelet"}},
		{"the kubelet's configuration by hand", nil, nil, func(l *clusterLook) { l.is.KubeletConfig["maxPods"] = 7.0 }, []string{"the kubelet's configuration: restarts the kubelet"}},
		{"kube-proxy's configuration", nil, func(m *clusterModel) { m.Proxy = types.StringValue("mode: iptables") }, nil, []string{"kube-proxy's configuration: "}},
		{"a patch", nil, func(m *clusterModel) {
			m.Patches = types.MapValueMust(types.StringType, map[string]attr.Value{"etcd0.yaml": types.StringValue("{}")})
		}, nil, []string{"patches of kubeadm: makes the API unavailable"}},
		{"another registry", nil, func(m *clusterModel) { m.Images = types.StringValue("r.example") }, nil, []string{"the registry of images: makes the API unavailable"}},
		{"lives of certificates", nil, func(m *clusterModel) { m.CertificateLife = types.StringValue("9000h") }, nil, []string{"lives of certificates: "}},
		{"a ConfigMap by hand", nil, nil, func(l *clusterLook) { l.uploaded["kubelet-config"] = "other" }, []string{"the ConfigMap kubelet-config: "}},
		{"a ConfigMap that is gone", nil, nil, func(l *clusterLook) { delete(l.uploaded, "kube-proxy") }, []string{"the ConfigMap kube-proxy: "}},
		{"an API server that does not say", nil, nil, func(l *clusterLook) { l.uploaded, l.members = nil, nil }, nil},
		{"workloads are let in", nil, func(m *clusterModel) { m.Schedulable = types.BoolValue(true) }, nil, []string{"the control plane's node: "}},
		{"a taint by hand", nil, nil, func(l *clusterLook) { l.members[0].Taints = nil }, []string{"the control plane's node: "}},
		{"a kubelet that is stopped", nil, nil, func(l *clusterLook) { l.is.KubeletActive = false }, []string{"the kubelet: "}},
		{"super-admin.conf", nil, nil, func(l *clusterLook) { l.is.SuperAdmin = true }, []string{"super-admin.conf: "}},
		{"checks that are ignored", nil, func(m *clusterModel) {
			m.IgnorePreflight = types.SetValueMust(types.StringType, []attr.Value{types.StringValue("Swap")})
		}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := carriedOut(t, declaredCluster(t, test.was))
			if test.hand != nil {
				test.hand(&l)
			}
			changes, err := declaredCluster(t, test.now).changes(l)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				what := ""
				if c.Disruption > 0 {
					what = c.Disruption.String()
				}
				got = append(got, c.Fact+": "+what)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestClusterSpec: what follows from what is declared.
func TestClusterSpec(t *testing.T) {
	s := declaredCluster(t, nil)
	if got := s.cluster.APIServer[admissionPlugins]; got != "NodeRestriction,ExtendedResourceToleration" {
		t.Errorf("admission plugins %s", got)
	}
	if !s.addons.Flannel || !s.addons.GPUPlugin || s.cluster.Port != 6443 || s.cluster.Version != "1.36.3" {
		t.Errorf("%+v", s)
	}
	for given, want := range map[string]string{"PodNodeSelector": "PodNodeSelector,ExtendedResourceToleration", "ExtendedResourceToleration": "ExtendedResourceToleration"} {
		if got := admitting(map[string]string{admissionPlugins: given})[admissionPlugins]; got != want {
			t.Errorf("%s becomes %s", given, got)
		}
	}
	if got := admitting(map[string]string{"disable-admission-plugins": "ExtendedResourceToleration"})[admissionPlugins]; got != "NodeRestriction" {
		t.Errorf("what is disabled is enabled: %s", got)
	}
	balanced := declaredCluster(t, func(m *clusterModel) { m.Endpoint = types.StringValue("api.example:443") })
	if balanced.cluster.Port != 0 {
		t.Error("a load balancer's port is taken for the API server's")
	}
	fresh := declaredCluster(t, func(m *clusterModel) { m.Installed = types.StringNull() })
	p := fresh.packages(&settings{}, nil)
	if !fresh.anyPatch || p.Packages["kubelet"].Version != "1.36.*" || !p.Packages["kubelet"].Hold || p.Owner != clusterRecord {
		t.Errorf("packages %+v", p.Packages)
	}
	if p := s.packages(&settings{}, nil); p.Packages["kubeadm"].Version != "1.36.3-*" {
		t.Errorf("a patch that is installed is not kept: %+v", p.Packages)
	}
}

// TestClusterVersion: another version is refused, whatever else is planned.
func TestClusterVersion(t *testing.T) {
	for declared, refused := range map[string]bool{"1.36": false, "1.36.3": false, "1.36.4": true, "1.37": true, "1.35": true} {
		var diags diag.Diagnostics
		plan := clusterModel{Version: types.StringValue(declared)}
		plan.sameVersion(&clusterModel{Installed: types.StringValue("1.36.3")}, &diags)
		if diags.HasError() != refused {
			t.Errorf("%s: %v", declared, diags)
		}
	}
}

// TestClusterReplacing: only what a cluster cannot have otherwise makes another
// one of it.
func TestClusterReplacing(t *testing.T) {
	list := func(v string) types.List {
		return types.ListValueMust(types.StringType, []attr.Value{types.StringValue(v)})
	}
	was := clusterModel{Pods: list("10.244.0.0/16"), Services: list("10.96.0.0/12"), Domain: types.StringValue("a"), Endpoint: types.StringValue("a:6443")}
	for want, change := range map[string]func(*clusterModel){
		"[]":                func(m *clusterModel) { m.CNI, m.Schedulable = types.StringValue("external"), types.BoolValue(true) },
		"[pod_network]":     func(m *clusterModel) { m.Pods = list("10.0.0.0/16") },
		"[service_network]": func(m *clusterModel) { m.Services = list("10.0.0.0/16") },
		"[dns_domain]":      func(m *clusterModel) { m.Domain = types.StringValue("b") },
		"[endpoint]":        func(m *clusterModel) { m.Endpoint = types.StringValue("b:6443") },
	} {
		now := was
		change(&now)
		if got := fmt.Sprint(replacing(t.Context(), &was, &now)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestClusterUnfit: what metal_host fixes is told apart from what nobody does.
func TestClusterUnfit(t *testing.T) {
	f := facts.Facts{
		CgroupVersion: 1, Swap: []facts.Swap{{Name: "/swap"}}, Runtimes: []facts.Runtime{{Name: "containerd", Version: "1.7.28"}},
		Listeners: []facts.Listener{{Protocol: "tcp", Port: 2379, Process: "etcd"}, {Protocol: "udp", Port: 6443}}, Node: facts.Node{Other: "k3s"},
	}
	s := declaredCluster(t, nil)
	var got []bool
	for _, p := range unfitnesses(f, s) {
		got = append(got, p.fixedBy == "")
	}
	if !slices.Equal(got, []bool{true, true, false, false, true}) {
		t.Errorf("%+v", unfitnesses(f, s))
	}
	s.node.IgnorePreflight = []string{"SystemVerification", "Swap", "Port-2379"}
	if left := unfitnesses(f, s); len(left) != 2 {
		t.Errorf("what is ignored counts: %+v", left)
	}
	if left := unfitnesses(facts.Facts{CgroupVersion: 2, Runtimes: []facts.Runtime{{Name: "containerd", Version: "v2.2.9"}}}, s); len(left) > 0 {
		t.Errorf("a machine that is right: %+v", left)
	}
}

// TestClusterExpiryNotice: plans warn from 60 days on, with a command that renews.
func TestClusterExpiryNotice(t *testing.T) {
	const server, authority = "/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/etcd/ca.crt"
	day := 24 * time.Hour
	for _, test := range []struct {
		name, file, want string
		in               time.Duration
	}{
		{"61 days", server, "", 61 * day}, {"59 days", server, renewal, 59 * day}, {"it has expired", server, renewal, -day}, {"an authority", authority, "manual-rotation", 59 * day},
	} {
		var diags diag.Diagnostics
		noteExpiry(kubeadm.Facts{Certificates: map[string]kubeadm.Certificate{test.file: {Expires: time.Now().Add(test.in)}}}, &hosttest.Machine{}, &diags)
		switch {
		case test.want == "" && len(diags) > 0, test.want != "" && (len(diags) != 1 || !strings.Contains(diags[0].Detail(), test.want)):
			t.Errorf("%s: %v", test.name, diags)
		case diags.HasError():
			t.Errorf("%s is an error", test.name)
		}
	}
	// What the command ends are the static pods' programs, and no others.
	pattern := regexp.MustCompile(strings.Split(renewal, "'")[1])
	for line, want := range map[string]bool{
		"kube-apiserver --advertise-address=a": true, "etcd --name=a": true, "kube-scheduler --v=1": true, "kube-controller-manager --v=1": true,
		"kube-proxy --config=a": false, "/usr/bin/etcd --name=mine": false, "vi etcd ": false, "etcdctl get a": false,
	} {
		if pattern.MatchString(line) != want {
			t.Errorf("%s: ended %v", line, !want)
		}
	}
}

// TestClusterNewer: a newer patch of the minor is a remark, another minor is none.
func TestClusterNewer(t *testing.T) {
	have := packages.State{Packages: map[string]packages.Installed{"kubeadm": {Versions: []string{"1.36.3-1.1", "1.36.10-1.1", "1.36.4-1.1", "1.37.2-1.1"}}}}
	for patch, want := range map[int]string{3: "Kubernetes 1.36.3 is installed, and 1.36.10 can be had", 10: ""} {
		said := ""
		ctx := providers.WithCall(t.Context(), &providers.Call{Note: func(n providers.Note) { said += n.Text }})
		var diags diag.Diagnostics
		if noteNewer(ctx, &diags, kubeadm.Release{Minor: 36, Patch: patch}, have); said != want || len(diags) > 0 {
			t.Errorf("patch %d: %q, %v", patch, said, diags)
		}
	}
}

// TestClusterExpiry: the first certificate that ends counts, but for those that
// the kubelet renews.
func TestClusterExpiry(t *testing.T) {
	soon, later := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	which, at := expires(kubeadm.Facts{Certificates: map[string]kubeadm.Certificate{
		"/var/lib/kubelet/pki/kubelet-client-current.pem": {Expires: soon}, "/etc/kubernetes/pki/ca.crt": {Expires: later.Add(time.Hour)}, "/etc/kubernetes/pki/etcd/server.crt": {Expires: later},
	}})
	if which != "/etc/kubernetes/pki/etcd/server.crt" || !at.Equal(later) {
		t.Errorf("%s at %s", which, at)
	}
}
