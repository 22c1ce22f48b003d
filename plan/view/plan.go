package view

import (
	"slices"
	"strings"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// Plan prints what a plan would do: drift first, then every change with its
// reasons and notes, then outputs and the summary line.
func (p *Printer) Plan(pl *plan.Plan) {
	p, flush := p.buffered()
	defer flush()
	defer p.printUnread(pl)
	p.driftSection(pl)
	switch {
	case pl.Changed():
	case len(pl.Deferred) > 0:
		p.undecidable(pl)
		return
	default:
		if pl.Mode != plan.RefreshOnly || len(pl.Moves) == 0 {
			p.printNoChanges(pl)
		}
		return
	}
	acts := actions(pl)
	some := len(acts) > 0 || slices.ContainsFunc(pl.Changes, func(c *plan.Change) bool { return !c.Idle() })
	if some && pl.Mode != plan.RefreshOnly {
		p.changesSection(pl, acts)
	}
	p.deferredSection(pl)
	if (some || len(pl.Deferred) > 0) && pl.Mode != plan.RefreshOnly {
		p.summary(pl)
	}
	outputs := p.outputsSection(pl, !some)
	if pl.Mode == plan.RefreshOnly && !outputs && !some && len(pl.Drift)+len(pl.Moves)+len(pl.Deferred) == 0 {
		p.printNoChanges(pl) // results of data sources may be stored again: not shown
		return
	}
	if outputs || some || len(pl.Deferred) > 0 || pl.Mode == plan.RefreshOnly {
		return
	}
	// What has moved is not covered by the plan, or it would have a change.
	p.print("\n")
	p.paragraph("Applying this plan gives objects in the state the addresses that the configuration has for them now, and touches nothing else.")
}

// printUnread prints the number of objects that the plan takes from the state
// without reading them.
func (p *Printer) printUnread(pl *plan.Plan) {
	if pl.Unread > 0 {
		p.print("\n")
		p.paragraph("Not read: " + counted(pl.Unread, "object") + " that no change touches (-refresh=changed). They are taken as the state has them.")
	}
}

// Rule prints the line between a plan and what follows.
func (p *Printer) Rule() {
	p.print("\n", strings.Repeat("─", p.columns()-1), "\n\n")
}

// PrintNextStep tells what to do with a plan that was made: name is the file that it
// was written to, or "".
func (p *Printer) PrintNextStep(name string) {
	p.Rule()
	if name == "" {
		p.paragraph("Note: this plan was not saved (-out=FILE), so \"stoke apply\" makes a new one, which may differ if something changes in the meantime.")
		return
	}
	p.print("Saved the plan to: ", printable(name), "\n\nTo carry out exactly these actions, run:\n    stoke apply ", address.Quote(name), "\n")
}

// actions returns the kinds of change that the plan holds, in the order of
// the legend.
func actions(pl *plan.Plan) []plan.Action {
	var has [plan.Forget + 1]bool
	for _, c := range pl.Changes {
		has[c.Action] = true
	}
	var out []plan.Action
	for _, a := range []plan.Action{plan.Create, plan.Update, plan.Delete, plan.DeleteThenCreate, plan.CreateThenDelete, plan.Read, plan.Forget} {
		if has[a] {
			out = append(out, a)
		}
	}
	return out
}

func (p *Printer) changesSection(pl *plan.Plan, acts []plan.Action) {
	if len(acts) > 0 {
		p.print("\nStoke will carry out the following plan. Its symbols:\n")
	}
	for _, a := range acts {
		p.print(p.arrow(a), " ", legend(a), "\n")
	}
	p.print("\nStoke will perform the following actions:\n\n")
	notes := notesByAddress(pl.Notes)
	for _, c := range pl.Changes {
		if !c.Idle() {
			p.change(c, notes[c.Addr.String()])
		}
	}
	p.otherNotes(pl)
}

func notesByAddress(notes []providers.Note) map[string][]providers.Note {
	by := make(map[string][]providers.Note)
	for _, n := range notes {
		by[n.Address] = append(by[n.Address], n)
	}
	return by
}

// otherNotes prints the notes of objects that do not change: a GPU that was lost,
// say, is not for any apply to bring back.
func (p *Printer) otherNotes(pl *plan.Plan) {
	shown := make(map[string]bool)
	for _, c := range pl.Changes {
		if !c.Idle() {
			shown[c.Addr.String()] = true
		}
	}
	some := false
	for _, n := range pl.Notes {
		if shown[n.Address] {
			continue
		}
		p.print("  # ")
		if n.Address != "" {
			p.print(printable(n.Address), ": ")
		}
		p.print(p.note(n), "\n")
		some = true
	}
	if some {
		p.print("\n")
	}
}

func (p *Printer) summary(pl *plan.Plan) {
	a, c, d := pl.Count()
	p.print(p.paintText(bold, "Plan:"), " ", importCount(pl), decimal(a), " to add, ", decimal(c), " to change, ", decimal(d),
		" to destroy.\n")
	if n := len(pl.Deferred); n > 0 {
		p.print("Left for a later round: ", counted(n, "change"), ".\n")
	}
	disruptions, costs, cost := 0, 0, 0.0
	for _, n := range pl.Notes {
		switch n.Kind {
		case providers.NoteDisruption:
			disruptions++
		case providers.NoteCost:
			costs++
			cost += n.Number
		}
	}
	if disruptions > 0 {
		p.print(p.paintText(yellow, counted(disruptions, "disruption")), " of running work, as noted above.\n")
	}
	if costs > 0 {
		p.print("Cost of the noted changes: ", amount(cost), ".\n")
	}
}

// outputsSection shows the changes of outputs, and reports whether there are
// any. alone is set if nothing else is planned.
func (p *Printer) outputsSection(pl *plan.Plan, alone bool) bool {
	width, n := 0, 0
	for _, o := range pl.Outputs {
		if o.Action != plan.NoOp {
			width = max(width, columnsOf(o.Name))
			n++
		}
	}
	if n == 0 {
		return false
	}
	p.print("\nChanges to Outputs:\n")
	for _, o := range pl.Outputs {
		if o.Action != plan.NoOp {
			p.outputChange(o, width)
		}
	}
	if alone {
		p.print("\n")
		p.paragraph("Applying this plan stores the new output values and touches nothing else.")
	}
	return true
}

func (p *Printer) driftSection(pl *plan.Plan) {
	if len(pl.Drift) == 0 {
		return
	}
	p.print("\n", p.paintText(bold+cyan, "Note:"), p.paintText(bold, " Objects have changed outside of Stoke"), "\n\n")
	p.paragraph("These are not as the last \"stoke apply\" left them:")
	p.print("\n")
	for _, c := range pl.Drift {
		p.drift(c)
	}
	switch {
	case pl.Mode == plan.RefreshOnly:
		p.paragraph("Applying this plan stores what was found and touches none of these objects. Without it, the next plan may want to undo the differences.")
	case pl.Changed():
		p.paragraph("Unless the configuration now has the same values, or the attributes are listed in " +
			"ignore_changes, the plan below responds to it.")
		p.Rule()
	}
}

// printNoChanges prints that there is nothing to do.
func (p *Printer) printNoChanges(pl *plan.Plan) {
	head, rest := noChangesText(pl)
	p.print("\n", p.paintText(bold+green, "No changes."), p.paintText(bold, " "+head), "\n\n")
	p.paragraph(rest)
	if len(pl.Notes) > 0 {
		p.print("\n")
		p.otherNotes(pl)
	}
}

// noChangesText says that there is nothing to do, in the words of the plan's mode.
func noChangesText(pl *plan.Plan) (head, rest string) {
	head, rest = "Your infrastructure matches the configuration.",
		"Stoke compared what is really there with the configuration and found no difference that would need an action."
	switch {
	case pl.Unseen > 0 && pl.Mode != plan.Destroy:
		head, rest = "There is nothing to do, as far as could be seen.",
			"Taken as the state has it, for reasons that warnings give: "+counted(pl.Unseen, "object")+". Of all others, Stoke found no difference that would need an action."
	case pl.Mode == plan.Destroy:
		head, rest = "No objects need to be destroyed.",
			"The state holds no objects: none were made, or all of them are gone already."
	case pl.Mode == plan.RefreshOnly:
		head, rest = "Your infrastructure still matches the configuration.",
			"The real objects are as the last apply left them."
	case len(pl.Drift) > 0:
		rest = "The outside changes need no action: the configuration agrees with them. To store what was found, run \"stoke apply -refresh-only\"."
	}
	return head, rest
}
