package view

import (
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
)

// tableRows is how many rows each part of the table of outcomes has at most.
const tableRows = 20

// Applied prints how an apply ended: one line when all went well, else the
// table of outcomes and how to go on.
func (p *Printer) Applied(r *run.Report, mode plan.Mode, interrupted bool) {
	word, command := "Apply", "stoke apply"
	if mode == plan.Destroy {
		word, command = "Destroy", "stoke destroy"
	}
	by := groupOutcomes(r)
	if len(by.failed)+len(by.interrupted)+by.skipped == 0 && interrupted {
		p.print("\n", p.paintText(bold+yellow, word+" interrupted! "+resources(r, mode)), "\n\n")
		p.paragraph("Finished work is recorded, and runs that were still going continue by themselves. Run \"" + command + "\" again: it waits for them, and does what is left.")
		return
	}
	if r.Complete() {
		p.print("\n", p.paintText(bold+green, word+" complete! "+resources(r, mode)), "\n")
		return
	}
	p.print("\n", p.paintText(bold+red, word+" incomplete! "+resources(r, mode)), "\n\n")
	p.table("Done", green, by.done, doneRow)
	p.table("Failed", red, by.failed, failedRow)
	p.skipped(by)
	p.table("Not started because of the interrupt", yellow, by.interrupted, addressRow)
	p.paragraph("Completed changes are recorded. Run \"" + command + "\" again: it resumes where this one stopped.")
}

// Round prints how one round of an apply ended that needs several: more says
// that another one follows. Where none does, something is left undone.
func (p *Printer) Round(n int, r *run.Report, more bool) {
	if more {
		p.print("\n", p.paintText(bold+green, "Round "+decimal(n)+" complete! "+resources(r, plan.Normal)), "\n\n")
		p.paragraph("Planning round " + decimal(n+1) + ", which decides what this one has made known.")
		return
	}
	p.print("\n", p.paintText(bold+yellow, "Apply ended after round "+decimal(n)+", with something left. "+resources(r,
		plan.Normal)), "\n\n")
	p.paragraph("Completed changes are recorded. Run \"stoke apply\" again to continue.")
}

// ReportDeferrals tells of a saved plan that is applied what it has left for later.
func (p *Printer) ReportDeferrals(pl *plan.Plan) {
	p.print("\n", p.paintText(bold+yellow, counted(len(pl.Deferred), "change")+" left for a later round:"), "\n")
	for i, d := range pl.Deferred {
		if i == tableRows {
			p.print("  … and ", decimal(len(pl.Deferred)-i), " more\n")
			break
		}
		p.print("  ", printable(d.Change.Addr.String()+": "+deferredBecause(d, bare)), "\n")
	}
	p.print("\n")
	p.paragraph("Make a new plan to go on: \"stoke plan -out=FILE\" and \"stoke apply FILE\", or \"stoke apply\", which does all rounds that it takes.")
}

func resources(r *run.Report, mode plan.Mode) string {
	if mode == plan.Destroy {
		return "Resources: " + decimal(r.Destroyed) + " destroyed."
	}
	imported := ""
	if r.Imported > 0 {
		imported = decimal(r.Imported) + " imported, "
	}
	return "Resources: " + imported + decimal(r.Added) + " added, " + decimal(r.Changed) + " changed, " + decimal(r.Destroyed) + " destroyed."
}

// outcomes is a report's rows, sorted by how they ended.
type outcomes struct {
	done, failed, interrupted []run.Outcome
	because                   []string                 // addresses that failed, in order
	waiting                   map[string][]run.Outcome // what was not started because of them
	skipped                   int
}

func groupOutcomes(r *run.Report) outcomes {
	by := outcomes{waiting: make(map[string][]run.Outcome)}
	for _, o := range r.Outcomes {
		switch o.Status {
		case run.Done:
			by.done = append(by.done, o)
		case run.Failed:
			by.failed = append(by.failed, o)
		case run.Interrupted:
			by.interrupted = append(by.interrupted, o)
		case run.Skipped:
			if by.waiting[o.Because] == nil {
				by.because = append(by.because, o.Because)
			}
			by.waiting[o.Because] = append(by.waiting[o.Because], o)
			by.skipped++
		}
	}
	return by
}

func (p *Printer) table(title string, tint paint, rows []run.Outcome, text func(run.Outcome) string) {
	if len(rows) == 0 {
		return
	}
	p.print(p.paintText(bold+tint, title+" ("+decimal(len(rows))+")"), "\n")
	p.rows("  ", rows, tableRows, text)
	p.print("\n")
}

func (p *Printer) rows(indent string, rows []run.Outcome, most int, text func(run.Outcome) string) {
	for i, o := range rows {
		if i == most && len(rows) > most+1 {
			p.print(indent, "… and ", decimal(len(rows)-i), " more\n")
			return
		}
		p.print(indent, printable(text(o)), "\n")
	}
}

func (p *Printer) skipped(by outcomes) {
	if by.skipped == 0 {
		return
	}
	p.print(p.paintText(bold+yellow, "Not started ("+decimal(by.skipped)+")"), "\n")
	left := tableRows
	for i, because := range by.because {
		rows := by.waiting[because]
		if left <= 0 {
			p.print("  … and more, because of ", counted(len(by.because)-i, "other failure"), "\n")
			break
		}
		p.print("  because ", printable(because), " failed:\n")
		p.rows("    ", rows, left, addressRow)
		left -= len(rows)
	}
	p.print("\n")
}

func addressRow(o run.Outcome) string {
	if o.Deposed != "" {
		return o.Addr.String() + " (deposed object " + o.Deposed + ")"
	}
	return o.Addr.String()
}

func doneRow(o run.Outcome) string {
	return addressRow(o) + ": " + pastTense(o.Action) + " in " + elapsed(o.Elapsed)
}

func failedRow(o run.Outcome) string {
	text := addressRow(o) + ": " + wordsFor(o.Action).done + " failed after " + elapsed(o.Elapsed)
	if o.Because != "" {
		text += ": " + o.Because
	}
	return text
}

func pastTense(a plan.Action) string {
	switch a {
	case plan.Update:
		return "changed"
	case plan.Delete:
		return "destroyed"
	case plan.Read:
		return "read"
	}
	return "created"
}
