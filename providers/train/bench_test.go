package train

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
)

// bench drives the provider as the engine does, with a fake trainer.
type bench struct {
	t      *testing.T
	p      providers.Provider
	dir    string // the fake trainer's
	runs   string
	data   string
	layers string // that behaviours have which name none
	code   string // folder of a program's code: experiments run it instead of a model

	mu       sync.Mutex
	progress []providers.Progress
	notes    []providers.Note
	kept     bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	root := t.TempDir()
	b := &bench{t: t, dir: filepath.Join(root, "bin"), runs: filepath.Join(root, "runs"), data: filepath.Join(root, "data")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(b.dir, trainerName)); err != nil {
		t.Fatal(err)
	}
	b.restart()
	t.Cleanup(b.stopAll)
	return b
}

// restart gives a fresh provider value, as the next phase or the next command
// would have.
func (b *bench) restart() {
	b.t.Helper()
	p, err := Entry("test").New()
	if err != nil {
		b.t.Fatal(err)
	}
	s, diags := p.Schema(context.Background())
	if diags.HasErrors() {
		b.t.Fatal(diags)
	}
	config := object(b.t, s.Provider.ImpliedType(), values{
		"runs_dir": cty.StringVal(b.runs), "datasets_dir": cty.StringVal(b.data),
		"trainer": cty.StringVal(filepath.Join(b.dir, trainerName)),
	})
	if diags := p.Configure(context.Background(), config); diags.HasErrors() {
		b.t.Fatal(diags)
	}
	b.p = p
}

// stopAll ends what a test left running: by identity, and only in its folder.
func (b *bench) stopAll() {
	entries, _ := os.ReadDir(b.runs)
	for _, e := range entries {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := local.Stop(ctx, local.Place(b.runs).Folder(e.Name())); err != nil {
			b.t.Error(err)
		}
		cancel()
	}
}

func (b *bench) behave(to behaviour) {
	b.t.Helper()
	if to.Layers == "" {
		to.Layers = b.layers
	}
	if err := run.WriteJSON(filepath.Join(b.dir, "behaviour.json"), to); err != nil {
		b.t.Fatal(err)
	}
}

// logged counts the lines of one of the fake trainer's logs.
func (b *bench) logged(name string) int {
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "\n")
}

type values map[string]cty.Value

// object makes a value of the type: what is not given is null.
func object(t *testing.T, ty cty.Type, given values) cty.Value {
	t.Helper()
	all := make(map[string]cty.Value)
	for name, at := range ty.AttributeTypes() {
		v, ok := given[name]
		switch {
		case !ok:
			all[name] = cty.NullVal(at)
		case at.IsObjectType() && v.IsKnown() && !v.IsNull():
			all[name] = object(t, at, v.AsValueMap())
		default:
			c, err := convert.Convert(v, at)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all[name] = c
		}
	}
	for name := range given {
		if _, ok := all[name]; !ok {
			t.Fatalf("no attribute %s", name)
		}
	}
	return cty.ObjectVal(all)
}

// thing is one resource instance as the engine keeps it.
type thing struct {
	typ     string
	state   cty.Value
	private []byte
}

func (b *bench) schema(typ string) *providers.Block {
	s, _ := b.p.Schema(context.Background())
	return s.Resources[typ].Block
}

func (b *bench) call(operation string) *providers.Call {
	return &providers.Call{
		Operation: operation,
		Progress: func(p providers.Progress) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.progress = append(b.progress, p)
		},
		Note: func(n providers.Note) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.notes = append(b.notes, n)
		},
		Keep: func() { b.mu.Lock(); defer b.mu.Unlock(); b.kept = true },
	}
}

func (b *bench) new(typ string) *thing {
	return &thing{typ: typ, state: cty.NullVal(b.schema(typ).ImpliedType())}
}

// plan plans a configuration for the thing. A null configuration is a destroy.
func (b *bench) plan(th *thing, config cty.Value) providers.PlanResponse {
	b.t.Helper()
	b.notes = nil
	if !config.IsNull() {
		if diags := b.p.ValidateResource(context.Background(), th.typ, config); diags.HasErrors() {
			return providers.PlanResponse{Diagnostics: diags}
		}
	}
	ctx := providers.WithCall(context.Background(), b.call(""))
	return b.p.Plan(ctx, providers.PlanRequest{Type: th.typ, Prior: th.state, Proposed: b.propose(th, config), Config: config, Private: th.private})
}

// propose keeps computed values that the configuration leaves open.
func (b *bench) propose(th *thing, config cty.Value) cty.Value {
	if config.IsNull() || th.state.IsNull() {
		return config
	}
	all := config.AsValueMap()
	for name, a := range b.schema(th.typ).Attributes {
		if a.Computed && all[name].IsNull() {
			all[name] = th.state.GetAttr(name)
		}
	}
	return cty.ObjectVal(all)
}

