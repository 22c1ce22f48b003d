package kube

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

var shared = kubetest.Shared{Options: kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// world drives the provider as the engine does: each phase has a provider of
// its own.
type world struct {
	others  []string // what providers make that stoke does not have in it
	t       *testing.T
	cluster *kubetest.Cluster
	ns      string
	entry   providers.Entry
	config  string // path of the kubeconfig
}

// thing is an object of the provider, as a state has it.
type thing struct {
	kind    string
	state   cty.Value
	private []byte
	name    string // in its address

	replaces cty.Value // what it is made in place of
}

func (it thing) address() string { return it.kind + "." + cmp.Or(it.name, "x") }

func newWorld(t *testing.T) *world {
	t.Helper()
	c := shared.Cluster(t)
	return &world{t: t, cluster: c, ns: c.Namespace(t), entry: Entry("test"), config: c.Kubeconfig()}
}

// phase is a configured provider.
func (w *world) phase() providers.Provider {
	w.t.Helper()
	p, err := w.entry.New()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.Close() })
	schema, diags := p.Schema(w.t.Context())
	if diags.HasErrors() {
		w.t.Fatal(diags)
	}
	v := nulls(schema.Provider.ImpliedType())
	v["config_path"] = cty.StringVal(w.config)
	if diags := p.Configure(w.t.Context(), cty.ObjectVal(v)); diags.HasErrors() {
		w.t.Fatal(diags)
	}
	return p
}

func nulls(ty cty.Type) map[string]cty.Value {
	v := map[string]cty.Value{}
	for name, t := range ty.AttributeTypes() {
		v[name] = cty.NullVal(t)
	}
	return v
}

// conf is a configuration: attributes that are not given are null.
func (w *world) conf(kind string, given map[string]cty.Value) cty.Value {
	w.t.Helper()
	schema, _ := w.phase().Schema(w.t.Context())
	r := schema.Resources[kind]
	if r == nil {
		w.t.Fatalf("no %s", kind)
	}
	v := nulls(r.Block.ImpliedType())
	for name, val := range given {
		v[name] = val
	}
	return cty.ObjectVal(v)
}

// yaml is the configuration of a manifest; NS stands for the test's namespace.
func (w *world) yaml(text string, more ...map[string]cty.Value) cty.Value {
	given := map[string]cty.Value{"yaml": cty.StringVal(strings.ReplaceAll(text, "NS", w.ns)), "namespace": cty.StringVal(w.ns)}
	for _, m := range more {
		for name, v := range m {
			given[name] = v
		}
	}
	return w.conf("kube_manifest", given)
}

// planned is an answer to a plan, with what it was asked for.
type planned struct {
	providers.PlanResponse
	kind   string
	prior  thing
	config cty.Value
	notes  []string
	kinds  []providers.Note // the same, with what else is said of them
	review providers.Diagnostics
}

// noop reports that nothing is to be done.
func (p planned) noop() bool {
	return p.Planned.RawEquals(p.prior.state) && len(p.Replace) == 0
}

func (p planned) objects() map[string]string {
	out := map[string]string{}
	v := p.Planned.GetAttr("objects")
	if !v.IsKnown() || v.IsNull() {
		return nil
	}
	for k, o := range v.AsValueMap() {
		if out[k] = "unknown"; o.IsKnown() {
			out[k] = o.AsString()
		}
	}
	return out
}

// proposed is what Terraform's core hands to a provider: the configuration,
// with what is computed from the prior state, and without what is only written.
func (w *world) proposed(p providers.Provider, kind string, prior, config cty.Value) cty.Value {
	schema, _ := p.Schema(w.t.Context())
	m := config.AsValueMap()
	for name, a := range schema.Resources[kind].Block.Attributes {
		switch {
		case a.WriteOnly:
			m[name] = cty.NullVal(a.Type)
		case a.Computed && m[name].IsNull() && !prior.IsNull():
			m[name] = prior.GetAttr(name)
		}
	}
	return cty.ObjectVal(m)
}

func (w *world) plan(prior thing, config cty.Value) planned {
	w.t.Helper()
	return w.planIn(w.phase(), prior, config)
}

func (w *world) planIn(p providers.Provider, prior thing, config cty.Value) planned {
	w.t.Helper()
	prior.kind = cmp.Or(prior.kind, "kube_manifest")
	kind := prior.kind
	if prior.state == cty.NilVal {
		prior.state = cty.NullVal(config.Type())
	}
	out := planned{kind: kind, prior: prior, config: config}
	var mu sync.Mutex
	ctx := providers.WithCall(w.t.Context(), &providers.Call{Address: prior.address(), Replaces: prior.replaces, Note: func(n providers.Note) {
		mu.Lock()
		defer mu.Unlock()
		out.notes, out.kinds = append(out.notes, n.Text), append(out.kinds, n)
	}})
	if diags := p.ValidateResource(ctx, kind, config); diags.HasErrors() {
		out.Diagnostics = diags
		return out
	}
	out.PlanResponse = p.Plan(ctx, providers.PlanRequest{Type: kind, Prior: prior.state, Proposed: w.proposed(p, kind, prior.state, config), Config: config, Private: prior.private})
	if !out.Diagnostics.HasErrors() {
		var notes []providers.Note
		out.review, notes = w.reviews(out)
		out.kinds = append(out.kinds, notes...)
		out.notes = append(out.notes, textsOf(notes)...)
	}
	return out
}

// review looks at several plans as one.
func (w *world) review(plans ...planned) (providers.Diagnostics, []string) {
	diags, notes := w.reviews(plans...)
	return diags, textsOf(notes)
}

func textsOf(notes []providers.Note) (texts []string) {
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return texts
}

