package metal

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	gossh "golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// plant is a control plane's machine, a second machine, the API server of their
// cluster, and the provider as an engine drives it.
type plant struct {
	*testing.T
	p            providers.Provider
	schema       *providers.Schema
	gate         *gate
	cluster      *draintest.Cluster
	head, worker *box
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	x := &plant{T: t, gate: &gate{left: -1}, cluster: draintest.New(t, nil)}
	x.cluster.Fault = func(request string) (refused, after bool) {
		if strings.Contains(request, "(discovery)") {
			return false, false // has no effect, and comes in any order
		}
		return x.gate.refuses("the API server: " + request)
	}
	signer, private := sshtest.NewKey(t)
	config := sshtest.Config{Authorized: []gossh.PublicKey{signer.PublicKey()}}
	x.head = newBox(t, x.cluster, x.gate, "head", "192.0.2.10", config)
	x.worker = newBox(t, x.cluster, x.gate, "worker", "192.0.2.11", config)
	x.worker.head = x.head
	var err error
	if x.p, err = Entry("test").New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.p.Close() })
	var diags providers.Diagnostics
	if x.schema, diags = x.p.Schema(t.Context()); diags.HasErrors() {
		t.Fatal(diags)
	}
	block := x.schema.Provider.ImpliedType()
	if diags := x.p.Configure(t.Context(), fillObject(block, map[string]cty.Value{"ssh": fillObject(block.AttributeType("ssh"), map[string]cty.Value{
		"user": cty.StringVal(sshtest.User), "private_key": cty.StringVal(sshtest.PEM(t, private, "")), "retry_timeout": cty.StringVal("0s"),
	})})); diags.HasErrors() {
		t.Fatal(diags)
	}
	return x
}

func (x *plant) way(b *box, ty cty.Type) cty.Value {
	address, port := b.server.Address()
	return fillObject(ty, map[string]cty.Value{"address": cty.StringVal(address), "port": cty.NumberIntVal(int64(port)), "host_key": cty.StringVal(b.server.HostKey())})
}

func (x *plant) repository(ty cty.Type) cty.Value {
	return fillObject(ty, map[string]cty.Value{
		"url": cty.StringVal("http://packages.example.org/k8s/"), "key_url": cty.StringVal("http://packages.example.org/k8s/key"),
		"key_fingerprint": cty.StringVal("1AC97A8DD41C4518406185D4386935B89C313B82"),
	})
}

// declared is a configuration of a kind.
func (x *plant) declared(kind string, given map[string]cty.Value) cty.Value {
	ty := x.schema.Resources[kind].Block.ImpliedType()
	all := maps.Clone(given)
	all["repository"] = x.repository(ty.AttributeType("repository"))
	return fillObject(ty, all)
}

// planted is a resource of a plant.
type planted struct {
	kind    string
	state   cty.Value
	private []byte
}

func (x *plant) meta() cty.Value { return cty.NullVal(cty.DynamicPseudoType) }

func (x *plant) read(it planted) planted {
	x.Helper()
	if it.state.IsNull() {
		return it
	}
	r := x.p.Read(x.Context(), providers.ReadRequest{Type: it.kind, State: it.state, Private: it.private, Meta: x.meta()})
	if r.Diagnostics.HasErrors() {
		x.Fatal(r.Diagnostics)
	}
	return planted{it.kind, r.State, r.Private}
}

func (x *plant) plan(it planted, config cty.Value) providers.PlanResponse {
	x.Helper()
	block, proposed := x.schema.Resources[it.kind].Block, map[string]cty.Value{}
	for name, v := range config.AsValueMap() {
		if a := block.Attributes[name]; a != nil && a.Computed && v.IsNull() && !it.state.IsNull() {
			v = it.state.GetAttr(name)
		}
		proposed[name] = v
	}
	r := x.p.Plan(x.Context(), providers.PlanRequest{Type: it.kind, Prior: it.state, Proposed: cty.ObjectVal(proposed), Config: config, Private: it.private, Meta: x.meta()})
	if r.Diagnostics.HasErrors() {
		x.Fatal(r.Diagnostics)
	}
	return r
}

func (x *plant) apply(it planted, config cty.Value, plan providers.PlanResponse) (planted, providers.Diagnostics) {
	x.Helper()
	r := x.p.Apply(x.Context(), providers.ApplyRequest{Type: it.kind, Prior: it.state, Planned: plan.Planned, Config: config, Private: plan.Private, Meta: x.meta()})
	return planted{it.kind, r.State, r.Private}, r.Diagnostics
}

func (x *plant) destroy(it planted) (planted, providers.Diagnostics) {
	x.Helper()
	null := cty.NullVal(it.state.Type())
	r := x.p.Apply(x.Context(), providers.ApplyRequest{Type: it.kind, Prior: it.state, Planned: null, Config: null, Private: it.private, Meta: x.meta()})
	return planted{it.kind, r.State, r.Private}, r.Diagnostics
}

