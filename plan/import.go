package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/providers"
)

// imports is what a plan takes in.
type imports struct {
	blocks map[string][]*eval.Import      // by resource, without instance keys
	found  map[address.Instance]object    // looked up already
	stored map[address.Instance]*Change   // what apply stores of them first
	config map[address.Resource]Generated // written for them
}

// Generated is configuration that was written for an imported object.
type Generated struct {
	Addr address.Instance
	ID   string
	Text string // the resource block
}

// importing returns what an import block asks for under an address, nil if
// none does.
func (p *planner) importing(t *eval.Task, addr address.Instance) (*eval.ImportTarget, bool) {
	if len(p.imports.blocks) == 0 {
		return nil, true
	}
	var found *eval.ImportTarget
	for _, block := range p.imports.blocks[Keyless(addr.Resource)] {
		targets, ok := block.Targets(t)
		if !ok {
			return nil, false
		}
		target := targets[addr]
		if target == nil {
			continue
		}
		if found != nil {
			t.Report(severalImports(found, target))
			return nil, false
		}
		found = target
	}
	return found, true
}

func severalImports(first, again *eval.ImportTarget) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Several imports to one address", Subject: again.Decl.ToRange.Ptr(),
		Detail: fmt.Sprintf("The block at %s imports to %s already. Remove one of the two.", first.Decl.Range, again.Addr),
	}
}

// validateImports checks what import blocks say as far as it is known.
func validateImports(t *eval.Task, ev *eval.Evaluator) {
	for _, blocks := range ev.Imports() {
		seen := map[address.Instance]*eval.ImportTarget{}
		for _, block := range blocks {
			targets, _ := block.Targets(t)
			for addr, target := range targets {
				if first := seen[addr]; first != nil {
					t.Report(severalImports(first, target))
				}
				seen[addr] = target
			}
		}
	}
}

// takeIn imports an object and makes it the draft's prior object.
func (d *draft) takeIn(ctx context.Context) (sensitive []cty.Path, id string, ok bool) {
	p := d.p
	target, ok := p.importing(d.t, d.inst.Addr)
	if ok && d.t.Deferred() { // which objects come in, a later plan will know
		d.deferred = DeferredPrerequisite
		return nil, "", true
	}
	if !ok || target == nil {
		return nil, "", ok
	}
	p.mu.Lock()
	o, have := p.imports.found[target.Addr]
	p.mu.Unlock()
	if !have {
		r := providers.ImportRequest{Type: target.Addr.Type, ID: target.ID, Config: withoutSecrets(d.config, d.marked)}
		if o, ok = p.lookUp(ctx, d.t, target.Addr, r, target.Decl.Range.Ptr(), d.owner, d.ty); !ok {
			return nil, "", false
		}
		if p.reads != nil { // for the next attempt at this plan
			p.mu.Lock()
			p.imports.found[target.Addr] = o
			p.mu.Unlock()
		}
	}
	d.before, d.private = o.value, o.private
	c := &Change{
		Addr: target.Addr, Provider: d.owner.Addr, Action: Create, Before: cty.NullVal(d.ty.Implied), After: o.value,
		AfterSensitive: o.sensitive, Private: o.private, Schema: d.ty.Schema, Importing: target.ID,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshed = append(p.refreshed, c)
	p.imports.stored[target.Addr] = c
	return o.sensitive, target.ID, true
}

// withoutSecrets returns a configuration with null for each argument that holds something sensitive: the
// state stores the values that an import takes before a plan has found the sensitive ones.
func withoutSecrets(config cty.Value, marked lang.Marked) cty.Value {
	if !config.IsKnown() || config.IsNull() || !config.Type().IsObjectType() {
		return cty.NilVal
	}
	all := config.AsValueMap()
	for _, path := range marked.Secret() {
		if len(path) == 0 {
			return cty.NilVal
		}
		if step, ok := path[0].(cty.GetAttrStep); ok {
			all[step.Name] = cty.NullVal(config.Type().AttributeType(step.Name))
		}
	}
	return cty.ObjectVal(all)
}

// lookUp asks the provider for an existing object: by its id first, then for
// all that there is to know of it.
func (p *planner) lookUp(ctx context.Context, t *eval.Task, addr address.Instance, r providers.ImportRequest, at *hcl.Range,
	owner *eval.Provider, ty *eval.Type) (object, bool) {
	id := r.ID
	fail := func(summary, format string, args ...any) (object, bool) {
		t.Report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at})
		return object{}, false
	}
	said := func(diags providers.Diagnostics) bool {
		var rng hcl.Range
		if at != nil {
			rng = *at
		}
		t.Report(eval.FromProvider(diags, nil, rng, addr.String())...)
		return !diags.HasErrors()
	}
	ctx = p.call(ctx, addr)
	p.emit(Event{Kind: Importing, Addr: addr, Text: "Preparing import...", ID: cty.StringVal(id)})
	found := owner.Server.Import(ctx, r)
	if !said(found.Diagnostics) {
		return object{}, false
	}
	switch {
	case len(found.Objects) == 0:
		return fail("Import found nothing", "The provider %s found nothing to import to %s under the id %q.", owner.Source, addr, id)
	case len(found.Objects) > 1:
		return fail("Import found several objects", "The provider %s found %d objects under the id %q, and %s can only be one of them. Use a more particular id.", owner.Source, len(found.Objects), id, addr)
	case found.Objects[0].Type != addr.Type:
		return fail("Import found another type", "The provider %s found a %s under the id %q, not a %s.", owner.Source, found.Objects[0].Type, id, addr.Type)
	}
	value, private := found.Objects[0].State, found.Objects[0].Private
	if value.IsNull() {
		return fail("Import found nothing", "The provider %s found nothing to import to %s under the id %q.", owner.Source, addr, id)
	}
	if !ty.Schema.NoEffect {
		started := time.Now()
		p.emit(Event{Kind: RefreshStart, Addr: addr, ID: Identity(value)})
		resp := owner.Server.Read(ctx, providers.ReadRequest{Type: addr.Type, State: value, Private: private, Meta: NoMeta(owner.Schema)}, nil)
		p.emit(Event{Kind: RefreshDone, Addr: addr, ID: Identity(value), Elapsed: time.Since(started)})
		if !said(resp.Diagnostics) {
			return object{}, false
		}
		if resp.State.IsNull() {
			return fail("Object to import does not exist", "Nothing is there under the id %q. An import takes in what exists; "+
				"without it, %s is recreated. Check the id, and whether the provider looks in the right place (account, region, project).", id, addr)
		}
		value, private = resp.State, resp.Private
	}
	if !value.IsWhollyKnown() {
		return fail("Provider returned unknown values", "The provider %s does not say all about %s, which it imported. This is a mistake in the provider; please report it to its makers.", owner.Source, addr)
	}
	return object{value: value, private: private, sensitive: sensitiveIn(nil, ty, value)}, true
}

