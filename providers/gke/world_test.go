package gke

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

const zone = "us-central1-a"

// TestMain sees to it that no test finds credentials of whoever runs it.
func TestMain(m *testing.M) {
	if err := os.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(os.TempDir(), "stoke-test-has-no-credentials.json")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// world drives the provider as the engine does: each phase has a provider of its
// own. Google is the double.
type world struct {
	testing.TB
	google    *gcptest.Cloud
	transport string
	entry     providers.Entry
	provider  map[string]cty.Value // of the block, beside the usual ones
	pace      cloud.Pace
	version   string // of the provider, which its calls name

	// single says that a phase ends where the next one begins; otherwise all end
	// with the test.
	single bool
	ended  func() error

	mu      sync.Mutex
	steps   []string // progress
	applies int
}

// transports runs a test over both.
func transports(t *testing.T, o gcptest.Options, test func(w *world)) {
	for _, transport := range []string{cloud.GRPC, cloud.REST} {
		t.Run(transport, func(t *testing.T) { test(newWorld(t, transport, o)) })
	}
}

func newWorld(t testing.TB, transport string, o gcptest.Options) *world {
	t.Helper()
	w := &world{TB: t, google: gcptest.New(t, o), transport: transport, pace: cloud.Pace{First: time.Millisecond, Most: 5 * time.Millisecond}, version: "test"}
	w.entry = entry(func() *gkeProvider { return &gkeProvider{version: w.version, pace: w.pace} }, "test")
	return w
}

func nulls(ty cty.Type) map[string]cty.Value {
	v := map[string]cty.Value{}
	for name, t := range ty.AttributeTypes() {
		v[name] = cty.NullVal(t)
		if t.IsListType() && t.ElementType().IsObjectType() && (name == "fallback" || name == "allow" || name == "deny") {
			v[name] = cty.ListValEmpty(t.ElementType()) // a block
		}
	}
	return v
}

// open configures a provider, and returns what that says.
func (w *world) open() (providers.Provider, providers.Diagnostics) {
	w.Helper()
	p, err := w.entry.New()
	if err != nil {
		w.Fatal(err)
	}
	if w.single {
		if w.ended != nil {
			w.ended()
		}
		w.ended = p.Close
	} else {
		w.Cleanup(func() { p.Close() })
	}
	schema, diags := p.Schema(w.Context())
	if diags.HasErrors() {
		w.Fatal(diags)
	}
	v := nulls(schema.Provider.ImpliedType())
	container := w.google.REST() + "/container"
	if w.transport == cloud.GRPC {
		container = "http://" + w.google.Container()
	}
	for name, text := range map[string]string{
		"project": w.google.Project(), "zone": zone, "transport": w.transport, "container_endpoint": container,
		"compute_endpoint": w.google.REST() + "/compute/v1/", "file_endpoint": w.google.REST() + "/file/",
	} {
		v[name] = cty.StringVal(text)
	}
	for name, val := range w.provider {
		v[name] = val
	}
	return p, p.Configure(w.Context(), cty.ObjectVal(v))
}

func (w *world) phase() providers.Provider {
	w.Helper()
	p, diags := w.open()
	if diags.HasErrors() {
		w.Fatal(diags)
	}
	return p
}

// thing is an object, as a state has it.
type thing struct {
	kind     string
	state    cty.Value
	private  []byte
	replaces cty.Value // of one that is planned: what it is made anew in place of
}

func (w *world) types(kind string) cty.Type {
	p, err := w.entry.New()
	if err != nil {
		w.Fatal(err)
	}
	defer p.Close()
	schema, _ := p.Schema(w.Context())
	return schema.Resources[kind].Block.ImpliedType()
}

// conf is a configuration in HCL's JSON: what is not given is null.
func (w *world) conf(kind string, given map[string]any) cty.Value {
	w.Helper()
	v, err := convert(given, w.types(kind))
	if err != nil {
		w.Fatalf("configuration: %v", err)
	}
	return v
}

// convert makes a value of plain data.
func convert(data any, ty cty.Type) (cty.Value, error) {
	if data == nil {
		return cty.NullVal(ty), nil
	}
	switch {
	case ty == cty.String, ty == cty.Bool, ty == cty.Number:
		switch d := data.(type) {
		case string:
			return cty.StringVal(d), nil
		case bool:
			return cty.BoolVal(d), nil
		case int:
			return cty.NumberIntVal(int64(d)), nil
		case float64:
			return cty.NumberFloatVal(d), nil
		}
	case ty.IsObjectType():
		d, ok := data.(map[string]any)
		if !ok {
			break
		}
		v := nulls(ty)
		for name, part := range d {
			if !ty.HasAttribute(name) {
				return cty.NilVal, fmt.Errorf("no %s", name)
			}
			got, err := convert(part, ty.AttributeType(name))
			if err != nil {
				return cty.NilVal, fmt.Errorf("%s: %w", name, err)
			}
			v[name] = got
		}
		return cty.ObjectVal(v), nil
	case ty.IsMapType():
		d, ok := data.(map[string]any)
		if !ok || len(d) == 0 {
			return cty.MapValEmpty(ty.ElementType()), nil
		}
		v := map[string]cty.Value{}
		for name, part := range d {
			got, err := convert(part, ty.ElementType())
			if err != nil {
				return cty.NilVal, err
			}
			v[name] = got
		}
		return cty.MapVal(v), nil
	case ty.IsListType(), ty.IsSetType():
		var v []cty.Value
		d, _ := data.([]any)
		for _, part := range d {
			got, err := convert(part, ty.ElementType())
			if err != nil {
				return cty.NilVal, err
			}
			v = append(v, got)
		}
		switch {
		case ty.IsSetType() && len(v) == 0:
			return cty.SetValEmpty(ty.ElementType()), nil
		case ty.IsSetType():
			return cty.SetVal(v), nil
		case len(v) == 0:
			return cty.ListValEmpty(ty.ElementType()), nil
		}
		return cty.ListVal(v), nil
	}
	return cty.NilVal, fmt.Errorf("%T is no %s", data, ty.FriendlyName())
}

// planned is an answer to a plan, with what it was asked for.
type planned struct {
	providers.PlanResponse
	prior  thing
	config cty.Value
	notes  []string
}

func (p planned) noop() bool { return p.Planned.RawEquals(p.prior.state) && len(p.Replace) == 0 }

// proposed is what Terraform's core hands to a provider: the configuration, with
// what is computed from the prior state.
func proposed(attributes map[string]*providers.Attribute, prior, config cty.Value) cty.Value {
	m := config.AsValueMap()
	for name, a := range attributes {
		if a.Computed && m[name].IsNull() && !prior.IsNull() {
			m[name] = prior.GetAttr(name)
		}
	}
	if a, ok := m["accelerator"]; ok && a.IsKnown() && !a.IsNull() && !prior.IsNull() && !prior.GetAttr("accelerator").IsNull() {
		inner := a.AsValueMap()
		if inner["driver_version"].IsNull() {
			inner["driver_version"] = prior.GetAttr("accelerator").GetAttr("driver_version")
		}
		m["accelerator"] = cty.ObjectVal(inner)
	}
	return cty.ObjectVal(m)
}

func (w *world) plan(prior thing, config cty.Value) planned {
	w.Helper()
	p := w.phase()
	if prior.state == cty.NilVal {
		prior.state = cty.NullVal(config.Type())
	}
	out := planned{prior: prior, config: config}
	ctx := providers.WithCall(w.Context(), &providers.Call{Address: prior.kind + ".x", Replaces: prior.replaces, Note: func(n providers.Note) { out.notes = append(out.notes, n.Text) }})
	if out.Diagnostics = p.ValidateResource(ctx, prior.kind, config); out.Diagnostics.HasErrors() {
		return out
	}
	schema, _ := p.Schema(ctx)
	out.PlanResponse = p.Plan(ctx, providers.PlanRequest{Type: prior.kind, Prior: prior.state, Config: config, Private: prior.private,
		Proposed: proposed(schema.Resources[prior.kind].Block.Attributes, prior.state, config)})
	return out
}

// apply carries a plan out as this operation.
func (w *world) apply(operation string, pl planned) (thing, providers.ApplyResponse) {
	w.Helper()
	ctx := providers.WithCall(w.Context(), &providers.Call{Operation: operation, Address: pl.prior.kind + ".x", Progress: func(p providers.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.steps = append(w.steps, fmt.Sprintf("%.0f %s", p.Percent, p.Step))
	}})
	r := w.phase().Apply(ctx, providers.ApplyRequest{Type: pl.prior.kind, Prior: pl.prior.state, Planned: pl.Planned, Config: pl.config, Private: pl.Private})
	return thing{kind: pl.prior.kind, state: r.State, private: r.Private}, r
}

// make plans and applies, and neither may fail; nothing that was planned may come
// out otherwise.
func (w *world) make(prior thing, config cty.Value) thing {
	w.Helper()
	pl := w.plan(prior, config)
	if pl.Diagnostics.HasErrors() {
		w.Fatalf("plan: %v", pl.Diagnostics)
	}
	w.applies++
	got, r := w.apply(fmt.Sprint("apply-", w.applies), pl)
	if r.Diagnostics.HasErrors() {
		w.Fatalf("apply: %v", r.Diagnostics)
	}
	for name, v := range pl.Planned.AsValueMap() {
		if v.IsWhollyKnown() && !got.state.GetAttr(name).RawEquals(v) {
			w.Errorf("%s is %#v, planned was %#v", name, got.state.GetAttr(name), v)
		}
	}
	return got
}

// refresh reads an object as it is now; a null state says that it is gone.
func (w *world) refresh(of thing) thing {
	w.Helper()
	r := w.phase().Read(w.Context(), providers.ReadRequest{Type: of.kind, State: of.state, Private: of.private})
	if r.Diagnostics.HasErrors() {
		w.Fatalf("read: %v", r.Diagnostics)
	}
	return thing{kind: of.kind, state: r.State, private: r.Private}
}

// settle reads a create whose outcome nobody knows.
func (w *world) settle(operation string, pl planned) thing {
	w.Helper()
	state, err := cty.Transform(pl.Planned, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.NullVal(v.Type()), nil
		}
		return v, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx := providers.WithCall(w.Context(), &providers.Call{Operation: operation, Settling: true})
	r := w.phase().Read(ctx, providers.ReadRequest{Type: pl.prior.kind, State: state})
	if r.Diagnostics.HasErrors() {
		w.Fatalf("settle: %v", r.Diagnostics)
	}
	return thing{kind: pl.prior.kind, state: r.State, private: r.Private}
}

// empty checks that a plan after a refresh has nothing to do.
func (w *world) empty(of thing, config cty.Value) thing {
	w.Helper()
	now := w.refresh(of)
	if now.state.IsNull() {
		w.Fatal("it is gone")
	}
	pl := w.plan(now, config)
	if pl.Diagnostics.HasErrors() || !pl.noop() {
		w.Errorf("a second plan is not empty: %v, replaces %v", pl.Diagnostics, pl.Replace)
		for name, v := range pl.Planned.AsValueMap() {
			if is := now.state.GetAttr(name); !v.RawEquals(is) {
				w.Errorf("%s was %#v\nis planned %#v", name, is, v)
			}
		}
	}
	return now
}

// remade checks that an object which somebody deleted is made anew.
func (w *world) remade(of thing, config cty.Value, path string) {
	w.Helper()
	w.google.Remove(path)
	if now := w.refresh(of); !now.state.IsNull() {
		w.Errorf("%s was deleted by hand, and is still there", path)
	}
	it := w.empty(w.make(thing{kind: of.kind}, config), config)
	if w.object(path) == nil || textIn(it.state, "id") != path {
		w.Errorf("%s is not made anew", path)
	}
}

func (w *world) destroy(of thing) providers.ApplyResponse {
	w.Helper()
	null := cty.NullVal(of.state.Type())
	return w.phase().Apply(w.Context(), providers.ApplyRequest{Type: of.kind, Prior: of.state, Planned: null, Config: null, Private: of.private})
}

// mutations are the calls that changed something since the last look, in order.
func (w *world) mutations() []string {
	var all []string
	for _, c := range w.google.Calls() {
		if c.Mutating && c.Code == 0 {
			all = append(all, c.Method)
		}
	}
	w.google.Forget()
	return all
}

// brought checks that one call of a method was made for an attribute, with the one
// field that the table says.
func (w *world) brought(attribute, method, field string) {
	w.Helper()
	calls := w.google.Calls("UpdateCluster", "UpdateNodePool")
	if got := w.mutations(); !slices.Equal(got, []string{method}) {
		w.Errorf("%s is changed by %v, not by one %s", attribute, got, method)
	}
	fields := sent(w.TB, calls)
	if attribute == "machine_type" || attribute == "disk_type" || attribute == "disk_size_gb" { // they go together
		fields = slices.DeleteFunc(fields, func(f string) bool { return f != camel(field) })
	}
	if len(calls) > 0 && !slices.Equal(fields, []string{camel(field)}) {
		w.Errorf("%s is changed by the fields %v, not by %s", attribute, fields, camel(field))
	}
}

// importing reads an object by the id that people know, without a configuration.
func (w *world) importing(kind, id string) thing {
	w.Helper()
	return w.importingAs(cty.NilVal, kind, id)
}

// importingAs reads an object by the id that people know, as an import with this configuration does.
func (w *world) importingAs(config cty.Value, kind, id string) thing {
	w.Helper()
	r := w.phase().Import(w.Context(), providers.ImportRequest{Type: kind, ID: id, Config: config})
	if r.Diagnostics.HasErrors() || len(r.Objects) != 1 {
		w.Fatalf("import: %v", r.Diagnostics)
	}
	return w.refresh(thing{kind: kind, state: r.Objects[0].State, private: r.Objects[0].Private})
}

// replaced are the names of the attributes whose change makes a new object.
func (p planned) replaced() []string {
	var all []string
	for _, path := range p.Replace {
		name := ""
		for _, step := range path {
			if s, ok := step.(cty.GetAttrStep); ok {
				name += "." + s.Name
			}
		}
		all = append(all, strings.TrimPrefix(name, "."))
	}
	slices.Sort(all)
	return all
}

// key is a service account's key whose tokens come from this server.
func key(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	body, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "ci@stoke-test.iam.gserviceaccount.com", "private_key_id": "1", "private_key": string(text), "token_uri": server.URL})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
