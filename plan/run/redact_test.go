package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// canary begins every secret of these tests.
const canary = "canary"

// parrot is a provider that repeats, in all that it can say, every secret that a
// call or its configuration has given it and every one that it answers. The
// schema calls some of them sensitive, the configuration others.
type parrot struct {
	mu         sync.Mutex
	configured secrets
	said       map[string]bool // "Read warning": how secrets were said
	fails      string          // the method that says it as an error
	lose       bool            // calls of Apply break off
	mute       bool
	ids        int
}

// secrets are those that a call has heard.
type secrets map[string]bool

var parrotSchema = &providers.Schema{
	Provider: &providers.Block{Attributes: map[string]*providers.Attribute{
		"token": {Type: cty.String, Optional: true, Sensitive: true}, "region": {Type: cty.String, Optional: true},
	}},
	Resources: map[string]*providers.ResourceSchema{"parrot_thing": {Block: &providers.Block{Attributes: map[string]*providers.Attribute{
		"id": {Type: cty.String, Computed: true}, "token": {Type: cty.String, Optional: true, Sensitive: true},
		"value": {Type: cty.String, Optional: true}, "tags": {Type: cty.Map(cty.String), Optional: true},
		"key": {Type: cty.String, Optional: true, WriteOnly: true}, "made": {Type: cty.String, Computed: true, Sensitive: true},
	}}}},
	Data: map[string]*providers.ResourceSchema{"parrot_thing": {Block: &providers.Block{Attributes: map[string]*providers.Attribute{
		"value": {Type: cty.String, Optional: true}, "found": {Type: cty.String, Computed: true, Sensitive: true},
	}}}},
	Marks: true, PlanDestroy: true,
}

// hear takes in the secrets within values.
func (h secrets) hear(values ...cty.Value) secrets {
	for _, v := range values {
		if v == cty.NilVal {
			continue
		}
		_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
			if v.Type() == cty.String && v.IsKnown() && !v.IsNull() && strings.HasPrefix(v.AsString(), canary) {
				h[v.AsString()] = true
			}
			return true, nil
		})
	}
	return h
}

// hear begins a call.
func (p *parrot) hear(values ...cty.Value) secrets {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := secrets{}
	maps.Copy(h, p.configured)
	return h.hear(values...)
}

// words are all secrets, as messages write them.
func (h secrets) words() string {
	var b strings.Builder
	for _, s := range slices.Sorted(maps.Keys(h)) {
		js, _ := json.Marshal(map[string]string{"v": s})
		fmt.Fprintf(&b, "%s, %q, %s; ", s, s, js)
	}
	return b.String()
}

