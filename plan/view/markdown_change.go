package view

import (
	"slices"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// consequences lists what goes, with the reasons.
func (m *sheet) consequences(by *classes) {
	list := func(title string, share int, changes []*plan.Change, row func(c *plan.Change) string) {
		m.items(title, share, len(changes), func(i int) string {
			return "- " + code(subject(changes[i])) + row(changes[i]) + "\n"
		})
	}
	list("Destroyed", 5000, by.byAction[plan.Delete], func(c *plan.Change) string { return reason(changeReason(c, code)) })
	list("Replaced", 5000, by.replaced, func(c *plan.Change) string {
		text := reason(replacedBecause(c))
		if c.Action == plan.CreateThenDelete {
			text += " (the new one is made before the old one is removed)"
		}
		return text
	})
	list("No longer managed", 2000, by.byAction[plan.Forget], func(*plan.Change) string { return ": the object stays, the state forgets it" })
	list("Moved", 2000, by.moved, func(c *plan.Change) string { return ", was " + code(c.Previous.String()) })
	list("Imported", 2000, by.imported, func(c *plan.Change) string {
		text := " from " + code(c.Importing)
		if c.Generated != "" {
			text += ", its configuration was written"
		}
		return text
	})
}

func reason(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func replacedBecause(c *plan.Change) string {
	switch c.Reason {
	case plan.ReplaceTainted:
		return "because it is tainted"
	case plan.ReplaceByRequest:
		return "as requested"
	case plan.ReplaceByTriggers:
		return "because of changes in its `replace_triggered_by`"
	}
	return changeReason(c, code)
}

// notes lists what providers say that a change interrupts and costs, and what
// they say of objects that stay as they are.
func (m *sheet) notes(pl *plan.Plan, by *classes) {
	list := func(title string, share int, notes []providers.Note, kind bool) {
		m.items(title, share, len(notes), func(i int) string {
			n, text := notes[i], "- "
			if n.Address != "" {
				text += code(n.Address) + ": "
			}
			if len(n.Path) > 0 {
				text += code(pathText(n.Path)) + ": "
			}
			if kind {
				text += code(string(n.Kind)) + ": "
			}
			return text + code(n.Text) + "\n"
		})
	}
	list("Disruptions of running work: "+decimal(len(by.disruptions)), 5000, by.disruptions, false)
	list("Cost of the noted changes: "+amount(by.cost), 3000, by.costs, false)
	list("Notes", 2000, by.others, true)
}

// Shares of the room for folds; outputs come last and have theirs kept.
const (
	maxFold      = 10000
	driftShare   = 9000
	outputsShare = 6000
)

// folds writes every change in full, the graver ones first.
func (m *sheet) folds(pl *plan.Plan, by *classes) {
	m.items("Changed outside of Stoke", driftShare, len(pl.Drift), func(i int) string { return driftFold(pl.Drift[i]) })
	var changes []*plan.Change
	for _, a := range []plan.Action{plan.Delete, plan.DeleteThenCreate, plan.CreateThenDelete, plan.Update, plan.Read, plan.Create} {
		changes = append(changes, by.byAction[a]...)
	}
	if pl.Mode == plan.RefreshOnly {
		return
	}
	m.items("Changes", m.left-outputsShare, len(changes), func(i int) string {
		return changeFold(changes[i], by.notes[changes[i].Addr.String()])
	})
}

func changeFold(c *plan.Change, notes []providers.Note) string {
	p := &Printer{}
	sign, s := "!", update
	switch c.Action {
	case plan.Create:
		sign, s = "+", add
	case plan.Read:
		sign, s = " ", add
	case plan.Delete:
		sign, s = "-", remove
	case plan.DeleteThenCreate:
		sign = "-/+"
	case plan.CreateThenDelete:
		sign = "+/-"
	}
	text := ""
	for _, r := range p.reasons(c, notes) {
		text += "# " + r + "\n"
	}
	return fold(htmlCode(subject(c))+" "+p.fate(c), fence("diff", cutLines(text+marginText(c, sign, s), maxFold)))
}

func driftFold(c *plan.Change) string {
	what, sign, s := "has changed", "!", update
	switch {
	case c.Action == plan.NoOp && c.Moved():
		return "- " + code(subject(c)) + " has moved from " + code(c.Previous.String()) + "\n"
	case absent(c.After):
		what, sign, s = "has been deleted", "-", remove
	}
	return fold(htmlCode(subject(c))+" "+what, fence("diff", cutLines(marginText(c, sign, s), driftShare/2)))
}

// marginText is the difference of an object with its symbols in the margin.
func marginText(c *plan.Change, sign string, s symbol) string {
	d := &differ{margin: true, short: true}
	d.WriteString(sign + " " + blockHeader(c.Addr) + " {\n")
	d.body(6, s, schemaBlock(c), whatShows(c), true)
	d.WriteString("  }\n")
	return d.String()
}

// outputs writes what becomes of the root module's outputs, in one fold.
func (m *sheet) outputs(pl *plan.Plan) {
	changed := slices.DeleteFunc(slices.Clone(pl.Outputs), func(o *plan.OutputChange) bool { return o.Action == plan.NoOp })
	if len(changed) == 0 {
		return
	}
	width := 0
	for _, o := range changed {
		width = max(width, columnsOf(o.Name))
	}
	d := &differ{margin: true}
	for _, o := range changed {
		if d.Len() > 2*maxFold {
			break // it is cut anyway
		}
		d.outputChange(2, o, min(width, 40))
		d.WriteByte('\n')
	}
	text := cutLines(d.String(), outputsShare-1000)
	m.cut = m.cut || len(text) < d.Len()
	m.print(fold(counted(len(changed), "output")+" will change", fence("diff", text)))
}