// apply carries a plan out and holds the provider to it.
func (b *bench) apply(ctx context.Context, call *providers.Call, th *thing, config cty.Value, p providers.PlanResponse) providers.Diagnostics {
	b.t.Helper()
	b.kept = false
	resp := b.p.Apply(providers.WithCall(ctx, call), providers.ApplyRequest{
		Type: th.typ, Prior: th.state, Planned: p.Planned, Config: config, Private: p.Private})
	if !resp.State.IsNull() && !resp.State.IsWhollyKnown() {
		b.t.Errorf("state is not wholly known: %#v", resp.State)
	}
	if !resp.Diagnostics.HasErrors() && !p.Planned.IsNull() {
		for name := range p.Planned.Type().AttributeTypes() {
			if want, got := p.Planned.GetAttr(name), resp.State.GetAttr(name); want.IsWhollyKnown() && !want.RawEquals(got) {
				b.t.Errorf("%s was planned as %#v, is %#v", name, want, got)
			}
		}
	}
	th.state, th.private = roundTrip(b.t, resp.State), resp.Private
	return resp.Diagnostics
}

// roundTrip does to a value what a state file does.
func roundTrip(t *testing.T, v cty.Value) cty.Value {
	t.Helper()
	data, err := jsonOf(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := valueOf(data, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read refreshes the thing.
func (b *bench) read(th *thing) providers.Diagnostics {
	b.t.Helper()
	resp := b.p.Read(providers.WithCall(context.Background(), b.call("")), providers.ReadRequest{Type: th.typ, State: th.state, Private: th.private})
	if !resp.Diagnostics.HasErrors() {
		th.state, th.private = resp.State, resp.Private
	}
	return resp.Diagnostics
}

// settle asks what became of a create: planned is its planned state.
func (b *bench) settle(typ, operation string, planned cty.Value) *thing {
	b.t.Helper()
	call := b.call(operation)
	call.Settling = true
	known, _ := cty.Transform(planned, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.NullVal(v.Type()), nil
		}
		return v, nil
	})
	resp := b.p.Read(providers.WithCall(context.Background(), call), providers.ReadRequest{Type: typ, State: known})
	if resp.Diagnostics.HasErrors() {
		b.t.Fatal(resp.Diagnostics)
	}
	return &thing{typ: typ, state: resp.State, private: resp.Private}
}

// make plans and applies a create that must succeed.
func (b *bench) make(typ, operation string, config cty.Value) *thing {
	b.t.Helper()
	th := b.new(typ)
	p := b.plan(th, config)
	noErrors(b.t, p.Diagnostics)
	noErrors(b.t, b.apply(context.Background(), b.call(operation), th, config, p))
	return th
}

// unchanged plans the same configuration again: there must be nothing to do.
func (b *bench) unchanged(th *thing, config cty.Value) {
	b.t.Helper()
	b.restart()
	noErrors(b.t, b.read(th))
	p := b.plan(th, config)
	noErrors(b.t, p.Diagnostics)
	if !p.Planned.RawEquals(th.state) || len(p.Replace) > 0 {
		b.t.Errorf("a second plan changes something:\n%s%v", cmp.Diff(show(th.state), show(p.Planned)), p.Replace)
	}
}

func show(v cty.Value) string {
	data, err := json.MarshalIndent(plain(v), "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func plain(v cty.Value) any {
	switch {
	case !v.IsKnown():
		return "(unknown)"
	case v.IsNull():
		return nil
	case v.Type().IsObjectType() || v.Type().IsMapType():
		out := make(map[string]any)
		for name, e := range v.AsValueMap() {
			out[name] = plain(e)
		}
		return out
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('g', -1)
	}
	return v.GoString()
}

func noErrors(t *testing.T, diags providers.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		if d.Severity == providers.Error {
			t.Fatalf("%s: %s %#v", d.Summary, d.Detail, d.Path)
		}
	}
}

// oneError expects exactly one error, and its summary.
func oneError(t *testing.T, diags providers.Diagnostics, summary string) providers.Diagnostic {
	t.Helper()
	var found []providers.Diagnostic
	for _, d := range diags {
		if d.Severity == providers.Error {
			found = append(found, d)
		}
	}
	if len(found) != 1 || found[0].Summary != summary {
		t.Fatalf("want one error %q, got %+v", summary, found)
	}
	if n := len(strings.Fields(summary)); n > 8 {
		t.Errorf("summary %q has %d words", summary, n)
	}
	return found[0]
}

func jsonOf(v cty.Value) ([]byte, error)                  { return ctyjson.Marshal(v, v.Type()) }
func valueOf(data []byte, ty cty.Type) (cty.Value, error) { return ctyjson.Unmarshal(data, ty) }

func importRequest(id string) providers.ImportRequest {
	return providers.ImportRequest{Type: experiment, ID: id}
}

func contains(s, part string) bool { return strings.Contains(s, part) }
