package view

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

// change prints one object of the plan: its action, the reason, notes, and its
// difference.
func (p *Printer) change(c *plan.Change, notes []providers.Note) {
	if c.Action == plan.NoOp {
		p.onlyMoved(c, notes)
		return
	}
	p.heading(subject(c)+" "+p.fate(c), p.reasons(c, notes))
	d := &differ{color: p.Color, short: true}
	d.WriteString(p.arrow(c.Action) + " " + blockHeader(c.Addr) + " {\n")
	s := update
	switch c.Action {
	case plan.Create, plan.Read:
		s = add
	case plan.Delete:
		s = remove
	}
	what := whatShows(c)
	if c.Action == plan.Forget {
		what.after, what.afterSecret = what.before, what.beforeSecret
	}
	d.body(8, s, schemaBlock(c), what, true)
	d.WriteString("    }\n\n")
	p.print(d.String())
}

// heading prints "# what" and, below it, a line for each remark.
func (p *Printer) heading(what string, remarks []string) {
	p.print(p.paintText(bold, "  # "+what), "\n")
	for _, r := range remarks {
		p.print("  # ", r, "\n")
	}
}

func subject(c *plan.Change) string {
	if c.Deposed != "" {
		return printable(c.Addr.String()) + " (deposed object " + printable(c.Deposed) + ")"
	}
	return printable(c.Addr.String())
}

func blockHeader(a address.Instance) string {
	keyword := "resource"
	if a.Mode == address.Data {
		keyword = "data"
	}
	return keyword + " " + address.Quote(a.Type) + " " + address.Quote(a.Name)
}

func schemaBlock(c *plan.Change) *providers.Block {
	if c.Schema == nil {
		return nil
	}
	return c.Schema.Block
}

func whatChanges(c *plan.Change) pair {
	known := sensitivePlaces(schemaBlock(c))
	return pair{
		before: c.Before, after: c.After,
		beforeSecret: secret{placesOf(c.BeforeSensitive), known},
		afterSecret:  secret{placesOf(c.AfterSensitive), known},
		forces:       placesOf(c.Replace),
	}
}

// whatShows is whatChanges for people: without what repeats a sensitive value.
func whatShows(c *plan.Change) pair {
	p := whatChanges(c)
	p.beforeSecret = p.beforeSecret.echoed(c.Before, c.Schema, c.BeforeSensitive)
	p.afterSecret = p.afterSecret.echoed(c.After, c.Schema, c.AfterSensitive)
	return p
}

// echoed is the secret with what repeats it.
func (s secret) echoed(v cty.Value, schema *providers.ResourceSchema, sensitive []cty.Path) secret {
	if len(sensitive) == 0 && s.declared == nil {
		return s
	}
	if found := redact.Echoes(v, schema, sensitive); len(found) > 0 {
		s.named = placesOf(append(found, sensitive...))
	}
	return s
}

// reasons are the remarks below an object's heading: why, and the notes that
// its provider has made.
func (p *Printer) reasons(c *plan.Change, notes []providers.Note) []string {
	var out []string
	if c.Action == plan.Forget {
		out = append(out, "(destroy = false is set in the configuration)")
	} else if why := changeReason(c, bare); why != "" {
		out = append(out, "("+printable(why)+")")
	}
	if c.Importing != "" && c.Action != plan.NoOp {
		out = append(out, "(imported from "+address.Quote(c.Importing)+")")
	}
	if c.Generated != "" {
		out = append(out, "(its configuration was written)")
	}
	if c.Moved() && c.Action != plan.NoOp {
		out = append(out, "(moved from "+printable(c.Previous.String())+")")
	}
	for _, n := range notes {
		out = append(out, p.note(n))
	}
	return out
}

func (p *Printer) note(n providers.Note) string {
	tint := cyan
	switch n.Kind {
	case providers.NoteDisruption, providers.NoteDeletion:
		tint = yellow
	case providers.NoteFact:
		tint = plain
	}
	text := p.paintText(tint, string(n.Kind)+":") + " "
	if len(n.Path) > 0 {
		text += printable(pathText(n.Path)) + ": "
	}
	return text + printable(strings.ReplaceAll(n.Text, "\n", " "))
}

// drift prints one object that changed behind Stoke's back.
func (p *Printer) drift(c *plan.Change) {
	if c.Action == plan.NoOp && c.Moved() {
		p.onlyMoved(c, nil)
		return
	}
	what := "has changed"
	s, arrow := update, plan.Update
	if absent(c.After) {
		what, s, arrow = "has been deleted", remove, plan.Delete
	}
	var remarks []string
	if c.Moved() {
		remarks = []string{"(moved from " + printable(c.Previous.String()) + ")"}
	}
	p.heading(subject(c)+" "+what, remarks)
	d := &differ{color: p.Color, short: true}
	d.WriteString(p.arrow(arrow) + " " + blockHeader(c.Addr) + " {\n")
	d.body(8, s, schemaBlock(c), whatShows(c), true)
	d.WriteString("    }\n\n")
	p.print(d.String())
}

// outputChange prints what becomes of one root output.
func (p *Printer) outputChange(o *plan.OutputChange, width int) {
	d := &differ{color: p.Color}
	d.outputChange(4, o, width)
	if d.Len() > 0 {
		p.print(d.String(), "\n")
	}
}

// outputChange writes what becomes of an output, its name in column c.
func (d *differ) outputChange(c int, o *plan.OutputChange, width int) {
	hide := func(on bool) secret { return secret{named: &places{here: on}} }
	pr := pair{before: o.Before, after: o.After, beforeSecret: hide(o.BeforeSensitive), afterSecret: hide(o.Sensitive)}
	switch o.Action {
	case plan.Create:
		d.begin(c, add)
		d.label(o.Name, width)
		d.writeWhole(c, add, pr.after, pr.afterSecret)
	case plan.Delete:
		d.begin(c, remove)
		d.label(o.Name, width)
		d.writeWhole(c, remove, pr.before, pr.beforeSecret)
		d.WriteString(dress(d.color, dim, " -> null"))
	default:
		if pr.before == cty.NilVal || pr.after == cty.NilVal {
			return
		}
		d.begin(c, update)
		d.label(o.Name, width)
		d.change(c, pr)
	}
}
