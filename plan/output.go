package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/eval"
)

// targetedOutputs looks at the outputs that rest on targets and on nothing that
// the plan leaves out. Unknown values of other outputs are not an error.
func (p *planner) targetedOutputs() {
	p.closed = true
	defer func() { p.closed = false }()
	p.ev.Do(p.outputs)
	p.ev.Diagnostics()
}

// outputs compares the root module's outputs with those stored.
func (p *planner) outputs(t *eval.Task) {
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
		switch {
		case has:
			v, ok := root.Output(t, name)
			if ok && len(p.targets) > 0 {
				ok = len(root.OutputNode(name).Resources()) > 0
			}
			if !ok {
				continue
			}
			if lang.HasMark(v, lang.Excluded) { // it stays as it is
				if had {
					c.After, c.Sensitive, c.Deferred = c.Before, c.BeforeSensitive, true
					p.outs = append(p.outs, c)
				}
				continue
			}
			v, _, _ = lang.Unmark(v)
			c.After, c.Sensitive = v, decl.Sensitive
			if p.req.Mode == RefreshOnly && !v.IsWhollyKnown() { // nothing is made that would tell it
				c.After, c.Sensitive = c.Before, c.BeforeSensitive
				has = had
			}
		case had && (len(p.targets) > 0 || p.partial() && p.req.Mode == Destroy):
			continue
		}
		if has && root.OutputDeferred(name) {
			c.Deferred = true
			c.After = cty.DynamicVal
			if had {
				c.After, c.Sensitive = c.Before, c.BeforeSensitive
			}
		}
		c.Action = outputAction(c, had, has)
		if has || had {
			p.outs = append(p.outs, c)
		}
	}
}

// outputAction: an output that is null is stored as none, and declared all the
// same.
func outputAction(c *OutputChange, had, has bool) Action {
	switch {
	case had && !has:
		return Delete
	case !had && has && !c.After.IsNull():
		return Create
	case had && (!c.After.RawEquals(c.Before) || c.Sensitive != c.BeforeSensitive):
		return Update
	}
	return NoOp
}
