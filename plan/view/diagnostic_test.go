package view

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const source = `variable "x" {
  default = 3
}

resource "terraform_data" "y" {
  input = var.x[0] + length(var.list) + var.secret.a
}
`

// badExpression evaluates the source's expression and returns what HCL says.
func badExpression(t *testing.T, text string, vars object) hcl.Diagnostics {
	t.Helper()
	at := strings.Index(source, text)
	start := hcl.Pos{Line: 6, Column: at - strings.LastIndex(source[:at], "\n"), Byte: at}
	expr, diags := hclsyntax.ParseExpression([]byte(text), "main.tf", start)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	_, diags = expr.Value(&hcl.EvalContext{Variables: object{"var": cty.ObjectVal(vars)}})
	if !diags.HasErrors() {
		t.Fatal("the expression is valid")
	}
	return diags
}

func TestDiagnostics(t *testing.T) {
	vars := object{
		"x": num(3), "list": cty.ListVal(strs("a", "b")),
		"secret": cty.ObjectVal(object{"a": str("hunter2")}).Mark("sensitive"),
	}
	diags := badExpression(t, "var.x[0] + length(var.list) + var.secret.a", vars)
	diags = append(diags, diags[0]) // the same again
	long := strings.Repeat("x", 400) + " = 1"
	files := map[string]string{
		"main.tf": source, "long.tf": long, "binary.tf": "a = \xff\x00\x1b[2J\n",
	}
	at := func(file string, line, from, to int) *hcl.Range {
		return &hcl.Range{Filename: file, Start: hcl.Pos{Line: line, Column: from, Byte: from - 1}, End: hcl.Pos{Line: line, Column: to, Byte: to - 1}}
	}
	diags = append(diags,
		&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Line too long", Subject: at("long.tf", 1, 300, 310)},
		&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid file", Detail: "binary.tf is no text.", Subject: at("binary.tf", 1, 5, 7)},
		&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "No such file", Subject: at("absent.tf", 3, 1, 2)},
		&hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Evil\x1b[2Jprovider", Detail: "A detail that is rather long, longer than the width of the box that it has to fit in, and so it is wrapped.\n\n    a line that stands as it is and is not wrapped, no matter how long it may turn out to be\n\nThe end."},
	)
	for _, name := range []string{"a", "b", "c"} {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Deprecated", Detail: "Use y.", Subject: at("main.tf", int(name[0]-'a')+1, 1, 4)})
	}
	src := func(name string) []byte {
		if text, ok := files[name]; ok {
			return []byte(text)
		}
		return nil
	}
	var b bytes.Buffer
	p := &Printer{Out: &b, Box: true, Width: 60}
	p.Diagnostics(diags, src, false)
	b.WriteString("== without a frame\n")
	p.Box = false
	p.Diagnostics(diags[:1], src, false)
	b.WriteString("== compact\n")
	p.Diagnostics(diags[len(diags)-3:], src, true)
	b.WriteString("== compact with errors\n")
	p.Diagnostics(diags[len(diags)-4:], src, true)
	if strings.Contains(b.String(), "hunter2") || strings.Contains(b.String(), "\x1b") {
		t.Error("something got through that must not")
	}
	golden(t, "diagnostics.txt", b.String())

	b.Reset()
	p.Color, p.Box = true, true
	p.Diagnostics(diags[:1], src, false)
	golden(t, "diagnostics-color.txt", b.String())
}

func TestInBlock(t *testing.T) {
	text := []byte("a {\n  x = 1\n}\ny = 2\nvariable \"v\" {}\nz\nresource \"t\" \"n\"  {\n  b {\n  }\n}\n")
	for line, want := range map[int]string{
		1: ", in a", 2: ", in a", 4: "", 5: `, in variable "v"`, 6: "", 7: `, in resource "t" "n"`, 8: `, in resource "t" "n"`, 9: `, in resource "t" "n"`,
	} {
		if got := inBlock(text, line); got != want {
			t.Errorf("line %d: got %q, want %q", line, got, want)
		}
	}
}

func TestManyDiagnostics(t *testing.T) {
	var diags hcl.Diagnostics
	for i := range 5000 {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Bad " + decimal(i)})
	}
	var b bytes.Buffer
	(&Printer{Out: &b}).Diagnostics(diags, nil, false)
	if n := strings.Count(b.String(), "Error: "); n != maxDiagnostics || !strings.Contains(b.String(), "and 4800 more messages") {
		t.Errorf("%d of 5000 are printed:\n%s", n, b.String()[b.Len()-200:])
	}
}
