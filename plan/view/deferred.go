package view

import (
	"strings"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
)

// deferredSection prints what only a later round can decide.
func (p *Printer) deferredSection(pl *plan.Plan) {
	if len(pl.Deferred) == 0 {
		return
	}
	p.print(p.paintText(bold+cyan, "Left for a later round"), p.paintText(bold, ", planned once the above is applied:"), "\n\n")
	for _, d := range pl.Deferred {
		p.deferral(d)
	}
}

func (p *Printer) deferral(d *plan.Deferral) {
	c := d.Change
	p.heading(subject(c)+" will be decided in the next round: "+printable(deferredBecause(d, bare)), nil)
	t := &differ{color: p.Color}
	t.WriteString(p.arrow(c.Action) + " " + blockHeader(c.Addr) + " {\n")
	s := update
	switch c.Action {
	case plan.Create, plan.Read:
		s = add
	case plan.Delete:
		s = remove
	}
	t.body(8, s, schemaBlock(c), whatShows(c), true)
	t.WriteString("    }\n\n")
	p.print(t.String())
}

// deferredBecause returns the reason of a deferred change.
func deferredBecause(d *plan.Deferral, dress naming) string {
	on := nameList(d.Because, dress)
	depends := func(what string) string {
		if on == "" {
			return what + " is known after apply"
		}
		return what + " depends on " + on + ", known after apply"
	}
	switch d.Reason {
	case plan.InstanceCountUnknown:
		if d.Subject != keyless(d.Change.Addr) {
			return depends("the " + d.Argument + " of " + dress(d.Subject))
		}
		return depends(d.Argument)
	case plan.ProviderConfigUnknown:
		return depends("the configuration of its provider")
	case plan.ResourceConfigUnknown:
		return "its provider needs to know more of its configuration"
	case plan.AbsentPrerequisite:
		return "its provider says that something which it needs is not there yet"
	}
	switch {
	case d.Change.Action == plan.Delete && on != "":
		return "it is still in use by " + on
	case on == "":
		return "something that it depends on is deferred"
	}
	return "it depends on " + on + ", which " + isOrAre(d.Because) + " deferred too"
}

func keyless(a address.Instance) string { return a.Resource.String() }

func isOrAre(names []string) string {
	if len(names) == 1 {
		return "is"
	}
	return "are"
}

// nameList is "a, b and 3 others".
func nameList(all []string, dress naming) string {
	const most = 3
	shown := len(all)
	if shown > most+1 {
		shown = most
	}
	var names []string
	for _, n := range all[:shown] {
		names = append(names, dress(n))
	}
	if left := len(all) - shown; left > 0 {
		names = append(names, counted(left, "other"))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// undecidable explains a plan that changes nothing and defers something.
func (p *Printer) undecidable(pl *plan.Plan) {
	p.print("\n", p.paintText(bold+yellow, "No changes that can be made now."), p.paintText(bold, " "+counted(len(pl.Deferred), "change")+" cannot be decided yet."), "\n\n")
	p.deferredSection(pl)
}
