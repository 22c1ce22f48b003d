package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/eval"
)

// outputs compares the root module's outputs with those stored. With targets
// they are left alone: they may rest on what the plan leaves out.
func (p *planner) outputs(t *eval.Task) {
	if len(p.targets) > 0 {
		return
	}
	root := p.ev.Root()
	prior := p.prior.Outputs()
	names := map[string]bool{}
	for name := range prior {
		names[name] = true
	}
	if p.req.Mode != Destroy {
		for name := range root.Decl.Outputs {
			names[name] = true
		}
	}
	for name := range names {
		c := &OutputChange{Name: name, Before: cty.NullVal(cty.DynamicPseudoType), After: cty.NullVal(cty.DynamicPseudoType)}
		was, had := prior[name]
		if had {
			c.Before, c.BeforeSensitive = was.Value, was.Sensitive
		}
		decl := root.Decl.Outputs[name]
		has := decl != nil && p.req.Mode != Destroy
		if has {
			v, ok := root.Output(t, name)
			if !ok {
				continue
			}
			v, _, _ = lang.Unmark(v)
			c.After, c.Sensitive = v, decl.Sensitive
		}
		if has && root.OutputDeferred(name) {
			c.Deferred = true
			c.After = cty.DynamicVal
			if had {
				c.After, c.Sensitive = c.Before, c.BeforeSensitive
			}
		}
		has = has && !c.After.IsNull()
		switch {
		case had && !has:
			c.Action = Delete
		case has && !had:
			c.Action = Create
		case has && (!c.After.RawEquals(c.Before) || c.Sensitive != c.BeforeSensitive):
			c.Action = Update
		}
		if has || had {
			p.outs = append(p.outs, c)
		}
	}
}
