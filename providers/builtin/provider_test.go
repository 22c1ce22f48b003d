package builtin

import (
	"context"
	"regexp"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/providers"
)

var (
	str     = cty.StringVal
	null    = cty.NullVal(cty.DynamicPseudoType)
	unknown = cty.UnknownVal(cty.String)
	aTuple  = cty.TupleVal([]cty.Value{cty.NumberIntVal(1), str("b"), cty.True})
)

// Each row is what Terraform 1.11.4 plans for the same step.
func TestPlan(t *testing.T) {
	none := cty.NilVal
	tests := []struct {
		name               string
		prior              cty.Value // null for a create
		input, triggers    cty.Value
		wantID, wantOutput cty.Value
		wantReplace        bool
	}{
		{"create", none, aTuple, null, unknown, cty.DynamicVal, false},
		{"create empty", none, null, null, unknown, null, false},
		{"create from unknown", none, unknown, unknown, unknown, cty.DynamicVal, false},
		{"no change", object(str("1"), aTuple, aTuple, str("t")), aTuple, str("t"), str("1"), aTuple, false},
		{"null of another type", object(str("1"), null, null, null), cty.NullVal(cty.String), cty.NullVal(cty.Bool), str("1"), null, false},
		{"input changes", object(str("1"), aTuple, aTuple, null), str("x"), null, str("1"), cty.DynamicVal, false},
		{"input is taken out", object(str("1"), str("x"), str("x"), null), null, null, str("1"), cty.DynamicVal, false},
		{"input unknown", object(str("1"), str("x"), str("x"), null), unknown, null, str("1"), cty.DynamicVal, false},
		{"input changes its type", object(str("1"), str("1"), str("1"), null), cty.NumberIntVal(1), null, str("1"), cty.DynamicVal, false},
		{"output that somebody edited stays", object(str("1"), str("x"), str("y"), null), str("x"), null, str("1"), str("y"), false},
		{"trigger changes", object(str("1"), str("x"), str("x"), str("t")), str("x"), str("u"), str("1"), str("x"), true},
		{"trigger unknown", object(str("1"), str("x"), str("x"), str("t")), str("x"), unknown, str("1"), str("x"), true},
		{"trigger comes", object(str("1"), null, null, null), null, str("t"), str("1"), null, true},
	}
	p := newProvider(nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prior, id, output := tt.prior, null, null
			if prior == none {
				prior = null
			} else {
				id, output = prior.GetAttr("id"), prior.GetAttr("output")
			}
			got := p.Plan(t.Context(), providers.PlanRequest{
				Type: dataType, Prior: prior, Proposed: object(id, tt.input, output, tt.triggers), Private: []byte("p"),
			})
			if got.Diagnostics != nil {
				t.Fatal(got.Diagnostics)
			}
			for name, want := range map[string]cty.Value{"id": tt.wantID, "output": tt.wantOutput, "input": tt.input, "triggers_replace": tt.triggers} {
				v := got.Planned.GetAttr(name)
				if !v.RawEquals(want) && (v.IsKnown() || want.IsKnown()) {
					t.Errorf("%s: got %#v, want %#v", name, v, want)
				}
			}
			if (len(got.Replace) > 0) != tt.wantReplace || string(got.Private) != "p" {
				t.Errorf("replace %v, private %q", got.Replace, got.Private)
			}
		})
	}
}

func TestApply(t *testing.T) {
	p := newProvider(nil)
	apply := func(prior, planned cty.Value) cty.Value {
		t.Helper()
		r := p.Apply(t.Context(), providers.ApplyRequest{Type: dataType, Prior: prior, Planned: planned})
		if r.Diagnostics != nil {
			t.Fatal(r.Diagnostics)
		}
		return r.State
	}
	a := apply(null, object(unknown, aTuple, cty.DynamicVal, null))
	id := a.GetAttr("id").AsString()
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("id %q is no random UUID", id)
	}
	if !a.RawEquals(object(str(id), aTuple, aTuple, null)) {
		t.Errorf("got %#v", a)
	}
	b := apply(a, object(str(id), str("x"), cty.DynamicVal, str("t")))
	if !b.RawEquals(object(str(id), str("x"), str("x"), str("t"))) {
		t.Errorf("got %#v", b)
	}
	if c := apply(null, object(unknown, null, null, null)); c.GetAttr("id").AsString() == id {
		t.Error("two objects have one id")
	}
	if gone := apply(b, cty.NullVal(b.Type())); !gone.IsNull() {
		t.Errorf("destroyed, but got %#v", gone)
	}
}