// made plans and applies a resource. It checks that neither reports an error, and that
// the next plan is empty.
func (x *plant) made(it planted, config cty.Value, title string) planted {
	x.Helper()
	it, diags := x.apply(it, config, x.plan(it, config))
	if diags.HasErrors() {
		x.Fatalf("%s: the next apply says %v", title, diags)
	}
	it = x.read(it)
	if again := x.plan(it, config); !again.Planned.RawEquals(it.state) {
		x.Errorf("%s: the plan after the next apply is not empty: drift %#v", title, it.state.GetAttr("drift"))
	}
	return it
}

// stands describes the machines and the cluster, except for values that differ between two runs.
func (x *plant) stands() string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, b := range []*box{x.head, x.worker} {
		for _, name := range slices.Sorted(maps.Keys(b.packages)) {
			say("%s: %s %s, held %v", b.name, name, b.packages[name], b.held[name])
		}
		say("%s: kubelet active %v, enabled %v, due %v", b.name, b.active, b.enabled, b.due)
		for _, name := range slices.Sorted(maps.Keys(b.Files)) {
			content := ""
			if name == flagsFile { // labels and taints count only while a node registers itself
				flags := b.flags()
				delete(flags, "node-labels")
				delete(flags, "register-with-taints")
				content = fmt.Sprint(flags)
			} else if !strings.HasSuffix(name, ".conf") && !strings.Contains(name, "/pki/") && !strings.HasPrefix(name, "/var/lib/stoke/") {
				content = string(b.Files[name].Content)
			}
			say("%s: %s %s", b.name, name, content)
		}
		if cert := b.Files[apiServerCertificate].Content; cert != nil {
			f, err := kubeadm.Observe(x.Context(), &b.Machine)
			say("%s: names %v, %v", b.name, f.Certificates[apiServerCertificate].Names, err)
		}
	}
	for _, name := range x.cluster.Names("nodes") {
		n := x.cluster.Node(name)
		n.Labels["taints"] = fmt.Sprint(n.Spec.Taints)
		say("node %s: %v, cordoned %v, %s", name, n.Labels, n.Spec.Unschedulable, n.Status.Conditions[0].Status)
	}
	for _, kind := range []string{"secrets", "configmaps", "daemonsets", "deployments", "runtimeclasses", "clusterrolebindings"} {
		say("%s: %v", kind, x.cluster.Names(kind))
	}
	return strings.Join(all, "\n")
}

// differs returns the first difference between two descriptions.
func differs(is, want string) string {
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("%q, not %q", strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""), strings.Join(b[min(i, len(b)):min(i+1, len(b))], ""))
		}
	}
	return ""
}

// refusedLife is the life of a resource: configurations, one after the other, and then
// its end.
type refusedLife struct {
	kind    string
	configs func(x *plant) []cty.Value // makes what is there before the resource, too
}

// suffers has the command or request n of each apply fail. wants are the descriptions
// after each apply without a failure.
func (l refusedLife) suffers(t *testing.T, n int, how effect, wants []string) {
	x := newPlant(t)
	it := planted{l.kind, cty.NullVal(x.schema.Resources[l.kind].Block.ImpliedType()), nil}
	configs := l.configs(x)
	for i, config := range configs {
		plan := x.plan(it, config)
		x.gate.refuse(n, how)
		var diags providers.Diagnostics
		it, diags = x.apply(it, config, plan)
		what := x.gate.open()
		title := fmt.Sprintf("step %d, %d (%s) refused with %s", i, n, what, how)
		if diags.HasErrors() && what == "" {
			t.Fatalf("%s: %v", title, diags)
		}
		if it.state.IsNull() {
			it = planted{l.kind, it.state, nil}
		}
		it = x.read(it)
		if i > 0 && diags.HasErrors() && (n/plantEvery+len(how))%2 == 1 { // and then the change is taken back
			back := title + ", then taken back"
			if next := x.plan(it, configs[i-1]); next.Planned.RawEquals(it.state) && x.stands() != wants[i-1] {
				t.Errorf("%s: the next plan has nothing to do: %s", back, differs(x.stands(), wants[i-1]))
			}
			it = x.made(it, configs[i-1], back)
			if is := x.stands(); is != wants[i-1] {
				t.Errorf("%s: after the next apply there is %s", back, differs(is, wants[i-1]))
			}
		}
		next := x.plan(it, config)
		if is := x.stands(); next.Planned.RawEquals(it.state) && is != wants[i] {
			t.Errorf("%s: %v; the next plan has nothing to do: %s", title, diags, differs(is, wants[i]))
			return
		}
		if i > 0 && len(next.Replace) > 0 {
			t.Errorf("%s: the next plan replaces by %v", title, next.Replace)
		}
		it = x.made(it, config, title)
		if is := x.stands(); is != wants[i] {
			t.Errorf("%s: after the next apply there is %s", title, differs(is, wants[i]))
		}
		if t.Failed() {
			return
		}
	}
	x.gate.refuse(n, how)
	left, diags := x.destroy(it)
	what := x.gate.open()
	if diags.HasErrors() {
		if left.state.IsNull() {
			t.Errorf("%d (%s) of a destroy refused with %s: the state has nothing more: %v", n, what, how, diags)
		}
		if left = x.read(left); !left.state.IsNull() {
			_, diags = x.destroy(left)
		}
	}
	if is, want := x.stands(), wants[len(configs)]; diags.HasErrors() || is != want {
		t.Errorf("%d (%s) of a destroy refused with %s: %v, left is %s", n, what, how, diags, differs(is, want))
	}
}

