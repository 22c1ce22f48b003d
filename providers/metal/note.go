package metal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// note lets a remark ride beside the plan. An engine without a place for it
// shows a warning.
func note(ctx context.Context, diags *diag.Diagnostics, kind providers.NoteKind, at []string, text string) {
	var to cty.Path
	for _, name := range at {
		if to == nil {
			to = to.GetAttr(name)
		} else {
			to = to.IndexString(name)
		}
	}
	if !providers.CallFrom(ctx).AddNote(providers.Note{Path: to, Kind: kind, Text: text}) {
		diags.AddWarning("Effect of this change", text+".")
	}
}

func noteFacts(ctx context.Context, diags *diag.Diagnostics, argument string, texts []string) {
	for _, text := range texts {
		note(ctx, diags, providers.NoteFact, []string{argument}, text)
	}
}

// withoutNotes is for an apply: it looks as its plan did, which has made the remarks.
func withoutNotes(ctx context.Context) context.Context {
	call := *providers.CallFrom(ctx)
	call.Note = func(providers.Note) {}
	return providers.WithCall(ctx, &call)
}

func noteChanges(ctx context.Context, diags *diag.Diagnostics, changes []host.Change) {
	for _, c := range changes {
		if c.Disruption > host.None {
			note(ctx, diags, providers.NoteDisruption, c.Path, fmt.Sprintf("%s: %s", c.Fact, c.Disruption))
		}
		if c.Says != "" {
			note(ctx, diags, providers.NoteDisruption, c.Path, fmt.Sprintf("%s: %s", c.Fact, c.Says))
		}
	}
}

// reportOutcomes reports what destroying did, fact by fact, in one line: of lines that come
// at the same time, only the last is shown. A leftover that the user has to decide about is
// a warning.
func reportOutcomes(ctx context.Context, diags *diag.Diagnostics, outcomes []host.Outcome) {
	facts := map[host.Fate][]string{}
	left := ""
	for _, o := range outcomes {
		fact := o.Fact
		switch {
		case o.Fate == host.Left && o.Expected:
			fact += " (" + o.Why + ")"
		case o.Fate == host.Left:
			left += fmt.Sprintf("\n  - %s: %s", o.Fact, o.Why)
		}
		facts[o.Fate] = append(facts[o.Fate], fact)
	}
	var parts []string
	for _, fate := range []host.Fate{host.Restored, host.Removed, host.Left} {
		if len(facts[fate]) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", fate, strings.Join(byKind(facts[fate]), "; ")))
		}
	}
	if len(parts) > 0 {
		providers.CallFrom(ctx).Report(providers.Progress{Line: strings.Join(parts, " — "), Percent: -1})
	}
	if left != "" {
		diags.AddWarning("Something stays on the machine", "It is no longer managed, and this was left as it is:"+left)
	}
}

// byKind sorts facts so that those of one kind stand together, and says what
// kind they are once: "package curl, jq" for "package curl" and "package jq".
func byKind(facts []string) []string {
	var kinds []string
	of := map[string][]string{}
	for _, f := range facts {
		kind, name := "", f
		if i := strings.LastIndexByte(f, ' '); i > 0 && !strings.HasSuffix(f, ")") {
			kind, name = f[:i], f[i+1:]
		}
		if of[kind] == nil {
			kinds = append(kinds, kind)
		}
		of[kind] = append(of[kind], name)
	}
	var all []string
	for _, kind := range kinds {
		slices.Sort(of[kind])
		all = append(all, strings.TrimSpace(kind+" "+strings.Join(slices.Compact(of[kind]), ", ")))
	}
	return all
}
