package plan

import (
	"context"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/redact"
)

// Explorer answers questions about a configuration: what an expression in its
// root module is worth.
type Explorer struct {
	p       *planner
	planned bool
	stop    func()
}

// Explore makes an explorer. Resources have the values of the state or, when
// planned is set, the values that a new plan gives them. The caller closes it.
func Explore(ctx context.Context, r Request, planned bool) (*Explorer, hcl.Diagnostics) {
	if !planned {
		r.Mode = Destroy // in this mode resources have their values of the state
	}
	p, diags := newPlanner(ctx, r)
	if diags.HasErrors() {
		return nil, diags
	}
	e := &Explorer{p: p, planned: planned, stop: p.watchCancel(ctx)}
	if planned {
		diags = append(diags, p.relocate()...)
		p.ev.Do(p.configured)
		diags = eval.SortDiagnostics(append(diags, p.ev.Diagnostics()...))
	} else {
		e.renew()
	}
	if diags.HasErrors() {
		e.Close()
		return nil, diags
	}
	return e, diags
}

// renew forgets all values, and with them which ones could not be made.
func (e *Explorer) renew() {
	e.p.ev.Close()
	e.p.ev = eval.New(e.p.ctx, eval.Options{
		Root: e.p.req.Root, Variables: e.p.req.Variables, Catalogue: e.p.req.Catalogue, Resolver: e.p,
		Parallelism: e.p.req.Parallelism, Workspace: e.p.req.Workspace, Stopping: e.p.req.Stopping,
	})
}

// Value evaluates an expression. Next to a value there may be warnings.
func (e *Explorer) Value(expr hcl.Expression) (v cty.Value, diags hcl.Diagnostics) {
	e.p.ev.Do(func(t *eval.Task) {
		var ok bool
		if v, ok = e.p.ev.Root().Expression(t, expr); ok && lang.HasMark(v, lang.TypeName) && !v.HasMark(lang.TypeName) {
			t.Report(&hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Invalid use of function type",
				Detail:  "type returns a type, which is not a value: use it only as the outermost function.",
				Subject: expr.Range().Ptr(),
			})
		}
	})
	diags = eval.SortDiagnostics(e.p.ev.Diagnostics())
	if diags.HasErrors() && !e.planned {
		e.renew() // a repeated query reports the same fault again
	}
	return v, diags
}

// ForDisplay returns an expression's value for display. It marks parts that equal a
// sensitive value, also where the sensitive value is in another part of the
// same object.
func (e *Explorer) ForDisplay(expr hcl.Expression, v cty.Value) cty.Value {
	t, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() {
		return redact.HideEchoes(v)
	}
	for _, whole := range redact.PartOf(t) {
		all, diags := e.Value(&hclsyntax.ScopeTraversalExpr{Traversal: whole, SrcRange: expr.Range()})
		if diags.HasErrors() {
			break
		}
		if part, diags := t[len(whole):].TraverseRel(redact.HideEchoes(all)); !diags.HasErrors() {
			v = part
		}
	}
	return redact.HideEchoes(v)
}

// Provider is the provider of an address that the state names, configured as its
// block says, until the explorer is closed; about is the object that needs it. nil:
// it cannot be configured.
func (e *Explorer) Provider(addr, about string) (p *redact.Provider, diags hcl.Diagnostics) {
	e.p.ev.Do(func(t *eval.Task) {
		if found, ok := e.p.ev.ProviderAt(t, addr, about); ok {
			p = found.Server
		}
	})
	return p, eval.SortDiagnostics(e.p.ev.Diagnostics())
}

// Close ends the started providers.
func (e *Explorer) Close() {
	e.stop()
	e.p.ev.Close()
}
