package providers

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

const thingType = "fake_thing"

type vals = map[string]cty.Value

func str(s string) cty.Value { return cty.StringVal(s) }

// fake returns a configured adapter around fakeProvider, and what it saw.
func fake(t testing.TB) (Provider, *seen) {
	t.Helper()
	s := &seen{}
	p := FromServer(providerserver.NewProtocol6(&fakeProvider{seen: s})(), ServerOptions{Name: "stokehq/fake", Marks: true, NoEffect: []string{"fake_other"}})
	if d := p.Configure(t.Context(), cty.ObjectVal(vals{"region": str("eu"), "token": cty.NullVal(cty.String)})); d.HasErrors() {
		t.Fatal(d)
	}
	return p, s
}

// thingVal is a fake_thing: attributes that are not named are null, and blocks
// empty.
func thingVal(t testing.TB, p Provider, v vals) cty.Value {
	t.Helper()
	schema, _ := p.Schema(t.Context())
	full := vals{}
	for name, ty := range schema.Resources[thingType].Block.ImpliedType().AttributeTypes() {
		full[name] = cty.NullVal(ty)
		if b := schema.Resources[thingType].Block.Blocks[name]; b != nil && b.Nesting != Single {
			full[name] = cty.UnknownAsNull(emptyOf(ty))
		}
	}
	for name, val := range v {
		if _, ok := full[name]; !ok {
			t.Fatalf("no attribute %s", name)
		}
		full[name] = val
	}
	return cty.ObjectVal(full)
}

func emptyOf(ty cty.Type) cty.Value {
	if ty.IsSetType() {
		return cty.SetValEmpty(ty.ElementType())
	}
	return cty.ListValEmpty(ty.ElementType())
}

func leafVal(name, size string) cty.Value {
	v := vals{"name": str(name), "size": cty.NullVal(cty.String)}
	if size != "" {
		v["size"] = str(size)
	}
	return cty.ObjectVal(v)
}

func nullThing(t testing.TB, p Provider) cty.Value { return cty.NullVal(thingVal(t, p, nil).Type()) }

func TestServerSchema(t *testing.T) {
	p, saw := fake(t)
	if saw.terraformVersion != "1.11.4" || saw.region.ValueString() != "eu" {
		t.Errorf("configured with version %q, region %q", saw.terraformVersion, saw.region)
	}
	schema, diags := p.Schema(t.Context())
	if diags != nil {
		t.Fatal(diags)
	}
	if !schema.Marks || !schema.PlanDestroy || !schema.Provider.Attributes["token"].Sensitive {
		t.Errorf("provider: %+v", schema)
	}
	thing := schema.Resources[thingType]
	if thing.Version != 3 || thing.Block.Description != "A thing." || thing.NoEffect {
		t.Errorf("resource: %+v", thing)
	}
	a := thing.Block.Attributes
	for name, ok := range map[string]bool{
		"id computed":    a["id"].Computed && !a["id"].Optional && a["id"].Type == cty.String,
		"name required":  a["name"].Required,
		"colour both":    a["colour"].Optional && a["colour"].Computed,
		"rev number":     a["rev"].Type == cty.Number,
		"secret":         a["secret"].Sensitive,
		"write-only":     a["wo"].WriteOnly,
		"deprecated":     a["old"].Deprecated && a["old"].DeprecationMessage == "Use name.",
		"description":    a["do"].Description == "What to do.",
		"dynamic":        a["any"].Type == cty.DynamicPseudoType,
		"list of number": a["nums"].Type.Equals(cty.List(cty.Number)),
		"set of string":  a["tags"].Type.Equals(cty.Set(cty.String)),
		"object":         a["obj"].Type.Equals(cty.Object(map[string]cty.Type{"x": cty.Bool})),
		"single":         a["one"].Nested.Nesting == Single && a["one"].Nested.Attributes["size"].Computed,
		"list":           a["list"].Nested.Nesting == List,
		"set":            a["set"].Nested.Nesting == Set,
		"map":            a["map"].Nested.Nesting == Map,
		"block single":   thing.Block.Blocks["bone"].Nesting == Single,
		"block list":     thing.Block.Blocks["blist"].Nesting == List,
		"block set":      thing.Block.Blocks["bset"].Nesting == Set,
		"timeouts":       thing.Block.Blocks["timeouts"].Block.Attributes["create"].Type == cty.String,
		"data":           schema.Data["fake_fact"].Block.Attributes["value"].Computed,
	} {
		if !ok {
			t.Errorf("schema: %s", name)
		}
	}
	if again, _ := p.Schema(t.Context()); again != schema {
		t.Error("the schema is converted twice")
	}
}