func TestUpgrade(t *testing.T) {
	p := newProvider(nil)
	whole := object(str("1"), aTuple, aTuple, str("t"))
	text, err := ctyjson.Marshal(whole, cty.Object(attributeTypes))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, json string
		version    int64
		want       cty.Value // NilVal: an error
	}{
		{"round trip", string(text), 0, whole},
		{"as Terraform writes it", `{"id":"1","input":{"value":[1,"b",true],"type":["tuple",["number","string","bool"]]},"output":null,"triggers_replace":null}`, 0, object(str("1"), aTuple, null, null)},
		{"missing attributes are null", `{"id":"1"}`, 0, object(str("1"), null, null, null)},
		{"attributes of old are dropped", `{"id":"1","gone":7}`, 0, object(str("1"), null, null, null)},
		{"newer", `{"id":"1"}`, 1, cty.NilVal},
		{"no object", `[1]`, 0, cty.NilVal},
		{"wrong type", `{"id":{}}`, 0, cty.NilVal},
		{"torn", `{"id":"1","inp`, 0, cty.NilVal},
		{"no type beside the value", `{"id":"1","input":"x"}`, 0, cty.NilVal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := p.Upgrade(t.Context(), providers.UpgradeRequest{Type: dataType, Version: tt.version, JSON: []byte(tt.json)})
			switch {
			case tt.want == cty.NilVal:
				if !got.Diagnostics.HasErrors() {
					t.Errorf("no error, but %#v", got.State)
				}
			case got.Diagnostics != nil || !got.State.RawEquals(tt.want):
				t.Errorf("got %#v %v, want %#v", got.State, got.Diagnostics, tt.want)
			}
		})
	}
}

func TestReadImportValidate(t *testing.T) {
	p, ctx := newProvider(nil), t.Context()
	state := object(str("1"), null, null, null)
	if r := p.Read(ctx, providers.ReadRequest{Type: dataType, State: state}); !r.State.RawEquals(state) {
		t.Errorf("read: %#v", r.State)
	}
	settling := providers.WithCall(ctx, &providers.Call{Settling: true, Operation: "op"})
	if r := p.Read(settling, providers.ReadRequest{Type: dataType, State: state}); !r.State.IsNull() {
		t.Errorf("settling read: %#v", r.State)
	}
	imported := p.Import(ctx, providers.ImportRequest{Type: dataType, ID: "1"})
	if len(imported.Objects) != 1 || !imported.Objects[0].State.RawEquals(state) {
		t.Errorf("import: %#v", imported)
	}
	if r := p.Import(ctx, providers.ImportRequest{Type: dataType}); !r.Diagnostics.HasErrors() {
		t.Error("import without an id")
	}
	if d := p.ValidateResource(ctx, dataType, object(null, str("x"), null, null)); d != nil {
		t.Errorf("validate: %v", d)
	}
	if d := p.ValidateResource(ctx, dataType, object(str("1"), null, str("x"), null)); len(d) != 2 {
		t.Errorf("validate read-only: %v", d)
	}
	for name, d := range map[string]providers.Diagnostics{
		"validate": p.ValidateResource(ctx, "terraform_date", state),
		"plan":     p.Plan(ctx, providers.PlanRequest{Type: "terraform_date", Proposed: state, Prior: null}).Diagnostics,
		"apply":    p.Apply(ctx, providers.ApplyRequest{Type: "terraform_date", Planned: state, Prior: null}).Diagnostics,
		"data":     p.ReadData(ctx, providers.ReadDataRequest{Type: "x"}).Diagnostics,
	} {
		if !d.HasErrors() {
			t.Errorf("%s: no error for an unknown type", name)
		}
	}
}

func BenchmarkTerraformData(b *testing.B) {
	p, ctx := newProvider(nil), context.Background()
	proposed := object(cty.NullVal(cty.String), str("x"), null, null)
	planned := p.Plan(ctx, providers.PlanRequest{Type: dataType, Prior: null, Proposed: proposed}).Planned
	b.Run("Plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Plan(ctx, providers.PlanRequest{Type: dataType, Prior: null, Proposed: proposed})
		}
	})
	b.Run("Apply", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Apply(ctx, providers.ApplyRequest{Type: dataType, Prior: null, Planned: planned})
		}
	})
}
