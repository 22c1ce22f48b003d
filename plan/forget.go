package plan

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
)

// removals are the removed blocks of all modules, by their targets without
// instance keys.
type removals map[string]*modules.Removed

// collectRemovals gathers the removed blocks, and reports those about what is
// declared all the same.
func (p *planner) collectRemovals(t *eval.Task) removals {
	found := removals{}
	if p.req.Root == nil {
		return found
	}
	var collect func(m *modules.Module)
	collect = func(m *modules.Module) {
		for _, block := range m.Removed {
			at := pattern{m.Path, block.From}
			if first := found[at.keyless()]; first != nil && first.Destroy != block.Destroy {
				t.Report(&hcl.Diagnostic{
					Severity: hcl.DiagError, Summary: "Contradicting removed blocks", Subject: block.Range.Ptr(),
					Detail: fmt.Sprintf("This block and the one at %s are both about %s, but they disagree about destroying it. Remove one of the two.", first.Range, at),
				})
			}
			if where := at.declaredAt(p.req.Root); where != nil {
				t.Report(&hcl.Diagnostic{
					Severity: hcl.DiagError, Summary: "Removed object still declared", Subject: block.Range.Ptr(),
					Detail: fmt.Sprintf("The block says that %s was removed, but it is declared at %s. Remove one of the two.", at, *where),
				})
			}
			found[at.keyless()] = block
		}
		for _, call := range m.Calls {
			if call.Module != nil {
				collect(call.Module)
			}
		}
	}
	collect(p.req.Root)
	return found
}

// spares reports whether a block keeps the resource's objects from being
// destroyed. The most particular block decides.
func (r removals) spares(res address.Resource) bool {
	if len(r) == 0 {
		return false
	}
	for _, name := range lookups(res.Module.Steps(), res) {
		if block := r[name]; block != nil {
			return !block.Destroy
		}
	}
	return false
}

// letGo plans to forget an object. Its provider is only called to upgrade the
// object to the present schema.
func (p *planner) letGo(t *eval.Task, d removedObject) {
	if p.req.Mode == RefreshOnly {
		return
	}
	owner, ok := p.ev.Unconfigured(t, d.object.Provider, d.addr.String())
	if !ok {
		return
	}
	rs := owner.Schema.Resources[d.addr.Type]
	if rs == nil {
		t.Report(noSuchType(d.addr, owner.Source))
		return
	}
	ty := owner.Type(rs)
	value, diags := Upgraded(p.ctx, owner.Server, d.addr.Type, d.object, ty)
	t.Report(diags...)
	if diags.HasErrors() {
		return
	}
	c := &Change{
		Addr: d.addr, Deposed: d.deposed, Previous: p.from[d.addr], Provider: d.object.Provider, Action: Forget, Reason: d.reason,
		Before: value, After: cty.NullVal(ty.Implied), BeforeSensitive: sensitiveIn(d.object.Sensitive, ty, value),
		Config: cty.NullVal(ty.Implied), Dependencies: d.object.Dependencies, PriorDependencies: d.object.Dependencies,
		PriorPrivate: d.object.Private, Private: d.object.Private, Schema: rs,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extra = append(p.extra, c)
}

func noSuchType(a address.Instance, source string) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Resource type not supported",
		Detail: fmt.Sprintf("The state holds %s, but the provider %s has no resource type %q.", a, source, a.Type),
	}
}

// forgotten warns of objects that stoke no longer manages.
func forgotten(result *Plan) hcl.Diagnostics {
	var lines []string
	for _, c := range result.Changes {
		if c.Action == Forget {
			lines = append(lines, "  - "+c.Addr.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagWarning, Summary: "Some objects will no longer be managed",
		Detail: fmt.Sprintf("Applying this plan forgets these objects and leaves them as they are:\n%s\n\nTo manage one of them again, import it.", someOf(lines, "\n")),
	}}
}