// say says all that was heard, in every way that the call has.
func (p *parrot) say(ctx context.Context, method string, heard secrets) providers.Diagnostics {
	words := heard.words()
	if p.mute || words == "" {
		return nil
	}
	call, how := providers.CallFrom(ctx), "warning"
	d := providers.Diagnostic{Severity: providers.Warning, Summary: method + " " + words, Detail: words, Path: cty.GetAttrPath("tags").IndexString(words), Address: words}
	if p.fails == method {
		d.Severity, how = providers.Error, "error"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[method+" "+how] = true
	if call.AddNote(providers.Note{Text: words, Kind: providers.NoteKind(words), Path: d.Path}) {
		call.AddNote(providers.Note{Text: words, Address: words})
		p.said[method+" note"] = true
	}
	return providers.Diagnostics{d}
}

// progress says what was heard while a call works: what it is going to answer,
// nobody knows yet.
func (p *parrot) progress(ctx context.Context, method string, heard secrets) {
	if call := providers.CallFrom(ctx); call.Progress != nil && !p.mute {
		call.Report(providers.Progress{Step: heard.words(), Line: heard.words()})
		p.note(method + " progress")
	}
}

func (p *parrot) note(how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[how] = true
}

// parrotServer is one value of it.
type parrotServer struct{ *parrot }

func (p parrotServer) Schema(context.Context) (*providers.Schema, providers.Diagnostics) {
	return parrotSchema, nil // it was given nothing
}

func (p parrotServer) ValidateProvider(ctx context.Context, config cty.Value) providers.Diagnostics {
	return p.say(ctx, "ValidateProvider", secrets{}.hear(config))
}

func (p parrotServer) Configure(ctx context.Context, config cty.Value) providers.Diagnostics {
	p.mu.Lock()
	p.configured = secrets{}.hear(config)
	p.mu.Unlock()
	return p.say(ctx, "Configure", p.hear())
}

func (p parrotServer) ValidateResource(ctx context.Context, _ string, config cty.Value) providers.Diagnostics {
	return p.say(ctx, "ValidateResource", secrets{}.hear(config)) // it may not be configured
}

func (p parrotServer) ValidateData(ctx context.Context, _ string, config cty.Value) providers.Diagnostics {
	return p.say(ctx, "ValidateData", secrets{}.hear(config))
}

func (p parrotServer) Upgrade(ctx context.Context, r providers.UpgradeRequest) providers.UpgradeResponse {
	v, err := ctyjson.Unmarshal(r.JSON, parrotSchema.Resources[r.Type].Block.ImpliedType())
	if err != nil {
		return providers.UpgradeResponse{Diagnostics: providers.Diagnostics{{Summary: err.Error()}}}
	}
	return providers.UpgradeResponse{State: v, Diagnostics: p.say(ctx, "Upgrade", secrets{}.hear(v))}
}

func (p parrotServer) Read(ctx context.Context, r providers.ReadRequest) providers.ReadResponse {
	heard := p.hear(r.State)
	r.State = p.made(r.State)
	return providers.ReadResponse{State: r.State, Private: r.Private, Diagnostics: p.say(ctx, "Read", heard.hear(r.State))}
}

func (p parrotServer) Plan(ctx context.Context, r providers.PlanRequest) providers.PlanResponse {
	heard := p.hear(r.Prior, r.Proposed, r.Config, providers.CallFrom(ctx).Replaces)
	p.progress(ctx, "Plan", heard)
	planned := r.Proposed
	if !planned.IsNull() {
		attrs := planned.AsValueMap()
		attrs["key"] = cty.NullVal(cty.String)
		if r.Prior.IsNull() {
			attrs["id"], attrs["made"] = cty.UnknownVal(cty.String), cty.UnknownVal(cty.String)
		}
		planned = cty.ObjectVal(attrs)
	}
	return providers.PlanResponse{Planned: planned, Replace: []cty.Path{cty.GetAttrPath("token")}, Diagnostics: p.say(ctx, "Plan", heard)}
}

// made is the object with all that the provider computes.
func (p parrotServer) made(v cty.Value) cty.Value {
	if v.IsNull() {
		return v
	}
	attrs := v.AsValueMap()
	if id := attrs["id"]; !id.IsKnown() || id.IsNull() {
		p.mu.Lock()
		p.ids++
		attrs["id"] = cty.StringVal(fmt.Sprintf("id-%d", p.ids))
		p.mu.Unlock()
	}
	attrs["made"] = cty.StringVal(canary + "-made-of-" + attrs["id"].AsString())
	return cty.ObjectVal(attrs)
}

func (p parrotServer) Apply(ctx context.Context, r providers.ApplyRequest) providers.ApplyResponse {
	heard := p.hear(r.Prior, r.Planned, r.Config)
	p.progress(ctx, "Apply", heard)
	if p.lose {
		return providers.ApplyResponse{State: r.Prior, Lost: true, Diagnostics: append(p.say(ctx, "Apply", heard), providers.Diagnostic{Summary: "Broke off"})}
	}
	made := p.made(r.Planned)
	return providers.ApplyResponse{State: made, Diagnostics: p.say(ctx, "Apply", heard.hear(made))}
}

func (p parrotServer) Import(ctx context.Context, r providers.ImportRequest) providers.ImportResponse {
	attrs := map[string]cty.Value{}
	for name, ty := range parrotSchema.Resources[r.Type].Block.ImpliedType().AttributeTypes() {
		attrs[name] = cty.NullVal(ty)
	}
	attrs["id"], attrs["token"] = cty.StringVal(r.ID), cty.StringVal(canary+"-imported")
	found := cty.ObjectVal(attrs)
	return providers.ImportResponse{Objects: []providers.Imported{{Type: r.Type, State: found}}, Diagnostics: p.say(ctx, "Import", p.hear(found))}
}

func (p parrotServer) ReadData(ctx context.Context, r providers.ReadDataRequest) providers.ReadDataResponse {
	p.progress(ctx, "ReadData", p.hear(r.Config))
	attrs := r.Config.AsValueMap()
	attrs["found"] = cty.StringVal(canary + "-found")
	found := cty.ObjectVal(attrs)
	return providers.ReadDataResponse{State: found, Diagnostics: p.say(ctx, "ReadData", p.hear(found))}
}

func (p parrotServer) Stop(context.Context) error { return nil }
func (p parrotServer) Close() error               { return nil }

func (p *parrot) catalogue() providers.Catalogue {
	return providers.Catalogue{"registry.terraform.io/stokehq/parrot": {
		New: func() (providers.Provider, error) { return parrotServer{p}, nil },
		Review: func(ctx context.Context, all providers.Review) ([]providers.Note, providers.Diagnostics) {
			heard := p.hear()
			for _, one := range all.Planned {
				heard.hear(one.Prior, one.Planned)
			}
			diags, words := p.say(ctx, "Review", heard), heard.words()
			if diags == nil {
				return nil, nil
			}
			p.note("Review note")
			return []providers.Note{{Text: words, Address: words}, {Text: words, Address: "parrot_thing.a"}}, diags
		},
		Functions: map[string]function.Function{"say": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "v", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				if p.fails != "Functions" {
					return args[0], nil
				}
				p.note("Functions error")
				return cty.DynamicVal, function.NewArgErrorf(0, "no such %s, %q", args[0].AsString(), args[0].AsString())
			},
		})},
	}}
}

