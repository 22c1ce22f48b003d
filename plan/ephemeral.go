package plan

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// persistent are the variables that the plan may hold.
func (p *planner) persistent() map[string]cty.Value {
	kept := make(map[string]cty.Value, len(p.req.Variables))
	for name, v := range p.req.Variables {
		if !p.isEphemeral(name) {
			kept[name] = v
		}
	}
	return kept
}

// ephemeral names the given variables that no plan holds.
func (p *planner) ephemeral() []string {
	var names []string
	for name := range p.req.Variables {
		if p.isEphemeral(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (p *planner) isEphemeral(name string) bool {
	decl := p.req.Root.Variables[name]
	return decl != nil && decl.Ephemeral
}
