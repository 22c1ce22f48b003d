package view

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan/eval"
)

// Sources returns the bytes of a configuration file by the name in ranges, or
// nil when it is not available.
type Sources func(name string) []byte

// Diagnostics prints what went wrong, each with its place, excerpt and the
// values in it; equal ones are printed once. With compact, warnings are
// shortened to a list unless there are errors too.
func (p *Printer) Diagnostics(diags hcl.Diagnostics, src Sources, compact bool) {
	merged := merge(diags, foldable)
	if compact && !diags.HasErrors() && len(merged) > 0 {
		p.warningList(merged)
		return
	}
	for _, m := range merged[:min(len(merged), maxDiagnostics)] {
		p.diagnostic(m, src)
	}
	if left := len(merged) - maxDiagnostics; left > 0 {
		p.frame(red, []string{"… and " + counted(left, "more message") + " like these. Mend the first ones and run the command again."})
	}
}

// maxDiagnostics is the limit of printed diagnostics: more are never read, and
// looking up the place of each takes a pass over its file.
const maxDiagnostics = 200

// mergedDiagnostic is a diagnostic and how many more say the same elsewhere.
type mergedDiagnostic struct {
	*hcl.Diagnostic
	more int
}

// foldable reports whether a warning says all there is to know without its place,
// as those about checks do not: which of them failed is the news.
func foldable(d *hcl.Diagnostic) bool { return d.Summary != eval.CheckFailed }

// merge drops repeated diagnostics and, where they may be folded, folds warnings
// that differ only in their place into one. The order of first appearance stays;
// errors stay apart, because each of their places has to be mended.
func merge(diags hcl.Diagnostics, fold func(*hcl.Diagnostic) bool) []mergedDiagnostic {
	type key struct {
		severity        hcl.DiagnosticSeverity
		summary, detail string
		at, object      string
	}
	exact := make(map[key]bool, len(diags))
	warned := make(map[key]int)
	merged := make([]mergedDiagnostic, 0, len(diags))
	for _, d := range diags {
		if d == nil {
			continue
		}
		k := key{severity: d.Severity, summary: d.Summary, detail: d.Detail}
		if d.Severity == hcl.DiagWarning && fold(d) {
			if i, ok := warned[k]; ok {
				merged[i].more++
				continue
			}
			warned[k] = len(merged)
		} else {
			if d.Subject != nil {
				k.at = d.Subject.String()
			}
			k.object = aboutObject(d)
			if exact[k] {
				continue
			}
			exact[k] = true
		}
		merged = append(merged, mergedDiagnostic{Diagnostic: d})
	}
	return merged
}

func (p *Printer) diagnostic(m mergedDiagnostic, src Sources) {
	tint, word := red, "Error: "
	if m.Severity == hcl.DiagWarning {
		tint, word = yellow, "Warning: "
	}
	width := p.columns()
	if p.Box {
		width -= 2
	}
	lines := []string{p.paintText(bold+tint, word) + p.paintText(bold, printable(m.Summary))}
	if m.Subject != nil {
		lines = append(lines, "")
		if object := aboutObject(m.Diagnostic); object != "" {
			lines = append(lines, "  with "+printable(object)+",")
		}
		lines = append(lines, p.excerpt(m.Diagnostic, src)...)
	}
	if m.Detail != "" {
		lines = append(lines, "")
		lines = append(lines, wrap(m.Detail, width)...)
	}
	if m.more > 0 {
		lines = append(lines, "", "(and "+counted(m.more, "more warning")+" like it elsewhere)")
	}
	p.frame(tint, lines)
}

// aboutObject is the address of the object that a diagnostic is about; "" where
// it is about none.
func aboutObject(d *hcl.Diagnostic) string {
	extra, ok := hcl.DiagnosticExtra[interface{ DiagnosticAddress() string }](d)
	if !ok {
		return ""
	}
	return extra.DiagnosticAddress()
}

// frame prints lines with a rule down their left side, or bare between empty
// lines where frames are off.
func (p *Printer) frame(tint paint, lines []string) {
	var b strings.Builder
	if !p.Box {
		b.WriteByte('\n')
		for _, l := range lines {
			b.WriteString(l)
			b.WriteByte('\n')
		}
		p.print(b.String())
		return
	}
	b.WriteString(p.paintText(tint, "╷") + "\n")
	for _, l := range lines {
		b.WriteString(p.paintText(tint, "│"))
		if l != "" {
			b.WriteString(" " + l)
		}
		b.WriteByte('\n')
	}
	b.WriteString(p.paintText(tint, "╵") + "\n")
	p.print(b.String())
}

func (p *Printer) warningList(merged []mergedDiagnostic) {
	lines := []string{p.paintText(bold+yellow, "Warnings:"), ""}
	for _, m := range merged {
		line := "- " + printable(m.Summary)
		if m.Subject != nil {
			line += " (" + printable(m.Subject.Filename) + " line " + decimal(m.Subject.Start.Line)
			if m.more > 0 {
				line += " and " + decimal(m.more) + " more"
			}
			line += ")"
		}
		lines = append(lines, line)
	}
	lines = append(lines, "", "Run without -compact-warnings to read them in full.")
	p.frame(yellow, lines)
}
