package view

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// jsonDiagnostic is a diagnostic in the JSON of terraform validate -json.
// https://developer.hashicorp.com/terraform/cli/commands/validate#json
type jsonDiagnostic struct {
	Severity string       `json:"severity"`
	Summary  string       `json:"summary"`
	Detail   string       `json:"detail"`
	Address  string       `json:"address,omitempty"`
	Range    *jsonRange   `json:"range,omitempty"`
	Snippet  *jsonSnippet `json:"snippet,omitempty"`
}

type jsonRange struct {
	Filename string  `json:"filename"`
	Start    jsonPos `json:"start"`
	End      jsonPos `json:"end"`
}

type jsonPos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

type jsonSnippet struct {
	Context    *string  `json:"context"`
	Code       string   `json:"code"`
	StartLine  int      `json:"start_line"`
	Start      int      `json:"highlight_start_offset"`
	End        int      `json:"highlight_end_offset"`
	Expression []string `json:"values"`
}

// ValidateJSON is the outcome of a validation for editors and pipelines.
func ValidateJSON(diags hcl.Diagnostics, src Sources) ([]byte, error) {
	out := struct {
		FormatVersion string           `json:"format_version"`
		Valid         bool             `json:"valid"`
		ErrorCount    int              `json:"error_count"`
		WarningCount  int              `json:"warning_count"`
		Diagnostics   []jsonDiagnostic `json:"diagnostics"`
	}{FormatVersion: "1.0", Valid: !diags.HasErrors(), Diagnostics: []jsonDiagnostic{}}
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			out.ErrorCount++
		} else {
			out.WarningCount++
		}
		out.Diagnostics = append(out.Diagnostics, diagnosticJSON(d, src))
	}
	return json.MarshalIndent(out, "", "  ")
}

func diagnosticJSON(d *hcl.Diagnostic, src Sources) jsonDiagnostic {
	out := jsonDiagnostic{Severity: "error", Summary: d.Summary, Detail: d.Detail, Address: aboutObject(d)}
	if d.Severity == hcl.DiagWarning {
		out.Severity = "warning"
	}
	if d.Subject == nil {
		return out
	}
	r := *d.Subject
	out.Range = &jsonRange{r.Filename, jsonPos(r.Start), jsonPos(r.End)}
	if src != nil {
		if text := src(r.Filename); text != nil {
			out.Snippet = snippet(text, r)
		}
	}
	return out
}

func snippet(text []byte, r hcl.Range) *jsonSnippet {
	lines := numberLines(text, r.Start.Line, min(r.End.Line, r.Start.Line+excerptLines))
	if len(lines) == 0 {
		return nil
	}
	for i := range lines {
		lines[i] = truncate(strings.ToValidUTF8(lines[i], "\uFFFD"), 4*excerptCut)
	}
	code := strings.Join(lines, "\n")
	start := min(max(0, offset(lines[0], r.Start.Column)), len(code))
	out := &jsonSnippet{Code: code, StartLine: r.Start.Line, Start: start, Expression: []string{}}
	out.End = min(start+max(0, r.End.Byte-r.Start.Byte), len(code))
	if block := strings.TrimPrefix(inBlock(text, r.Start.Line), ", in "); block != "" {
		out.Context = &block
	}
	return out
}