func TestServerConfigureFails(t *testing.T) {
	p := FromServer(providerserver.NewProtocol6(&fakeProvider{seen: &seen{}})(), ServerOptions{Name: "stokehq/fake"})
	diags := p.Configure(t.Context(), cty.ObjectVal(vals{"region": str("atlantis"), "token": cty.NullVal(cty.String)}))
	want := Diagnostics{{Summary: "No such region", Detail: "It sank.", Path: cty.GetAttrPath("region")}}
	if d := cmp.Diff(want, diags, comparePaths); d != "" {
		t.Error(d)
	}
	if d := p.ValidateProvider(t.Context(), cty.ObjectVal(vals{"region": cty.UnknownVal(cty.String), "token": cty.NullVal(cty.String)})); d != nil {
		t.Error(d)
	}
}

var comparePaths = cmp.Comparer(func(a, b cty.Path) bool { return a.Equals(b) })

// A thing's life: planned, created, read, planned again, updated, replaced,
// deleted.
func TestServerLifecycle(t *testing.T) {
	p, saw := fake(t)
	var noted []Note
	ctx := WithCall(t.Context(), &Call{Operation: "op-1", Note: func(n Note) { noted = append(noted, n) }})
	config := thingVal(t, p, vals{
		"name": str("n"), "wo": str("hush"), "any": cty.TupleVal([]cty.Value{cty.True, str("x")}),
		"nums": cty.ListVal([]cty.Value{cty.MustParseNumberVal("0.1"), cty.MustParseNumberVal("123456789012345678901234567890")}),
		"obj":  cty.ObjectVal(vals{"x": cty.True}), "tags": cty.SetVal([]cty.Value{str("a"), str("b")}),
		"one": leafVal("1", ""), "list": cty.ListVal([]cty.Value{leafVal("2", ""), leafVal("3", "big")}),
		"set": cty.SetVal([]cty.Value{leafVal("4", "")}), "map": cty.MapVal(vals{"k": leafVal("5", "")}),
		"bone":  cty.ObjectVal(vals{"name": str("6")}),
		"blist": cty.ListVal([]cty.Value{leafVal("7", "")}), "bset": cty.SetVal([]cty.Value{leafVal("8", "")}),
		"timeouts": cty.ObjectVal(vals{"create": str("5m")}),
	})
	if d := p.ValidateResource(ctx, thingType, config); d != nil {
		t.Fatal(d)
	}
	proposed := with(config, vals{"wo": cty.NullVal(cty.String)})
	plan := p.Plan(ctx, PlanRequest{Type: thingType, Prior: nullThing(t, p), Proposed: proposed, Config: config})
	if plan.Diagnostics != nil {
		t.Fatal(plan.Diagnostics)
	}
	wantPlan := with(proposed, vals{
		"id": cty.UnknownVal(cty.String), "rev": cty.UnknownVal(cty.Number), "colour": str("blue"),
		"one": leafVal("1", "small"), "list": cty.ListVal([]cty.Value{leafVal("2", "small"), leafVal("3", "big")}),
		"set": cty.SetVal([]cty.Value{leafVal("4", "small")}), "map": cty.MapVal(vals{"k": leafVal("5", "small")}),
		"blist": cty.ListVal([]cty.Value{leafVal("7", "small")}), "bset": cty.SetVal([]cty.Value{leafVal("8", "small")}),
	})
	equalVal(t, plan.Planned, wantPlan)
	if len(noted) != 1 || noted[0].Text != "a penny" {
		t.Errorf("notes: %v", noted)
	}

	apply := p.Apply(ctx, ApplyRequest{Type: thingType, Prior: nullThing(t, p), Planned: plan.Planned, Config: config, Private: plan.Private})
	if apply.Diagnostics.HasErrors() || len(apply.Diagnostics) != 1 || apply.Diagnostics[0].Severity != Warning || apply.Lost || apply.Keep {
		t.Fatalf("apply: %+v", apply)
	}
	state := with(wantPlan, vals{"id": str("id-1"), "rev": cty.NumberIntVal(1)})
	equalVal(t, apply.State, state)
	if saw.writeOnly != "hush" || !strings.Contains(string(apply.Private), "made") || !strings.Contains(saw.planned, "planned") {
		t.Errorf("write-only %q, private %s, planned %q", saw.writeOnly, apply.Private, saw.planned)
	}

	read := p.Read(ctx, ReadRequest{Type: thingType, State: state, Private: apply.Private})
	equalVal(t, read.State, state)
	replan := p.Plan(ctx, PlanRequest{Type: thingType, Prior: state, Proposed: state, Config: config, Private: read.Private})
	equalVal(t, replan.Planned, state)
	if len(replan.Replace) > 0 || replan.Legacy {
		t.Errorf("no change, but %+v", replan)
	}

	changed := with(state, vals{"secret": str("s")})
	update := p.Plan(ctx, PlanRequest{Type: thingType, Prior: state, Proposed: changed, Config: with(config, vals{"secret": str("s")}), Private: read.Private})
	equalVal(t, update.Planned, with(changed, vals{"rev": cty.UnknownVal(cty.Number)}))
	updated := p.Apply(ctx, ApplyRequest{Type: thingType, Prior: state, Planned: update.Planned, Config: config, Private: update.Private})
	if updated.Diagnostics != nil {
		t.Error(updated.Diagnostics)
	}
	equalVal(t, updated.State, with(changed, vals{"rev": cty.NumberIntVal(2)}))

	moved := with(state, vals{"name": str("m"), "tags": cty.SetVal([]cty.Value{str("a")})})
	replace := p.Plan(ctx, PlanRequest{Type: thingType, Prior: state, Proposed: moved, Config: with(config, vals{"name": str("m")}), Private: read.Private})
	got := map[string]bool{}
	for _, path := range replace.Replace {
		got[PathString(path)] = true
	}
	if !got["name"] || !got["tags"] || len(got) != 2 {
		t.Errorf("replace: %v", got)
	}

	gone := nullThing(t, p)
	destroy := p.Plan(ctx, PlanRequest{Type: thingType, Prior: state, Proposed: gone, Config: gone})
	if !destroy.Planned.IsNull() || len(destroy.Diagnostics) != 1 {
		t.Errorf("destroy: %+v", destroy)
	}
	deleted := p.Apply(ctx, ApplyRequest{Type: thingType, Prior: state, Planned: gone, Config: gone})
	if !deleted.State.IsNull() || deleted.Diagnostics != nil {
		t.Errorf("deleted: %+v", deleted)
	}
	want := []string{"plan op-1", "create op-1", "read op-1", "plan op-1", "plan op-1", "update op-1", "plan op-1", "plan op-1", "delete op-1"}
	if d := cmp.Diff(want, saw.calls); d != "" {
		t.Errorf("calls: %s", d)
	}
}

