package lang

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stokehq/stoke/modules/address"
)

func parse(t *testing.T, text string) hcl.Expression {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", text, diags)
	}
	return expr
}

func TestParseReference(t *testing.T) {
	cases := []struct {
		text  string
		want  Subject
		rest  int // steps that remain
		width int // of the subject's range
	}{
		{"var.a", Variable{"a"}, 0, 5},
		{"var.a.b[0]", Variable{"a"}, 2, 5},
		{"local.a", Local{"a"}, 0, 7},
		{"module.m", ModuleCall{"m"}, 0, 8},
		{"module.m[0].out", ModuleCall{"m"}, 2, 8},
		{"a.b", Resource{address.Managed, "a", "b"}, 0, 3},
		{`a.b["x"].c`, Resource{address.Managed, "a", "b"}, 2, 3},
		{"resource.a.b.c", Resource{address.Managed, "a", "b"}, 1, 12},
		{"resource.var.b", Resource{address.Managed, "var", "b"}, 0, 14},
		{"data.a.b.c", Resource{address.Data, "a", "b"}, 1, 8},
		{"count.index", CountIndex{}, 0, 11},
		{"each.key", EachKey{}, 0, 8},
		{"each.value.a", EachValue{}, 1, 10},
		{"self.a.b", Self{}, 2, 4},
		{"path.module", Path{"module"}, 0, 11},
		{"path.root", Path{"root"}, 0, 9},
		{"path.cwd", Path{"cwd"}, 0, 8},
		{"terraform.workspace", Terraform{"workspace"}, 0, 19},
	}
	for _, c := range cases {
		refs, diags := References(parse(t, c.text))
		if diags.HasErrors() || len(refs) != 1 {
			t.Errorf("%s: %v %v", c.text, refs, diags)
			continue
		}
		ref := refs[0]
		if ref.Subject != c.want || len(ref.Remaining) != c.rest {
			t.Errorf("%s: %#v and %d more, want %#v and %d", c.text, ref.Subject, len(ref.Remaining), c.want, c.rest)
		}
		if got := ref.Range.End.Column - ref.Range.Start.Column; got != c.width {
			t.Errorf("%s: subject is %d wide, want %d", c.text, got, c.width)
		}
		written := strings.TrimPrefix(c.text[:c.width], "resource.")
		if got := ref.Subject.String(); got != written {
			t.Errorf("%s: prints as %s", c.text, got)
		}
	}
}

func TestParseReferenceErrors(t *testing.T) {
	cases := map[string]string{
		"var":           `"var" must be followed by a dot and the name of a variable`,
		"var[0]":        "not by an index",
		"local":         "the name of a local value",
		"module":        "the name of a module call",
		"data":          "data.TYPE.NAME",
		"data.x":        "data.TYPE.NAME",
		"data.x[0].y":   "with dots between them",
		"resource.x":    "resource.TYPE.NAME",
		"x":             `"x" is not a name of the language`,
		"x[0]":          "starts with its type and name",
		"count":         "write count.index",
		"count.foo":     `"count" has no attribute "foo"; write count.index`,
		"each":          "write each.key or each.value",
		"each.vale":     "write each.key or each.value",
		"each[0]":       "cannot be indexed",
		"path.foo":      "write path.cwd, path.module or path.root",
		"terraform.foo": "write terraform.applying or terraform.workspace",
		"terraform.env": "replaced by terraform.workspace",
		"ephemeral.a.b": "not supported yet",
		"template.a":    "reserved",
	}
	for text, want := range cases {
		refs, diags := References(parse(t, text))
		if len(refs) != 0 || len(diags) != 1 || !strings.Contains(diags[0].Detail, want) || diags[0].Subject == nil {
			t.Errorf("%s: %v %v, want %q", text, refs, diags, want)
		}
	}
	if _, diags := ParseReference(nil); !diags.HasErrors() {
		t.Error("no error for no traversal")
	}
}

func TestReferences(t *testing.T) {
	refs, diags := References(nil, parse(t, `[for x in var.a : "${x} ${local.b} ${f(c.d[var.e])}"]`), parse(t, "1"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got := ""
	for _, ref := range refs {
		got += ref.Subject.String() + " "
	}
	if got != "var.a local.b c.d var.e " {
		t.Error(got)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"region", "regions", "machine_type", "a", "zone", "type"}
	for name, want := range map[string]string{
		"regoin": "region", "machinetype": "machine_type", "tpye": "type", "x": "", "nothing_like_it": "", "region": "regions", "": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestSuggestFunctions(t *testing.T) {
	table := Functions(".")
	for text, want := range map[string]string{
		"uper(1)":         `Did you mean "upper"?`,
		"jsonencod({})":   `Did you mean "jsonencode"?`,
		"templatefil()":   `Did you mean "templatefile"?`,
		"nothing_like():": "",
	} {
		expr, _ := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
		_, diags := expr.Value(&hcl.EvalContext{Functions: table})
		SuggestFunctions(diags, table)
		if len(diags) != 1 || strings.Count(diags[0].Detail, "Did you mean") > 1 || !strings.Contains(diags[0].Detail, want) {
			t.Errorf("%s: %v", text, fmt.Sprint(diags))
		}
	}
}
