package syntax

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// maxDiagnostics is how many mistakes of one file are shown.
const maxDiagnostics = 20

// checkText refuses what is no text at all, once.
func checkText(name string, src []byte) hcl.Diagnostics {
	at := bytes.IndexByte(src, 0)
	if at < 0 && utf8.Valid(src) {
		return nil
	}
	what := "It contains a NUL byte, so it is probably a binary file."
	if at < 0 {
		what = "It is not encoded in UTF-8. Save it as UTF-8, or move it away if it is a binary file."
		for at = 0; at < len(src); {
			r, n := utf8.DecodeRune(src[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError,
		Summary:  "File is no text",
		Detail:   fmt.Sprintf("%s cannot be read as configuration. %s", name, what),
		Subject:  position(name, src, at).Ptr(),
	}}
}

func tooDeep(name string, src []byte, out outline) hcl.Diagnostics {
	limit := maxNesting
	if out.deepest == "operators and indices" {
		limit = maxChain
	}
	at := out.deepAt + len(src) - len(withoutBOM(src))
	if out.long {
		return hcl.Diagnostics{{
			Severity: hcl.DiagError,
			Summary:  "Text too long",
			Detail: fmt.Sprintf("This text has more than %d lines and interpolations. "+
				"Put it into a file of its own and read it with the function file.", maxPieces),
			Subject: position(name, src, at).Ptr(),
		}}
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError,
		Summary:  "Nested too deeply",
		Detail: fmt.Sprintf("Here the configuration has more than %d %s within each other. "+
			"Look for brackets that are never closed, or split the expression with local values.", limit, out.deepest),
		Subject: position(name, src, at).Ptr(),
	}}
}

// position is the character at a byte offset.
func position(name string, src []byte, at int) hcl.Range {
	before := src[:at]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	pos := hcl.Pos{Line: line, Column: column, Byte: at}
	end := pos
	if at < len(src) {
		_, n := utf8.DecodeRune(src[at:])
		end.Byte += n
		end.Column++
	}
	return hcl.Range{Filename: name, Start: pos, End: end}
}

// CheckExpression applies the bounds to text that hcl is going to parse as an
// expression by itself, such as a type constraint in JSON.
func CheckExpression(name string, src []byte) hcl.Diagnostics { return check(name, src, expression) }

// CheckJSON applies the bounds to JSON text. The name is for its diagnostics.
func CheckJSON(name string, src []byte) hcl.Diagnostics {
	if diags := checkText(name, src); diags.HasErrors() {
		return diags
	}
	return checkJSON(name, src)
}

// checkJSON bounds the nesting of JSON and of the templates in its strings,
// which hcl parses when it evaluates them.
func checkJSON(name string, src []byte) hcl.Diagnostics {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '[', '{':
			if depth++; depth > maxNesting {
				return tooDeep(name, src, outline{deepAt: i, deepest: "brackets"})
			}
		case ']', '}':
			depth--
		case '"':
			end := stringEnd(src, i)
			if end-i > maxNesting {
				if out := scanString(src[i:end]); out.deep {
					out.deepAt = i
					return tooDeep(name, src, out)
				}
			}
			i = end - 1
		}
	}
	return nil
}

// stringEnd returns the offset after the JSON string that starts at i.
func stringEnd(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}

func scanString(quoted []byte) outline {
	var text string
	if stdjson.Unmarshal(quoted, &text) != nil {
		return outline{} // the parser says what is wrong
	}
	return scan([]byte(text), template)
}

// readable sorts what the parser says by place and drops what only follows
// from something said before.
func readable(diags hcl.Diagnostics) hcl.Diagnostics {
	if len(diags) < 2 {
		return diags
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		if a.Subject == nil || b.Subject == nil {
			return 0
		}
		return a.Subject.Start.Byte - b.Subject.Start.Byte
	})
	kept := diags[:0]
	line := 0
	for _, d := range diags {
		if d.Subject != nil && d.Subject.Start.Line == line {
			continue
		}
		if d.Subject != nil {
			line = d.Subject.Start.Line
		}
		kept = append(kept, d)
		if d.Summary == "Invalid multi-line string" {
			break // from here on the parser takes text for code and code for text
		}
	}
	if more := len(kept) - maxDiagnostics; more > 0 {
		last := kept[maxDiagnostics-1]
		kept = append(kept[:maxDiagnostics:maxDiagnostics], &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "More mistakes in this file",
			Detail:   fmt.Sprintf("%d further mistakes in it are not shown. Correct those above first.", more),
			Subject:  last.Subject,
		})
	}
	return kept
}
