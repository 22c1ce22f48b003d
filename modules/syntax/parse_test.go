package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// shapes are texts that make a recursive parser or evaluator recurse.
var shapes = map[string]func(n int) string{
	"opening brackets": func(n int) string { return "a = " + strings.Repeat("[", n) },
	"opening braces":   func(n int) string { return "a = " + strings.Repeat("{b=", n) },
	"parentheses":      func(n int) string { return "a = " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) },
	"lists":            func(n int) string { return "a = " + strings.Repeat("[", n) + "1" + strings.Repeat("]", n) },
	"objects":          func(n int) string { return "a = " + strings.Repeat("{b=", n) + "1" + strings.Repeat("}", n) },
	"blocks":           func(n int) string { return strings.Repeat("b {\n", n) + strings.Repeat("}\n", n) },
	"calls":            func(n int) string { return "a = " + strings.Repeat("f(", n) + "1" + strings.Repeat(")", n) },
	"templates":        func(n int) string { return "a = " + strings.Repeat(`"x${`, n) + "1" + strings.Repeat(`}"`, n) },
	"heredocs": func(n int) string {
		return "a = " + strings.Repeat("<<E\n${", n) + "1" + strings.Repeat("}\nE\n", n)
	},
	"directives": func(n int) string {
		return `a = "` + strings.Repeat("%{if true}", n) + strings.Repeat("%{endif}", n) + `"`
	},
	"for expressions": func(n int) string { return "a = " + strings.Repeat("[for b in ", n) + "c" + strings.Repeat(" : b]", n) },
	"negations":       func(n int) string { return "a = " + strings.Repeat("!", n) + "true" },
	"minuses":         func(n int) string { return "a = " + strings.Repeat("- ", n) + "1" },
	"conditionals":    func(n int) string { return "a = " + strings.Repeat("true ? 1 : ", n) + "2" },
	"middles":         func(n int) string { return "a = " + strings.Repeat("true ? ", n) + "2" + strings.Repeat(" : 1", n) },
	"sums":            func(n int) string { return "a = 1" + strings.Repeat("+1", n) },
	"indices":         func(n int) string { return "a = b" + strings.Repeat("[c]", n) },
	"splats":          func(n int) string { return "a = b" + strings.Repeat("[*]", n) },
	"sums over lines": func(n int) string { return "a = [1" + strings.Repeat("\n+1", n) + "]" },
	"sums in for":     func(n int) string { return "a = {for b in c : b => 1" + strings.Repeat("\n+1", n) + "}" },
}

func TestTooDeep(t *testing.T) {
	for name, shape := range shapes {
		body, diags := Parse("x.tf", []byte("\n"+shape(200_000)))
		if len(diags) != 1 || diags[0].Summary != "Nested too deeply" {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		if body == nil || diags[0].Subject.Filename != "x.tf" || diags[0].Subject.Start.Line < 2 {
			t.Errorf("%s: at %v", name, diags[0].Subject)
		}
	}
}

// What people and generators write stays far below the limits.
func TestNotTooDeep(t *testing.T) {
	for name, shape := range shapes {
		if strings.HasPrefix(name, "opening") {
			continue
		}
		body, diags := Parse("x.tf", []byte(shape(300)+"\n"))
		if diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
		}
		for _, attr := range body.(*hclsyntax.Body).Attributes {
			attr.Expr.Variables()
			attr.Expr.Value(&hcl.EvalContext{})
		}
	}
	const n = 12_000 // more than any limit
	flat := map[string]string{
		"traversal":  "a = b" + strings.Repeat(".c", n),
		"list":       "a = [" + strings.Repeat("[1], -1,\n", n) + "]",
		"object":     "a = {\n" + strings.Repeat("b = !true\n", n) + "}",
		"blocks":     strings.Repeat("b {\n}\n", n),
		"attributes": "b {\n" + attributes(n) + "}\n",
		"strings":    `a = "` + strings.Repeat(`((( [[[ ${1} %{if true}x%{endif}`, n/4) + `"`,
		"heredoc":    "a = <<EOT\n" + strings.Repeat("((( ${1} ]\n", n/4) + "EOT\n",
		"comments":   strings.Repeat("# [[[ (((\n// {{{\n/* ((( \n[ */\n", n),
		"sums":       "a = 1" + strings.Repeat(" + 1", 9_000),
	}
	for name, text := range flat {
		if _, diags := Parse("x.tf", []byte(text+"\n")); diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

func attributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d = 1 + 2 * x[3]\n", i)
	}
	return b.String()
}