// unwantedImports reports imports of what the configuration does not have.
func (p *planner) unwantedImports(t *eval.Task) {
	if len(p.imports.blocks) == 0 {
		return
	}
	wanted := p.wantedInstances(t)
	for _, blocks := range p.imports.blocks {
		for _, block := range blocks {
			at := block.Decl.ToRange.Ptr()
			targets, ok := block.Targets(t)
			if to := block.Decl.To.Target.Resource; len(targets) == 0 && p.ev.Declaration(*to) == nil && len(p.targets) == 0 {
				t.Report(notConfigured(to.Instance(address.Key{}), at, false))
			}
			for addr := range targets {
				if ok && p.contains(addr) && p.ev.Instance(t, addr) == nil && !wanted.open(addr) {
					t.Report(notConfigured(addr, at, p.ev.Declaration(addr.Resource) != nil))
				}
			}
		}
	}
}

func notConfigured(addr address.Instance, at *hcl.Range, declared bool) *hcl.Diagnostic {
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Import target is not configured", Subject: at,
		Detail: fmt.Sprintf("The configuration does not have %s. Every imported object needs its resource block.", addr),
	}
	switch {
	case declared:
		d.Detail = fmt.Sprintf("The configuration has the resource, but no instance %s: its count or for_each, or the "+
			"one of a module, does not cover it.", addr)
	case addr.Module == "" && addr.Key.IsZero():
		d.Detail += " Write it, or have it written:\n\n  stoke plan -generate-config-out=generated.tf"
	}
	return d
}

// finishImports stores imported objects with the present dependencies of the
// configuration.
func (p *planner) finishImports(result *Plan) {
	for addr, stored := range p.imports.stored {
		it := p.items[addr]
		if it == nil { // left to a later round
			result.Refreshed = slices.DeleteFunc(result.Refreshed, func(c *Change) bool { return c == stored })
			continue
		}
		stored.Dependencies, stored.CreateBeforeDestroy = it.change.Dependencies, it.change.CreateBeforeDestroy
	}
	for _, c := range result.Changes {
		if g, ok := p.imports.config[c.Addr.Resource]; ok && c.Importing != "" {
			c.Generated = g.Text
		}
	}
}