func (w *world) reviews(plans ...planned) (providers.Diagnostics, []providers.Note) {
	var all []providers.PlannedInstance
	for _, p := range plans {
		all = append(all, providers.PlannedInstance{Source: Source, Address: p.prior.address(), Type: p.kind, Prior: p.prior.state, Planned: p.Planned})
	}
	notes, diags := w.entry.Review(w.t.Context(), providers.Review{Planned: all, Others: w.others})
	return diags, notes
}

// said is all that is told about a plan.
func (p planned) said() providers.Diagnostics { return slices.Concat(p.Diagnostics, p.review) }

var operations atomic.Int64

// apply carries a plan out in a phase of its own.
func (w *world) apply(pl planned) (thing, providers.ApplyResponse) {
	w.t.Helper()
	return w.applyIn(w.phase(), pl)
}

func (w *world) applyIn(p providers.Provider, pl planned) (thing, providers.ApplyResponse) {
	w.t.Helper()
	operation := fmt.Sprintf("op-%s-%d", w.ns, operations.Add(1))
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	ctx = providers.WithCall(ctx, &providers.Call{Operation: operation, Address: pl.prior.address()})
	r := p.Apply(ctx, providers.ApplyRequest{Type: pl.kind, Prior: pl.prior.state, Planned: pl.Planned, Config: pl.config, Private: pl.Private})
	return thing{kind: pl.kind, state: r.State, private: r.Private, name: pl.prior.name}, r
}

// make plans and applies, and neither may fail.
func (w *world) make(prior thing, config cty.Value) thing {
	w.t.Helper()
	pl := w.plan(prior, config)
	if pl.Diagnostics.HasErrors() || pl.review.HasErrors() {
		w.t.Fatalf("plan: %v %v", pl.Diagnostics, pl.review)
	}
	got, r := w.apply(pl)
	if r.Diagnostics.HasErrors() {
		w.t.Fatalf("apply: %v", r.Diagnostics)
	}
	if errs := pl.Planned.Type().TestConformance(got.state.Type()); errs != nil {
		w.t.Fatal(errs)
	}
	for k, text := range pl.objects() {
		if now := got.state.GetAttr("objects").AsValueMap()[k]; text != "unknown" && (now == cty.NilVal || now.AsString() != text) {
			w.t.Errorf("%s is not as it was planned:\n%s\n%#v", k, text, now)
		}
	}
	return got
}

// refresh reads an object as it is now.
func (w *world) refresh(of thing) thing {
	w.t.Helper()
	return w.refreshIn(w.phase(), of)
}

func (w *world) refreshIn(p providers.Provider, of thing) thing {
	w.t.Helper()
	ctx := providers.WithCall(w.t.Context(), &providers.Call{Address: of.address()})
	r := p.Read(ctx, providers.ReadRequest{Type: of.kind, State: of.state, Private: of.private})
	if r.Diagnostics.HasErrors() {
		w.t.Fatalf("read: %v", r.Diagnostics)
	}
	return thing{kind: of.kind, state: r.State, private: r.Private, name: of.name}
}

// empty checks that a plan after a refresh has nothing to do.
func (w *world) empty(of thing, config cty.Value) thing {
	w.t.Helper()
	now := w.refresh(of)
	if now.state.IsNull() {
		w.t.Fatal("it is gone")
	}
	pl := w.plan(now, config)
	if pl.Diagnostics.HasErrors() || !pl.noop() {
		w.t.Errorf("a second plan is not empty: %v", pl.Diagnostics)
		if was := now.state.GetAttr("objects").AsValueMap(); pl.Planned.IsWhollyKnown() {
			for name, v := range pl.Planned.GetAttr("objects").AsValueMap() {
				if !v.RawEquals(was[name]) {
					w.t.Errorf("%s was %#v\nis %#v", name, was[name], v)
				}
			}
		}
	}
	return now
}

// destroy deletes an object.
func (w *world) destroy(of thing) {
	w.t.Helper()
	if r := w.destroys(of); r.Diagnostics.HasErrors() || !r.State.IsNull() {
		w.t.Fatalf("destroy: %v", r.Diagnostics)
	}
}

// destroys is destroy, and may fail.
func (w *world) destroys(of thing) providers.ApplyResponse {
	w.t.Helper()
	ctx := providers.WithCall(w.t.Context(), &providers.Call{Address: of.address()})
	null := cty.NullVal(of.state.Type())
	return w.phase().Apply(ctx, providers.ApplyRequest{Type: of.kind, Prior: of.state, Planned: null, Config: null, Private: of.private})
}

func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	return strings.TrimSpace(w.cluster.Kubectl(w.t, "", append([]string{"-n", w.ns}, args...)...))
}

// says checks that an error is told, at an attribute, and what it says.
func says(t *testing.T, diags providers.Diagnostics, summary, detail string) {
	t.Helper()
	for _, d := range diags {
		if d.Severity == providers.Error && strings.Contains(d.Summary, summary) && strings.Contains(d.Detail, detail) {
			if len(d.Path) == 0 {
				t.Errorf("%q is told at no attribute", d.Summary)
			}
			return
		}
	}
	t.Errorf("no error %q with %q in %v", summary, detail, diags)
}

// quotaCounts reports that the namespace's quotas are in force.
func quotaCounts(w *world) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		list, err := w.cluster.Client.CoreV1().ResourceQuotas(w.ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		used := list.Items[0].Status.Used["count/configmaps"]
		return used.Value() > 0, nil
	}
}

// leaving reports that an object is being deleted.
func (w *world) leaving(object string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) { return w.field(object, ".metadata.deletionTimestamp") != "", nil }
}

// field is one field of an object, by kubectl's path.
func (w *world) field(object, path string) string {
	w.t.Helper()
	return w.kubectl("get", object, "-o", "jsonpath={"+path+"}", "--ignore-not-found")
}