// undisturbed is a life in which nothing fails: the descriptions after each apply and
// after the destroy, and the commands and requests of each of them.
func (l refusedLife) undisturbed(t *testing.T) (wants []string, passed [][]string) {
	x := newPlant(t)
	configs := l.configs(x)
	before := x.stands()
	it := planted{l.kind, cty.NullVal(x.schema.Resources[l.kind].Block.ImpliedType()), nil}
	for i, config := range configs {
		plan := x.plan(it, config)
		x.gate.passed()
		done, diags := x.apply(it, config, plan)
		if passed = append(passed, x.gate.passed()); diags.HasErrors() {
			t.Fatalf("step %d: %v", i, diags)
		}
		if it = x.read(done); !x.plan(it, config).Planned.RawEquals(it.state) {
			t.Fatalf("step %d: the plan after it is not empty: drift %#v", i, it.state.GetAttr("drift"))
		}
		wants = append(wants, x.stands())
	}
	x.gate.passed()
	_, diags := x.destroy(it)
	if is := x.stands(); diags.HasErrors() || is != before {
		t.Fatalf("a destroy says %v, and leaves %s", diags, differs(is, before))
	}
	return append(wants, x.stands()), append(passed, x.gate.passed())
}

// run lets each command and request fail once, without the tag e2e each few of them.
func (l refusedLife) run(t *testing.T) {
	wants, passed := l.undisturbed(t)
	most := len(slices.MaxFunc(passed, func(a, b []string) int { return len(a) - len(b) }))
	if most < 60 {
		t.Fatalf("only %d commands and requests", most)
	}
	begin := map[effect]int{none: 0, whole: plantEvery / 2}
	for _, how := range []effect{none, half, whole} {
		for n := range most {
			due := (n-begin[how])%plantEvery == 0
			if how == half {
				due = slices.ContainsFunc(passed, func(step []string) bool { return n < len(step) && isKilled(step[n]) })
			}
			if due {
				t.Run(fmt.Sprintf("%d with %s", n, how), func(t *testing.T) {
					t.Parallel()
					l.suffers(t, n, how, wants)
				})
			}
		}
	}
}

// clusterConfigs are configurations of a cluster whose update changes arguments of the
// API server, the kubelet's configuration, the node's taint and the objects within.
func clusterConfigs(x *plant) (all []cty.Value) {
	ty := x.schema.Resources["metal_cluster"].Block.ImpliedType()
	url := netip.MustParseAddrPort(x.head.address())
	given := map[string]cty.Value{
		"control_plane": cty.ListVal([]cty.Value{x.way(x.head, ty.AttributeType("control_plane").ElementType())}), "version": cty.StringVal("1.36"),
		"endpoint": cty.StringVal(url.String()), "advertise_address": cty.StringVal(x.head.ip), "node_name": cty.StringVal("head"), "cni": cty.StringVal("external"),
		"deletion_protection": cty.False,
	}
	all = append(all, x.declared("metal_cluster", given))
	maps.Copy(given, map[string]cty.Value{
		"api_server_args": cty.MapVal(map[string]cty.Value{"event-ttl": cty.StringVal("2h")}), "cert_sans": cty.ListVal([]cty.Value{cty.StringVal("api.example.org")}),
		"kubelet_configuration": cty.StringVal("maxPods: 50"), "kube_proxy_configuration": cty.StringVal("mode: iptables"), "schedulable": cty.True,
		"kubeadm_patches": cty.MapVal(map[string]cty.Value{"etcd0+merge.yaml": cty.StringVal("{}")}), "gpu_plugin": cty.StringVal("none"),
	})
	return append(all, x.declared("metal_cluster", given))
}

// TestPlanAfterARefusedCluster: each command over SSH and each request of each apply of
// a cluster fails once: without effect, with its whole effect, and kubeadm half-way. The
// next plan has the missing part, also where the change is taken back, and the next apply
// makes it.
func TestPlanAfterARefusedCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of applies")
	}
	refusedLife{kind: "metal_cluster", configs: clusterConfigs}.run(t)
}
