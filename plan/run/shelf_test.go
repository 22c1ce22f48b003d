package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/providers"
)

// shelf is a provider whose objects are on a shelf in memory, where tests can
// look at them, change them and break them.
type shelf struct {
	mu     sync.Mutex
	things map[string]map[string]cty.Value // id → attributes
	marks  map[string]string               // operation → id
	log    []string
	next   int
	stamps int
	// hook, when not nil, is called before a create, update or delete.
	hook func(what, name string) error
	// after, when not nil, is called after a create, update or delete while
	// nothing else happens on the shelf.
	after func(what, name string)
	dead  bool // no call has any effect
	// away, when not nil, says which things nobody can look at.
	away func(name string) bool
	// replaced are the ids that plans of replacements were told of.
	replaced []string
	// defers, when not nil, says which things cannot be planned yet.
	defers func(name string) bool
}

func newShelf() *shelf {
	return &shelf{things: map[string]map[string]cty.Value{}, marks: map[string]string{}}
}

func (s *shelf) catalogue() providers.Catalogue {
	return providers.Catalogue{"registry.terraform.io/stokehq/shelf": {
		Version: "1", New: func() (providers.Provider, error) { return &shelfServer{s: s}, nil },
	}}
}

var shelfBlock = &providers.Block{Attributes: map[string]*providers.Attribute{
	"id":     {Type: cty.String, Computed: true},
	"name":   {Type: cty.String, Required: true},
	"value":  {Type: cty.String, Optional: true},
	"tags":   {Type: cty.Map(cty.String), Optional: true},
	"secret": {Type: cty.String, Optional: true, Sensitive: true},
	"stamp":  {Type: cty.String, Computed: true},
	"nested": {Optional: true, Nested: &providers.NestedType{Nesting: providers.Single, Attributes: map[string]*providers.Attribute{
		"size": {Type: cty.Number, Optional: true},
	}}},
	"key":    {Type: cty.String, Optional: true, WriteOnly: true},
	"broken": {Type: cty.String, Optional: true}, // "", "error", "partial", "keep", "lie", "leak", "plan"
}}

var shelfSchema = &providers.Schema{
	Provider: &providers.Block{Attributes: map[string]*providers.Attribute{"prefix": {Type: cty.String, Optional: true}}},
	Resources: map[string]*providers.ResourceSchema{
		"shelf_thing": {Block: shelfBlock},
	},
	Data: map[string]*providers.ResourceSchema{
		"shelf_thing": {Block: &providers.Block{Attributes: map[string]*providers.Attribute{
			"id": {Type: cty.String, Required: true}, "value": {Type: cty.String, Computed: true},
		}}},
	},
	Marks: true,
}

type shelfServer struct {
	s      *shelf
	prefix string
}

