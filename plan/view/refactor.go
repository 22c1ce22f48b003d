package view

import (
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// onlyMoved prints an object of which nothing but the address changes.
func (p *Printer) onlyMoved(c *plan.Change, notes []providers.Note) {
	what := subject(c) + " stays as it is"
	if c.Moved() {
		what = printable(c.Previous.String()) + p.in(bold, " has moved to ") + p.in(bold, subject(c))
	}
	p.heading(what, p.reasons(c, notes))
	d := &differ{color: p.Color}
	d.WriteString(p.arrow(plan.NoOp) + " " + blockHeader(c.Addr) + " {\n")
	d.body(8, update, schemaBlock(c), whatChanges(c), true)
	d.WriteString("    }\n\n")
	p.print(d.String())
}

// streamChange is a change in the words of the stream, for which a new
// address is an action where there is no other.
func streamChange(c *plan.Change, action string) map[string]any {
	if c.Moved() && c.Action == plan.NoOp {
		action = "move"
	}
	out := map[string]any{"resource": streamResource(c.Addr), "action": action}
	if c.Moved() {
		out["previous_resource"] = streamResource(c.Previous)
	}
	return out
}