func TestJSONTooDeep(t *testing.T) {
	const n = 200_000
	inner := `${` + strings.Repeat("(", n)
	for name, text := range map[string]string{
		"brackets": `{"a":` + strings.Repeat("[", n),
		"objects":  strings.Repeat(`{"a":`, n),
		"template": `{"a":"` + inner + `"}`,
		"escaped":  `{"a":"\u0024{` + strings.Repeat(`\u0028`, n) + `"}`,
		"key":      `{"` + inner + `": 1}`,
	} {
		if _, diags := Parse("x.tf.json", []byte(text)); len(diags) != 1 || diags[0].Summary != "Nested too deeply" {
			t.Errorf("%s: %v", name, diags)
		}
	}
	flat := `{"a":[` + strings.Repeat(`"((( [[[ ${1}",`, n) + `"\"["]}`
	if _, diags := Parse("x.tf.json", []byte(flat)); diags.HasErrors() {
		t.Error(diags)
	}
}

// hcl's time for a text grows with the square of its lines.
func TestLongTexts(t *testing.T) {
	const n = 400_000
	for name, text := range map[string]string{
		"lines":    "a = <<EOT\n" + strings.Repeat("text\n", n) + "EOT\n",
		"dollars":  `a = "` + strings.Repeat("$ ", n) + "\"\n",
		"literals": "a = <<EOT\n" + strings.Repeat("$${", n) + "\nEOT\n",
	} {
		if _, diags := Parse("x.tf", []byte(text)); len(diags) != 1 || diags[0].Summary != "Text too long" {
			t.Errorf("%s: %v", name, diags)
		}
	}
	if _, diags := ParseTemplate("x", []byte(strings.Repeat("text\n", n))); len(diags) != 1 {
		t.Errorf("template: %v", diags)
	}
}