func with(v cty.Value, change vals) cty.Value {
	m := v.AsValueMap()
	for name, val := range change {
		m[name] = val
	}
	return cty.ObjectVal(m)
}

func equalVal(t *testing.T, got, want cty.Value) {
	t.Helper()
	if got.RawEquals(want) {
		return
	}
	if !got.IsNull() && !want.IsNull() {
		for name, w := range want.AsValueMap() {
			if g := got.GetAttr(name); !g.RawEquals(w) && (g.IsKnown() || w.IsKnown()) {
				t.Errorf("%s:\n got %#v\nwant %#v", name, g, w)
			}
		}
		return
	}
	t.Errorf("got %#v\nwant %#v", got, want)
}

func TestServerApplyErrors(t *testing.T) {
	p, _ := fake(t)
	tests := []struct {
		do       string
		wantID   cty.Value // NilVal: no object
		lost     bool
		keep     bool
		summary  string
		inDetail string
	}{
		{do: "fail", summary: "Could not make it", inDetail: "Nothing"},
		{do: "partial", wantID: str("id-1"), summary: "Half done", inDetail: "rest"},
		{do: "keep", wantID: str("id-1"), keep: true, summary: "Half done", inDetail: "rest"},
		{do: "panic", lost: true, summary: "Provider crashed", inDetail: "stokehq/fake panicked in ApplyResourceChange of fake_thing: out of cheese"},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			outer := 0
			ctx := WithCall(t.Context(), &Call{Keep: func() { outer++ }})
			config := thingVal(t, p, vals{"name": str("n"), "do": str(tt.do)})
			plan := p.Plan(ctx, PlanRequest{Type: thingType, Prior: nullThing(t, p), Proposed: config, Config: config})
			got := p.Apply(ctx, ApplyRequest{Type: thingType, Prior: nullThing(t, p), Planned: plan.Planned, Config: config, Private: plan.Private})
			if len(got.Diagnostics) != 1 || got.Diagnostics[0].Summary != tt.summary || !strings.Contains(got.Diagnostics[0].Detail, tt.inDetail) {
				t.Errorf("diagnostics: %+v", got.Diagnostics)
			}
			if tt.wantID == cty.NilVal {
				if !got.State.IsNull() {
					t.Errorf("state: %#v", got.State)
				}
			} else if !got.State.GetAttr("id").RawEquals(tt.wantID) {
				t.Errorf("state: %#v", got.State)
			}
			if got.Lost != tt.lost || got.Keep != tt.keep || (outer == 1) != tt.keep {
				t.Errorf("lost %v, keep %v, outer keep %d", got.Lost, got.Keep, outer)
			}
		})
	}
	state := thingVal(t, p, vals{"name": str("n"), "do": str("stuck"), "id": str("1")})
	got := p.Apply(t.Context(), ApplyRequest{Type: thingType, Prior: state, Planned: nullThing(t, p), Config: nullThing(t, p)})
	if !got.Diagnostics.HasErrors() || !got.State.RawEquals(state) {
		t.Errorf("failed delete: %+v", got)
	}
}

