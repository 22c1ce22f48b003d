package run_test

import (
	"context"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// liar is a provider whose answers are not what they have to be.
type liar struct {
	shelfServer
	what string // which call lies
	how  func(cty.Value) cty.Value
}

func (p *liar) lie(what string, v cty.Value) cty.Value {
	if p.what != what || v == cty.NilVal || v.IsNull() {
		return v
	}
	return p.how(v)
}

func (p *liar) Upgrade(ctx context.Context, r providers.UpgradeRequest) providers.UpgradeResponse {
	resp := p.shelfServer.Upgrade(ctx, r)
	resp.State = p.lie("upgrade", resp.State)
	return resp
}

func (p *liar) Read(ctx context.Context, r providers.ReadRequest) providers.ReadResponse {
	resp := p.shelfServer.Read(ctx, r)
	resp.State = p.lie("read", resp.State)
	return resp
}

func (p *liar) ReadData(ctx context.Context, r providers.ReadDataRequest) providers.ReadDataResponse {
	resp := p.shelfServer.ReadData(ctx, r)
	resp.State = p.lie("data", resp.State)
	return resp
}

func (p *liar) Plan(ctx context.Context, r providers.PlanRequest) providers.PlanResponse {
	resp := p.shelfServer.Plan(ctx, r)
	resp.Planned = p.lie("plan", resp.Planned)
	return resp
}

func (p *liar) Apply(ctx context.Context, r providers.ApplyRequest) providers.ApplyResponse {
	resp := p.shelfServer.Apply(ctx, r)
	resp.State = p.lie("apply", resp.State)
	return resp
}

// with returns the object with one attribute changed.
func with(name string, v cty.Value) func(cty.Value) cty.Value {
	return func(object cty.Value) cty.Value {
		attrs := object.AsValueMap()
		attrs[name] = v
		return cty.ObjectVal(attrs)
	}
}

// TestUnsoundAnswers: nothing that a provider says goes into a plan or the
// state unchecked, and a wrong answer costs no object.
func TestUnsoundAnswers(t *testing.T) {
	unknown := with("value", cty.UnknownVal(cty.String))
	other := with("value", cty.True)
	marked := with("value", cty.StringVal("v").Mark("x"))
	size := with("nested", cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(9)}))
	none := func(cty.Value) cty.Value { return cty.NilVal }
	cases := []struct {
		name, what string
		how        func(cty.Value) cty.Value
		want       string
	}{
		{"unknown", "read", unknown, "not wholly known"},
		{"another type", "read", other, "value: string required"},
		{"another attribute", "read", with("more", cty.True), "more"},
		{"marks", "read", marked, "marks"},
		{"nothing", "read", none, "no value at all"},
		{"unknown", "upgrade", unknown, "not wholly known"},
		{"another type", "upgrade", other, "value: string required"},
		{"unknown", "data", with("value", cty.UnknownVal(cty.String)), "not wholly known"},
		{"another type", "data", other, "string required"},
		{"null", "data", func(v cty.Value) cty.Value { return cty.NullVal(v.Type()) }, "Provider returned no object"},
		{"another value", "plan", with("value", cty.StringVal("other")), "Provider produced invalid plan"},
		{"another type", "plan", other, "string required"},
		{"marks", "plan", marked, "marks"},
		{"nested", "plan", size, "nested"},
		{"unknown of the configuration", "plan", unknown, "Provider produced invalid plan"},
		{"another value", "apply", with("value", cty.StringVal("other")), "inconsistent result"},
		{"nested", "apply", size, "inconsistent result"},
		{"unknown", "apply", unknown, "unknown values"},
		{"another type", "apply", other, "does not fit its schema"},
		{"marks", "apply", marked, "does not fit its schema"},
		{"nothing", "apply", none, "does not fit its schema"},
		{"write-only", "apply", with("key", cty.StringVal("k")), "write-only"},
	}
	for _, c := range cases {
		t.Run(c.what+", "+c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			config := func(tag string) string {
				return thing("a", "value = \"v\"\nnested = { size = 1 }\ntags = { t = \""+tag+"\" }") + "data \"shelf_thing\" \"a\" { id = shelf_thing.a.id }\n"
			}
			w.must(w.config("main.tf", config("1")))
			w.applied(plan.Normal)
			entry := w.catalogue["registry.terraform.io/stokehq/shelf"]
			entry.New = func() (providers.Provider, error) { return &liar{shelfServer{s: s}, c.what, c.how}, nil }
			w.catalogue["registry.terraform.io/stokehq/shelf"] = entry
			if c.what != "data" { // which is read while planning as long as nothing changes
				w.must(w.config("main.tf", config("2")))
			}
			_, _, diags := w.apply(plan.Normal)
			if !diags.HasErrors() || !strings.Contains(text(diags), c.want) {
				t.Errorf("got\n%s\nwant something with\n%s", text(diags), c.want)
			}
			// With an honest provider all goes on.
			w.catalogue = s.catalogue()
			w.must(w.config("main.tf", config("3")))
			w.applied(plan.Normal)
			if p, diags := w.plan(plan.Normal); p.Changed() || diags.HasErrors() || len(s.things) != 1 {
				t.Errorf("afterwards: %s %s %v", summary(p), text(diags), s.things)
			}
		})
	}
}