func TestSingleTexts(t *testing.T) {
	deep := strings.Repeat("[", 200_000)
	if _, diags := ParseExpression("x", []byte(deep), hcl.InitialPos); len(diags) != 1 {
		t.Errorf("expression: %v", diags)
	}
	if _, diags := ParseExpression("x", []byte("1"+strings.Repeat("\n+1", 200_000)), hcl.InitialPos); len(diags) != 1 {
		t.Errorf("expression over lines: %v", diags)
	}
	if _, diags := ParseTemplate("x", []byte("${"+deep)); len(diags) != 1 {
		t.Errorf("template: %v", diags)
	}
	if _, diags := ParseTemplate("x", []byte(deep)); diags.HasErrors() {
		t.Errorf("plain text: %v", diags)
	}
	expr, diags := ParseExpression("x", []byte("[1, 2]"), hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if v, _ := expr.Value(nil); v.LengthInt() != 2 {
		t.Errorf("value %#v", v)
	}
}

func TestMistakes(t *testing.T) {
	cases := []struct{ name, file, text, want string }{
		{"unclosed block", "x.tf", "a {\n  b = 1\n", "x.tf:1,3-4: Unclosed configuration block"},
		{"unclosed quote", "x.tf", "a {\n  b = \"x\n}\nc {\n  d = \"y\"\n}\n", "x.tf:2,9-3,1: Invalid multi-line string"},
		{"no value", "x.tf", "a {\n  b =\n  c = 1\n}\n", "x.tf:2,6-3,1: Invalid expression"},
		{"no equals sign", "x.tf", "a {\n  b 1\n}\n", "x.tf:2,3-4: Argument or block definition required"},
		{"binary", "x.tf", "a = 1\n\x00\x01\xff", "x.tf:2,1-2: File is no text"},
		{"latin 1", "x.tf", "a = \"caf\xe9\"\n", "x.tf:1,9-10: File is no text"},
		{"json", "x.tf.json", "{\n  \"a\": \n}", "x.tf.json:3,1-2: Missing JSON value"},
		{"json list", "x.tf.json", "3", "x.tf.json:1,1-2: Root value must be object"},
		{"empty json", "x.tf.json", "", "x.tf.json:1,1-1: Missing value"},
	}
	for _, c := range cases {
		_, diags := Parse(c.file, []byte(c.text))
		if len(diags) != 1 {
			t.Errorf("%s: %d diagnostics: %v", c.name, len(diags), diags)
			continue
		}
		if got := fmt.Sprintf("%s: %s", diags[0].Subject, diags[0].Summary); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	var many strings.Builder
	for range 500 {
		many.WriteString("a {\n  b 1\n}\n")
	}
	if _, diags := Parse("x.tf", []byte(many.String())); len(diags) != maxDiagnostics+1 {
		t.Errorf("%d diagnostics for 500 mistakes", len(diags))
	}
}

// A file parsed in pieces is the same as one parsed whole, ranges included.
func TestPieces(t *testing.T) {
	src := resources(3000)
	out := scan(src, config)
	if len(out.cuts) < 3 {
		t.Fatalf("%d cuts", len(out.cuts))
	}
	pieces, diags := parseNative("x.tf", src, out)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	whole, _ := parsePiece("x.tf", src, hcl.InitialPos)
	if len(pieces.Blocks) != len(whole.Blocks) || pieces.EndRange != whole.EndRange || pieces.SrcRange != whole.SrcRange {
		t.Fatalf("%d blocks, %v and %v; want %d, %v and %v", len(pieces.Blocks), pieces.EndRange, pieces.SrcRange,
			len(whole.Blocks), whole.EndRange, whole.SrcRange)
	}
	for i, b := range whole.Blocks {
		got := pieces.Blocks[i]
		if got.TypeRange != b.TypeRange || got.CloseBraceRange != b.CloseBraceRange || got.Labels[1] != b.Labels[1] {
			t.Fatalf("block %d: %v, want %v", i, got.DefRange(), b.DefRange())
		}
		for name, attr := range b.Body.Attributes {
			if other := got.Body.Attributes[name]; other == nil || other.SrcRange != attr.SrcRange {
				t.Fatalf("block %d: attribute %s", i, name)
			}
		}
	}
}

func resources(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "resource \"terraform_data\" \"n%d\" {\n  input = \"é ${terraform_data.n%d.output}\"\n}\n\n", i, i/10)
	}
	return []byte(b.String())
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"a": ["${b}", {"c": null}], "//": 1e9}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, name := range []string{"x.tf", "x.tf.json"} {
			body, diags := Parse(name, src)
			if body == nil {
				t.Fatal("no body")
			}
			if len(diags) > maxDiagnostics+1 {
				t.Fatalf("%d diagnostics", len(diags))
			}
			for _, d := range diags {
				if d.Subject == nil || d.Summary == "Parser failure" {
					t.Fatal(d)
				}
			}
			if !diags.HasErrors() {
				attrs, _ := body.JustAttributes()
				for _, attr := range attrs {
					attr.Expr.Variables()
					attr.Expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{"b": cty.DynamicVal}})
				}
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	src := resources(10_000)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := Parse("x.tf", src); diags.HasErrors() {
			b.Fatal(diags)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	src := resources(10_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		scan(src, config)
	}
}
