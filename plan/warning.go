package plan

import "github.com/hashicorp/hcl/v2"

// Warning is a warning of planning, kept in the plan for later readers.
type Warning struct {
	Summary string `json:"summary"`
	Detail  string `json:"detail,omitempty"`
	File    string `json:"file,omitempty"` // "" where it belongs to no place
	Line    int    `json:"line,omitempty"`
}

// maxWarnings is how many a plan keeps.
const maxWarnings = 1000

// Warnings picks the warnings of diagnostics.
func Warnings(diags hcl.Diagnostics) []Warning {
	var out []Warning
	for _, d := range diags {
		if d == nil || d.Severity != hcl.DiagWarning || len(out) == maxWarnings {
			continue
		}
		w := Warning{Summary: d.Summary, Detail: d.Detail}
		if d.Subject != nil {
			w.File, w.Line = d.Subject.Filename, d.Subject.Start.Line
		}
		out = append(out, w)
	}
	return out
}