func (p *shelfServer) Schema(context.Context) (*providers.Schema, providers.Diagnostics) {
	return shelfSchema, nil
}
func (p *shelfServer) ValidateProvider(context.Context, cty.Value) providers.Diagnostics { return nil }
func (p *shelfServer) ValidateResource(_ context.Context, _ string, config cty.Value) providers.Diagnostics {
	if v := config.GetAttr("value"); v.IsKnown() && !v.IsNull() && v.AsString() == "forbidden" {
		return providers.Diagnostics{{Summary: "Forbidden value", Detail: "Choose another.", Path: cty.GetAttrPath("value")}}
	}
	return nil
}
func (p *shelfServer) ValidateData(context.Context, string, cty.Value) providers.Diagnostics {
	return nil
}
func (p *shelfServer) Configure(_ context.Context, config cty.Value) providers.Diagnostics {
	if v := config.GetAttr("prefix"); v.IsKnown() && !v.IsNull() {
		p.prefix = v.AsString()
	}
	return nil
}
func (p *shelfServer) Upgrade(_ context.Context, r providers.UpgradeRequest) providers.UpgradeResponse {
	v, err := ctyjson.Unmarshal(r.JSON, shelfBlock.ImpliedType())
	if err != nil {
		return providers.UpgradeResponse{Diagnostics: providers.Diagnostics{{Summary: err.Error()}}}
	}
	return providers.UpgradeResponse{State: v}
}
func (p *shelfServer) Read(ctx context.Context, r providers.ReadRequest) providers.ReadResponse {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	null := cty.NullVal(shelfBlock.ImpliedType())
	call := providers.CallFrom(ctx)
	id := r.State.GetAttr("id")
	if call.Settling {
		marked, ok := p.s.marks[call.Operation]
		if !ok {
			return providers.ReadResponse{State: null}
		}
		id = cty.StringVal(marked)
	}
	if id.IsNull() || p.s.things[id.AsString()] == nil {
		return providers.ReadResponse{State: null}
	}
	if name := r.State.GetAttr("name"); p.s.away != nil && p.s.away(name.AsString()) {
		return providers.ReadResponse{State: r.State, Private: r.Private, Diagnostics: providers.Diagnostics{{Severity: providers.Warning, Summary: "Shelf is dark"}}}
	}
	return providers.ReadResponse{State: cty.ObjectVal(p.s.things[id.AsString()]), Private: r.Private}
}
func (p *shelfServer) Plan(ctx context.Context, r providers.PlanRequest) providers.PlanResponse {
	if r.Proposed.IsNull() {
		return providers.PlanResponse{Planned: r.Proposed}
	}
	if p.s.defers != nil && r.MayDefer && p.s.defers(r.Proposed.GetAttr("name").AsString()) {
		return providers.PlanResponse{Planned: r.Proposed, Deferred: providers.DeferredAbsent}
	}
	if b := r.Proposed.GetAttr("broken"); b.RawEquals(cty.StringVal("plan")) {
		return providers.PlanResponse{Planned: r.Proposed, Diagnostics: providers.Diagnostics{{Summary: "Shelf is full", Detail: "Make room.", Path: cty.GetAttrPath("name")}}}
	}
	if b := r.Proposed.GetAttr("broken"); b.RawEquals(cty.StringVal("stiff")) && !r.Prior.IsNull() && !r.Proposed.RawEquals(r.Prior) {
		return providers.PlanResponse{Planned: r.Proposed, Diagnostics: providers.Diagnostics{{Summary: "Thing is stiff", Detail: "Make another."}}}
	}
	resp := providers.PlanResponse{Planned: r.Proposed, Private: []byte("planned")}
	attrs := r.Proposed.AsValueMap()
	attrs["key"] = cty.NullVal(cty.String)
	r.Proposed = cty.ObjectVal(attrs)
	if r.Prior.IsNull() {
		if was := providers.CallFrom(ctx).Replaces; !was.IsNull() {
			p.s.mu.Lock()
			p.s.replaced = append(p.s.replaced, was.GetAttr("id").AsString())
			p.s.mu.Unlock()
		}
		attrs["id"], attrs["stamp"] = cty.UnknownVal(cty.String), cty.UnknownVal(cty.String)
		resp.Planned = cty.ObjectVal(attrs)
	} else {
		if !r.Proposed.RawEquals(r.Prior) {
			attrs["stamp"] = cty.UnknownVal(cty.String)
			providers.CallFrom(ctx).AddNote(providers.Note{Kind: providers.NoteChange, Text: "changes a thing"})
		}
		resp.Planned = cty.ObjectVal(attrs)
		resp.Replace = []cty.Path{cty.GetAttrPath("name")}
	}
	return resp
}
func (p *shelfServer) Apply(ctx context.Context, r providers.ApplyRequest) providers.ApplyResponse {
	source := r.Planned
	what := "create"
	switch {
	case r.Planned.IsNull():
		what, source = "delete", r.Prior
	case !r.Prior.IsNull():
		what = "update"
	}
	name := source.GetAttr("name").AsString()
	if p.s.hook != nil {
		if err := p.s.hook(what, name); err != nil {
			return providers.ApplyResponse{State: r.Prior, Diagnostics: providers.Diagnostics{{Summary: "Shelf broke", Detail: err.Error()}}}
		}
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.dead {
		return providers.ApplyResponse{State: r.Prior, Diagnostics: providers.Diagnostics{{Summary: "Killed"}}}
	}
	if p.s.after != nil {
		defer p.s.after(what, name)
	}
	p.s.log = append(p.s.log, what+" "+name)
	if what != "delete" {
		if key := r.Config.GetAttr("key"); !key.IsNull() {
			p.s.log = append(p.s.log, "key "+key.AsString())
		}
	}
	if what == "delete" {
		delete(p.s.things, r.Prior.GetAttr("id").AsString())
		return providers.ApplyResponse{State: r.Planned}
	}
	attrs := r.Planned.AsValueMap()
	if what == "create" {
		p.s.next++
		attrs["id"] = cty.StringVal(fmt.Sprintf("%s%d", p.prefix, p.s.next))
		p.s.marks[providers.CallFrom(ctx).Operation] = attrs["id"].AsString()
	}
	if !attrs["stamp"].IsKnown() {
		p.s.stamps++ // never the same one twice, whatever a test does to the log
		attrs["stamp"] = cty.StringVal(fmt.Sprintf("s%d", p.s.stamps))
	}
	resp := providers.ApplyResponse{Private: []byte("applied")}
	if b := attrs["broken"]; !b.IsNull() {
		switch b.AsString() {
		case "error":
			return providers.ApplyResponse{State: r.Prior, Diagnostics: providers.Diagnostics{{Summary: "Shelf broke", Detail: "On request."}}}
		case "partial", "keep":
			resp.Diagnostics = providers.Diagnostics{{Summary: "Half done", Detail: "On request."}}
			if b.AsString() == "keep" {
				providers.CallFrom(ctx).KeepOnError()
			}
		case "leak":
			attrs["key"] = r.Config.GetAttr("key")
		case "lie":
			attrs["value"] = cty.StringVal("a lie")
		}
	}
	p.s.things[attrs["id"].AsString()] = attrs
	resp.State = cty.ObjectVal(attrs)
	return resp
}
func (p *shelfServer) Import(_ context.Context, r providers.ImportRequest) providers.ImportResponse {
	attrs := map[string]cty.Value{}
	for name, ty := range shelfBlock.ImpliedType().AttributeTypes() {
		attrs[name] = cty.NullVal(ty)
	}
	attrs["id"] = cty.StringVal(r.ID)
	found := providers.Imported{Type: r.Type, State: cty.ObjectVal(attrs), Private: []byte("imported")}
	switch r.ID {
	case "nothing":
		return providers.ImportResponse{}
	case "several":
		return providers.ImportResponse{Objects: []providers.Imported{found, found}}
	case "refused":
		return providers.ImportResponse{Diagnostics: providers.Diagnostics{{Summary: "Shelf refused"}}}
	}
	return providers.ImportResponse{Objects: []providers.Imported{found}}
}
func (p *shelfServer) ReadData(_ context.Context, r providers.ReadDataRequest) providers.ReadDataResponse {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.log = append(p.s.log, "read "+r.Config.GetAttr("id").AsString())
	thing := p.s.things[r.Config.GetAttr("id").AsString()]
	if thing == nil {
		return providers.ReadDataResponse{Diagnostics: providers.Diagnostics{{Summary: "No such thing", Path: cty.GetAttrPath("id")}}}
	}
	return providers.ReadDataResponse{State: cty.ObjectVal(map[string]cty.Value{"id": r.Config.GetAttr("id"), "value": thing["value"]})}
}
func (p *shelfServer) Stop(context.Context) error { return nil }
func (p *shelfServer) Close() error               { return nil }

// sizes of the shelf, for messages of tests.
func (s *shelf) String() string {
	b, _ := json.Marshal(s.log)
	return string(b)
}