func TestServerRead(t *testing.T) {
	p, _ := fake(t)
	for do, check := range map[string]func(t *testing.T, state cty.Value, r ReadResponse){
		"gone": func(t *testing.T, _ cty.Value, r ReadResponse) {
			if !r.State.IsNull() || r.Diagnostics != nil {
				t.Errorf("%+v", r)
			}
		},
		"unreachable": func(t *testing.T, state cty.Value, r ReadResponse) {
			if !r.State.RawEquals(state) || !r.Diagnostics.HasErrors() || string(r.Private) != `{"made":"Inki"}` {
				t.Errorf("%+v", r)
			}
		},
		"drift": func(t *testing.T, _ cty.Value, r ReadResponse) {
			if r.State.GetAttr("colour").AsString() != "red" || !strings.Contains(string(r.Private), "read") {
				t.Errorf("%+v", r)
			}
		},
	} {
		t.Run(do, func(t *testing.T) {
			state := thingVal(t, p, vals{"name": str("n"), "do": str(do), "id": str("1")})
			check(t, state, p.Read(t.Context(), ReadRequest{Type: thingType, State: state, Private: []byte(`{"made":"Inki"}`)}))
		})
	}
}

func TestServerDiagnosticPaths(t *testing.T) {
	p, _ := fake(t)
	config := thingVal(t, p, vals{
		"name": str("n"), "do": str("bad"), "tags": cty.SetVal([]cty.Value{str("t")}),
		"list": cty.ListVal([]cty.Value{leafVal("a", ""), leafVal("b", "")}), "map": cty.MapVal(vals{"k": leafVal("c", "")}),
	})
	want := Diagnostics{
		{Summary: "Bad name", Detail: "Choose another.", Path: cty.GetAttrPath("list").IndexInt(1).GetAttr("name")},
		{Severity: Warning, Summary: "Odd key", Detail: "It is odd.", Path: cty.GetAttrPath("map").IndexString("k")},
		{Severity: Warning, Summary: "Odd tag", Detail: "It is odd.", Path: cty.GetAttrPath("tags").Index(str("t"))},
	}
	if d := cmp.Diff(want, p.ValidateResource(t.Context(), thingType, config), comparePaths); d != "" {
		t.Error(d)
	}
}