func parrotConfig(n int) string {
	var many strings.Builder
	for i := range 300 { // more than a list of bounded length would hold
		fmt.Fprintf(&many, "    k%d = \"%s-tag-%d-of-%d\"\n", i, canary, i, n)
	}
	return strings.ReplaceAll(`
terraform {
  required_providers {
    parrot = { source = "stokehq/parrot" }
  }
}
variable "secret" {
  default   = "canary-variable-<&>-N"
  sensitive = true
}
variable "passing" {
  default   = "canary-ephemeral-N"
  ephemeral = true
}
provider "parrot" {
  token  = "canary-token-of-the-provider"
  region = var.passing
}
resource "parrot_thing" "a" {
  token = "canary-token"
  value = provider::parrot::say(var.secret)
  key   = var.passing
  tags  = sensitive({
`+many.String()+`  })
}
resource "parrot_thing" "anew" { token = "canary-anew-N" }
resource "parrot_thing" "gone" {
  count = 3 - N
  value = var.secret
}
data "parrot_thing" "late" { value = parrot_thing.anew.made }
data "parrot_thing" "d" { value = "${var.secret}\nand-a-second-line" }
`, "N", fmt.Sprint(n))
}

const parrotImport = `
resource "parrot_thing" "taken" { token = "canary-imported" }
import {
  to = parrot_thing.taken
  id = "known"
}
`

