package view

import (
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// onlyMoved prints an object of which nothing but the address changes.
func (p *Printer) onlyMoved(c *plan.Change, notes []providers.Note) {
	what := subject(c) + " stays as it is"
	if c.Importing != "" {
		what = subject(c) + " will be imported"
	}
	if c.Moved() {
		what = printable(c.Previous.String()) + p.paintText(bold, " has moved to ") + p.paintText(bold, subject(c))
	}
	p.heading(what, p.reasons(c, notes))
	d := &differ{color: p.Color}
	d.WriteString(p.arrow(plan.NoOp) + " " + blockHeader(c.Addr) + " {\n")
	d.body(8, update, schemaBlock(c), whatShows(c), true)
	d.WriteString("    }\n\n")
	p.print(d.String())
}

// streamChange returns a change as an object of the stream. A move or an import
// is its action where nothing else changes.
func streamChange(c *plan.Change, action string) map[string]any {
	switch {
	case c.Action != plan.NoOp:
	case c.Importing != "":
		action = "import"
	case c.Moved():
		action = "move"
	}
	out := map[string]any{"resource": streamResource(c.Addr), "action": action}
	if c.Moved() {
		out["previous_resource"] = streamResource(c.Previous)
	}
	if c.Importing != "" {
		out["importing"] = map[string]any{"id": c.Importing}
	}
	if c.Generated != "" {
		out["generated_config"] = c.Generated
	}
	return out
}

// importCount is the first part of a plan's summary, where it takes objects in.
func importCount(pl *plan.Plan) string {
	if n := pl.Imports(); n > 0 {
		return decimal(n) + " to import, "
	}
	return ""
}

// jsonImport is the part of a change that tells of an object taken in.
type jsonImport struct {
	Importing *jsonImporting `json:"importing,omitempty"`
	Generated string         `json:"generated_config,omitempty"`
}

type jsonImporting struct {
	ID string `json:"id"`
}

func importJSON(c *plan.Change) jsonImport {
	if c.Importing == "" {
		return jsonImport{}
	}
	return jsonImport{&jsonImporting{c.Importing}, c.Generated}
}

// Generated tells where configuration was written to.
func (p *Printer) Generated(name string) {
	p.Rule()
	p.paragraph("Stoke has written configuration for imported objects to " + printable(name) + ". Look it over and " +
		"add missing arguments before you put it under version control.")
}