func TestServerUpgradeAndImport(t *testing.T) {
	p, _ := fake(t)
	up := p.Upgrade(t.Context(), UpgradeRequest{Type: thingType, Version: 2, JSON: []byte(`{"id":"x"}`)})
	if up.Diagnostics != nil || up.State.GetAttr("id").AsString() != `upgraded {"id":"x"}` {
		t.Errorf("upgrade: %+v", up)
	}
	same := p.Upgrade(t.Context(), UpgradeRequest{Type: thingType, Version: 3, JSON: []byte(`{"id":"x","name":"n","gone":true}`)})
	if same.Diagnostics != nil || same.State.GetAttr("name").AsString() != "n" {
		t.Errorf("same version: %+v", same)
	}
	for _, r := range []UpgradeRequest{
		{Type: thingType, Version: 9, JSON: []byte(`{"id":"x"}`)},
		{Type: thingType, Version: 3, JSON: []byte(`{"id":`)},
		{Type: thingType, Version: 3, JSON: []byte(`{"id":{}}`)},
	} {
		if got := p.Upgrade(t.Context(), r); !got.Diagnostics.HasErrors() {
			t.Errorf("%s: %+v", r.JSON, got)
		}
	}
	imported := p.Import(t.Context(), ImportRequest{Type: thingType, ID: "x"})
	if len(imported.Objects) != 1 || imported.Objects[0].State.GetAttr("id").AsString() != "x" || imported.Diagnostics != nil {
		t.Errorf("import: %+v", imported)
	}
}

func TestServerData(t *testing.T) {
	p, _ := fake(t)
	config := cty.ObjectVal(vals{"name": str("n"), "value": cty.NullVal(cty.String)})
	if d := p.ValidateData(t.Context(), "fake_fact", config); d != nil {
		t.Error(d)
	}
	got := p.ReadData(t.Context(), ReadDataRequest{Type: "fake_fact", Config: config})
	if got.Diagnostics != nil || got.State.GetAttr("value").AsString() != "known" {
		t.Errorf("%+v", got)
	}
	lost := p.ReadData(t.Context(), ReadDataRequest{Type: "fake_fact", Config: with(config, vals{"name": str("lost")})})
	if !lost.Diagnostics.HasErrors() || PathString(lost.Diagnostics[0].Path) != "name" {
		t.Errorf("%+v", lost)
	}
}

func TestServerUnknownTypes(t *testing.T) {
	p, ctx := mustFake(t), t.Context()
	for name, d := range map[string]Diagnostics{
		"validate":      p.ValidateResource(ctx, "fake_x", cty.EmptyObjectVal),
		"validate data": p.ValidateData(ctx, thingType, cty.EmptyObjectVal),
		"upgrade":       p.Upgrade(ctx, UpgradeRequest{Type: "fake_x"}).Diagnostics,
		"read":          p.Read(ctx, ReadRequest{Type: "fake_x"}).Diagnostics,
		"plan":          p.Plan(ctx, PlanRequest{Type: "fake_x"}).Diagnostics,
		"apply":         p.Apply(ctx, ApplyRequest{Type: "fake_x"}).Diagnostics,
		"import":        p.Import(ctx, ImportRequest{Type: "fake_x"}).Diagnostics,
		"data":          p.ReadData(ctx, ReadDataRequest{Type: "fake_x"}).Diagnostics,
		"wrong value":   p.ValidateResource(ctx, thingType, cty.ObjectVal(vals{"name": cty.True})),
	} {
		if len(d) != 1 || d[0].Severity != Error {
			t.Errorf("%s: %v", name, d)
		}
	}
}

func mustFake(t *testing.T) Provider { p, _ := fake(t); return p }