// TestProvidersRepeatNoSecret: in no call of a provider, and in no way that it
// has of saying something, a secret reaches anybody that it was given.
func TestProvidersRepeatNoSecret(t *testing.T) {
	said := map[string]bool{}
	for _, fails := range []string{"nothing", "ValidateProvider", "Configure", "ValidateResource", "ValidateData", "Upgrade", "Read", "Plan", "Apply", "Import", "ReadData", "Review", "Functions"} {
		t.Run("failing "+fails, func(t *testing.T) {
			p := &parrot{said: said, mute: true}
			w := newWorld(t, p.catalogue())
			var heard strings.Builder
			var mu sync.Mutex
			w.listen = func(e plan.Event) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&heard, "%v event: %+v %s %s\n", e.Kind, e.Progress, e.Text, e.Addr)
			}
			w.must(w.config("main.tf", parrotConfig(1)))
			w.applied(plan.Normal)
			p.mute, p.fails = false, fails
			w.parrotLife(p, &heard)
			for line := range strings.Lines(heard.String()) {
				if strings.Contains(line, canary) || strings.Contains(line, "a-second-line") {
					t.Errorf("it says %.300s", line)
				}
			}
		})
	}
	// Every method has had its say.
	for i := range reflect.TypeFor[providers.Provider]().NumMethod() {
		method := reflect.TypeFor[providers.Provider]().Method(i).Name
		switch method {
		case "Schema", "Stop", "Close": // they are given nothing; see also TestProviderOwn of package redact
			continue
		}
		for _, how := range []string{" warning", " error"} {
			if !said[method+how] {
				t.Errorf("%s never said a secret in a diagnostic:%s", method, how)
			}
		}
	}
	for _, how := range []string{"Plan note", "Read note", "ReadData note", "Import note", "Plan progress", "Apply progress", "ReadData progress", "Review note", "Review error", "Functions error"} {
		if !said[how] {
			t.Errorf("never said: %s", how)
		}
	}
}

// parrotLife calls everything that the engine has, and writes down what anybody
// would read.
func (w *world) parrotLife(p *parrot, heard *strings.Builder) {
	ctx := context.Background()
	told := func(what string, diags hcl.Diagnostics) { fmt.Fprintf(heard, "%s: %s\n", what, text(diags)) }
	planned := func(what string, pl *plan.Plan, diags hcl.Diagnostics) {
		told(what, diags)
		if pl != nil {
			for _, n := range pl.Notes {
				fmt.Fprintf(heard, "%s: note %q %s %s %s\n", what, n.Kind, n.Text, n.Address, plan.PathString(n.Path))
			}
			fmt.Fprintf(heard, "%s: checks %s, warnings %v\n", what, results(pl.Checks), plan.Warnings(diags))
		}
	}
	w.must(w.config("main.tf", parrotConfig(2)+parrotImport))
	told("validate", plan.Validate(ctx, w.request(w.open(), plan.Normal)))
	pl, diags := w.plan(plan.Normal)
	planned("plan", pl, diags)
	pl, diags = w.plan(plan.RefreshOnly)
	planned("refresh", pl, diags)
	_, diags = plan.Import(ctx, w.request(w.open(), plan.Normal), instance(w.tb.(*testing.T), "parrot_thing.taken"), "known")
	told("import", diags)
	for _, lose := range []bool{true, false} {
		p.lose = lose
		pl, report, diags := w.apply(plan.Normal)
		planned("apply", pl, diags)
		if report != nil {
			fmt.Fprintf(heard, "apply: %v\n", report.Outcomes)
		}
		if len(w.open().Open()) > 0 {
			told("settle", w.settle())
		}
	}
	w.must(w.config("main.tf", parrotConfig(2)))
	w.excludes = []string{"parrot_thing.taken"}
	pl, diags = w.plan(plan.Normal)
	planned("plan with exclusions", pl, diags)
	w.excludes = nil
	pl, report, diags := w.apply(plan.Destroy)
	planned("destroy", pl, diags)
	if report != nil {
		fmt.Fprintf(heard, "destroy: %v\n", report.Outcomes)
	}
}
