package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Markdown writes a plan for the reviewer of a pull request: how much changes,
// then what may hurt, then every change in a fold. Sensitive values are not in
// it, and it fits into a comment.
func Markdown(out io.Writer, pl *plan.Plan) error {
	m, by := newSheet(), classify(pl)
	m.print("## ", by.title(pl), "\n\n")
	m.alert(by, pl.Mode == plan.Destroy && len(pl.Targets)+len(pl.Excludes) == 0)
	m.scope(pl)
	m.warnings(pl.Warnings)
	m.consequences(by)
	m.notes(pl, by)
	m.items("Left for a later round", 4000, len(pl.Deferred), func(i int) string {
		d := pl.Deferred[i]
		return "- " + code(subject(d.Change)) + ": " + deferredBecause(d, code) + "\n"
	})
	m.folds(pl, by)
	m.outputs(pl)
	if err := m.finish(out, "stoke show PLANFILE"); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// classes are a plan's changes by what they do.
type classes struct {
	byAction                [plan.Forget + 1][]*plan.Change // none that stays as it is
	replaced                []*plan.Change
	moved, imported         []*plan.Change
	notes                   map[string][]providers.Note
	disruptions, costs      []providers.Note
	others                  []providers.Note // of objects that stay as they are
	cost                    float64
	add, change, destroy, n int
}

func classify(pl *plan.Plan) *classes {
	by := &classes{notes: notesByAddress(pl.Notes)}
	by.add, by.change, by.destroy = pl.Count()
	busy := make(map[string]bool)
	for _, c := range pl.Changes {
		if c.Action != plan.NoOp {
			by.byAction[c.Action] = append(by.byAction[c.Action], c)
			by.n++
			busy[c.Addr.String()] = true
		}
		if c.Action.Replaces() {
			by.replaced = append(by.replaced, c)
		}
		if c.Moved() {
			by.moved = append(by.moved, c)
		}
		if c.Importing != "" {
			by.imported = append(by.imported, c)
		}
	}
	for _, n := range pl.Notes {
		switch {
		case n.Kind == providers.NoteDisruption:
			by.disruptions = append(by.disruptions, n)
		case n.Kind == providers.NoteCost:
			by.costs = append(by.costs, n)
			by.cost += n.Number
		case !busy[n.Address]:
			by.others = append(by.others, n)
		}
	}
	return by
}

// title says how much changes, in the words of the plan's last line.
func (by *classes) title(pl *plan.Plan) string {
	if pl.Mode == plan.RefreshOnly && pl.Changed() {
		return "Refresh-only plan: " + counted(len(pl.Refreshed), "object") + " to update in the state"
	}
	if !pl.Changed() {
		if n := len(pl.Deferred); n > 0 {
			return "No changes that can be made now, " + counted(n, "change") + " left for a later round"
		}
		head, _ := noChangesText(pl)
		return "No changes. " + head
	}
	word := "Plan: "
	if pl.Mode == plan.Destroy {
		word = "Destroy plan: "
	}
	parts := []string{decimal(by.add) + " to add", decimal(by.change) + " to change", decimal(by.destroy) + " to destroy"}
	more := func(n int, what string) {
		if n > 0 {
			parts = append(parts, decimal(n)+" "+what)
		}
	}
	more(len(by.byAction[plan.Forget]), "to forget")
	more(len(by.moved), "to move")
	more(len(pl.Deferred), "left for a later round")
	return word + importCount(pl) + strings.Join(parts, ", ")
}

// alert is the one thing that nobody may miss.
func (m *sheet) alert(by *classes, all bool) {
	gone, replaced := by.destroy-len(by.replaced), len(by.replaced)
	var parts []string
	if gone > 0 {
		parts = append(parts, counted(gone, "object")+" will be destroyed")
	}
	if replaced > 0 {
		parts = append(parts, counted(replaced, "object")+" will be destroyed and created again")
	}
	if len(parts) == 0 {
		return
	}
	m.print("> [!CAUTION]\n> **", strings.Join(parts, ", and "), ".**")
	if all {
		m.print(" This plan destroys everything that the state holds.")
	}
	m.print("\n\n")
}

// scope says what the plan is of, where that is not the usual.
func (m *sheet) scope(pl *plan.Plan) {
	if pl.Workspace != "" && pl.Workspace != "default" {
		m.print("Workspace ", code(pl.Workspace), ".\n\n")
	}
	if pl.Locked != nil {
		m.print("Made without the key of the plan, so nothing says that it is as it was when it was signed.\n\n")
	}
	m.items("Covers these targets only", 2000, len(pl.Targets), func(i int) string { return "- " + code(pl.Targets[i]) + "\n" })
	m.items("Leaves these out", 2000, len(pl.Excludes), func(i int) string { return "- " + code(pl.Excludes[i]) + "\n" })
	m.conditions(pl.Checks)
}

// conditions counts what became of the configuration's own checks.
func (m *sheet) conditions(results []state.CheckResult) {
	n := make(map[state.CheckStatus]int)
	for _, r := range results {
		n[r.Status]++
	}
	var parts []string
	for _, s := range []struct {
		status    state.CheckStatus
		one, many string
	}{
		{state.CheckFailed, "fails", "fail"}, {state.CheckErred, "ended in an error", "ended in errors"},
		{state.CheckUnknown, "is decided during apply", "are decided during apply"}, {state.CheckPassed, "passes", "pass"},
	} {
		switch n[s.status] {
		case 0:
		case 1:
			parts = append(parts, "1 "+s.one)
		default:
			parts = append(parts, decimal(n[s.status])+" "+s.many)
		}
	}
	if len(parts) > 0 {
		m.print("Conditions and checks: ", strings.Join(parts, ", "), ".\n\n")
	}
}

func (m *sheet) warnings(all []plan.Warning) {
	more := make(map[plan.Warning]int)
	var list []plan.Warning
	for _, w := range all {
		said := plan.Warning{Summary: w.Summary, Detail: w.Detail}
		if more[said]++; more[said] == 1 {
			list = append(list, w)
		}
	}
	m.items("Warnings", 8000, len(list), func(i int) string {
		w := list[i]
		text := "- " + code(w.Summary)
		if w.File != "" {
			text += " at " + code(fmt.Sprintf("%s:%d", w.File, w.Line))
		}
		if n := more[plan.Warning{Summary: w.Summary, Detail: w.Detail}]; n > 1 {
			text += ", and " + decimal(n-1) + " more like it"
		}
		if w.Detail != "" {
			text += "<br>\n  " + code(w.Detail)
		}
		return text + "\n"
	})
}