func TestServerStopCancelsCalls(t *testing.T) {
	p, _ := fake(t)
	config := thingVal(t, p, vals{"name": str("n"), "do": str("wait")})
	plan := p.Plan(t.Context(), PlanRequest{Type: thingType, Prior: nullThing(t, p), Proposed: config, Config: config})
	working := make(chan struct{})
	ctx := WithCall(t.Context(), &Call{Progress: func(Progress) { close(working) }})
	done := make(chan ApplyResponse)
	go func() {
		done <- p.Apply(ctx, ApplyRequest{Type: thingType, Prior: nullThing(t, p), Planned: plan.Planned, Config: config, Private: plan.Private})
	}()
	<-working
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if !got.Diagnostics.HasErrors() || got.Diagnostics[0].Summary != "Interrupted" || got.State.GetAttr("id").AsString() != "id-1" {
		t.Errorf("%+v", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// brokenServer answers with what no provider should.
type brokenServer struct {
	tfprotov6.ProviderServer
	answer *tfprotov6.DynamicValue
	err    error
	none   bool
}

func (b *brokenServer) ApplyResourceChange(context.Context, *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if b.none || b.err != nil {
		return nil, b.err
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: b.answer}, nil
}

func (b *brokenServer) ReadResource(context.Context, *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	panic(b.err)
}

func TestServerBrokenAnswers(t *testing.T) {
	for name, b := range map[string]*brokenServer{
		"no value":    {},
		"empty value": {answer: &tfprotov6.DynamicValue{}},
		"garbage":     {answer: &tfprotov6.DynamicValue{MsgPack: []byte{0xc1, 7}}},
		"wrong type":  {answer: &tfprotov6.DynamicValue{JSON: []byte(`{"id":[1]}`)}},
		"lost":        {err: context.DeadlineExceeded},
		"nothing":     {none: true},
	} {
		t.Run(name, func(t *testing.T) {
			b.ProviderServer = providerserver.NewProtocol6(&fakeProvider{seen: &seen{}})()
			p := FromServer(b, ServerOptions{Name: "stokehq/broken"})
			state := thingVal(t, p, vals{"name": str("n"), "id": str("1")})
			got := p.Apply(t.Context(), ApplyRequest{Type: thingType, Prior: state, Planned: state, Config: state, Private: []byte("p")})
			if !got.Lost || !got.Diagnostics.HasErrors() || !got.State.RawEquals(state) || string(got.Private) != "p" {
				t.Errorf("%+v", got)
			}
			if !strings.Contains(got.Diagnostics[0].Detail, "stokehq/broken") {
				t.Errorf("detail: %s", got.Diagnostics[0].Detail)
			}
			read := p.Read(t.Context(), ReadRequest{Type: thingType, State: state, Private: []byte("p")})
			if !read.State.RawEquals(state) || !read.Diagnostics.HasErrors() || string(read.Private) != "p" {
				t.Errorf("%+v", read)
			}
		})
	}
}

func TestLinkedSharesTheSchema(t *testing.T) {
	entry := Linked(func() (tfprotov6.ProviderServer, error) {
		return providerserver.NewProtocol6(&fakeProvider{seen: &seen{}})(), nil
	}, "1.2.3", ServerOptions{Name: "stokehq/fake"})
	a, errA := entry.New()
	b, errB := entry.New()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	sa, _ := a.Schema(t.Context())
	sb, _ := b.Schema(t.Context())
	if sa == nil || sa != sb {
		t.Error("two providers of one entry convert the schema twice")
	}
}

func BenchmarkServer(b *testing.B) {
	p, _ := fake(b)
	ctx := b.Context()
	config := thingVal(b, p, vals{"name": str("n"), "list": cty.ListVal([]cty.Value{leafVal("2", ""), leafVal("3", "big")})})
	prior := nullThing(b, p)
	plan := p.Plan(ctx, PlanRequest{Type: thingType, Prior: prior, Proposed: config, Config: config})
	b.Run("Validate", func(b *testing.B) {
		for b.Loop() {
			p.ValidateResource(ctx, thingType, config)
		}
	})
	b.Run("Plan", func(b *testing.B) {
		for b.Loop() {
			p.Plan(ctx, PlanRequest{Type: thingType, Prior: prior, Proposed: config, Config: config})
		}
	})
	b.Run("Apply", func(b *testing.B) {
		for b.Loop() {
			p.Apply(ctx, ApplyRequest{Type: thingType, Prior: prior, Planned: plan.Planned, Config: config, Private: plan.Private})
		}
	})
}
