package modules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

const variables = `
variable "s" { type = string }
variable "n" { type = number }
variable "b" { type = bool }
variable "l" { type = list(string) }
variable "o" { type = object({ a = string, b = optional(number, 3), c = optional(list(object({ d = optional(string, "x") })), []) }) }
variable "any" { type = any }
variable "untyped" {}
variable "nonull" {
  type     = string
  nullable = false
  default  = "d"
}
variable "nonull2" {
  type     = string
  nullable = false
}
`

func rootOf(t *testing.T, text string) *Module {
	t.Helper()
	m, _, diags := Load(InMemory(map[string][]byte{"main.tf": []byte(text)}), ".")
	if diags.HasErrors() {
		t.Fatal(report(diags))
	}
	return m
}

// show writes values as JSON, with origins.
func show(values map[string]Value) string {
	var b strings.Builder
	for _, name := range []string{"s", "n", "b", "l", "o", "any", "untyped", "nonull", "nonull2"} {
		if v, ok := values[name]; ok {
			text, err := ctyjson.Marshal(v.Value, v.Value.Type())
			if err != nil {
				text = []byte(err.Error())
			}
			fmt.Fprintf(&b, "%s = %s (%d %s)\n", name, text, v.Origin, v.Range.Filename)
		}
	}
	return b.String()
}

func vars(texts ...string) (flags []Flag) {
	for _, text := range texts {
		file, ok := strings.CutPrefix(text, "@")
		flags = append(flags, Flag{File: ok, Text: file})
	}
	return flags
}

func TestPrecedence(t *testing.T) {
	files := archive(`
-- terraform.tfvars --
s = "terraform.tfvars"
n = 1
-- terraform.tfvars.json --
{"n": 2, "b": true, "//": "comment", "l": ["${x}"]}
-- a.auto.tfvars --
b = false
l = ["a"]
-- b.auto.tfvars.json --
{"l": ["b"]}
-- named.tfvars --
o = { a = 1, c = [{}] }
s = "named"
`)
	values, missing, diags := Values(rootOf(t, variables), Inputs{
		Environ: []string{"TF_VAR_s=env", "TF_VAR_any=[1, 2]", "TF_VAR_nope=x", "HOME=x", "TF_VAR_untyped=[1]", "TF_VAR_nonull2=a=b"},
		Source:  InMemory(files),
		Dir:     ".",
		Flags:   vars("s=first", "@named.tfvars", "n=07"),
	}, NewFiles())
	if len(diags) > 0 || len(missing) > 0 {
		t.Fatal(report(diags), missing)
	}
	want := `s = "named" (2 named.tfvars)
n = 7 (3 <value for var.n>)
b = false (2 a.auto.tfvars)
l = ["b"] (2 b.auto.tfvars.json)
o = {"a":"1","b":3,"c":[{"d":"x"}]} (2 named.tfvars)
any = [1,2] (1 <value for var.any>)
untyped = "[1]" (1 <value for var.untyped>)
nonull2 = "a=b" (1 <value for var.nonull2>)
`
	if diff := cmp.Diff(want, show(values)); diff != "" {
		t.Error(diff)
	}
}

func TestNull(t *testing.T) {
	values, _, diags := Values(rootOf(t, variables), Inputs{
		Source: InMemory(archive("-- terraform.tfvars --\nnonull = null\ns = null\n")), Dir: ".",
	}, NewFiles())
	if diags.HasErrors() {
		t.Fatal(report(diags))
	}
	if v := values["nonull"].Value; !v.RawEquals(cty.StringVal("d")) {
		t.Errorf("null for a variable that cannot be null: %#v", v)
	}
	if v := values["s"].Value; !v.RawEquals(cty.NullVal(cty.String)) {
		t.Errorf("null: %#v", v)
	}
}

func TestWrongValues(t *testing.T) {
	cases := []struct {
		name  string
		in    Inputs
		files string
		want  string
	}{
		{"undeclared -var", Inputs{Flags: vars("anyy=1")}, "",
			"-: Value for undeclared variable: The variable \"anyy\" of -var is not declared in the root module. Did you mean \"any\"? Declare it with a variable block, or leave the option out.\n"},
		{"no equals sign", Inputs{Flags: vars("any")}, "",
			"-: Invalid -var option: \"any\" has no equals sign. Write -var NAME=VALUE.\n"},
		{"undeclared in file", Inputs{}, "-- x.auto.tfvars --\n\nnop = 1\n",
			"warning: x.auto.tfvars:2,1: Value for undeclared variable: x.auto.tfvars has a value for a variable \"nop\", which the root module does not declare. It is ignored.\n"},
		{"type of -var", Inputs{Flags: vars("n=x")}, "",
			"main.tf:3,1: Wrong type of value: The value of variable \"n\" does not have the type declared at main.tf:3,1-13: a number is required. The value was set by -var n=….\n"},
		{"type in -var", Inputs{Flags: vars("o={ a = [] }")}, "",
			"main.tf:6,1: Wrong type of value: The value of variable \"o\" does not have the type declared at main.tf:6,1-13: attribute \"a\": string required, but have tuple. The value was set by -var o=….\n"},
		{"missing attribute", Inputs{Flags: vars("o={}")}, "",
			"main.tf:6,1: Wrong type of value: The value of variable \"o\" does not have the type declared at main.tf:6,1-13: attribute \"a\" is required. The value was set by -var o=….\n"},
		{"reference", Inputs{Flags: vars("l=[a]")}, "",
			"<value for var.l>:1,2: Variables not allowed: A value for a variable cannot refer to anything. To give a text, put it in quotes. The value was set by -var l=….\n"},
		{"syntax", Inputs{Flags: vars("l=[1")}, "",
			"<value for var.l>:1,1: Unterminated tuple constructor expression: There is no corresponding closing bracket before the end of the file. This may be caused by incorrect bracket nesting elsewhere in this file. The value was set by -var l=….\n"},
		{"function", Inputs{}, "-- terraform.tfvars --\ns = upper(\"x\")\n",
			"terraform.tfvars:1,5: Function calls not allowed: Functions may not be called here.\n"},
		{"environment", Inputs{Environ: []string{"TF_VAR_b=perhaps"}}, "",
			"main.tf:4,1: Wrong type of value: The value of variable \"b\" does not have the type declared at main.tf:4,1-13: a bool is required. The value was set by the environment variable TF_VAR_b.\n"},
		{"null", Inputs{}, "-- terraform.tfvars --\nnonull2 = null\n",
			"terraform.tfvars:1,11: Value is null: The variable \"nonull2\", declared at main.tf:14,1-19, has nullable = false and no default, so it needs a value.\n"},
		{"no such file", Inputs{Flags: vars("@nowhere.tfvars")}, "",
			"nowhere.tfvars:1,1: File of values cannot be read: nowhere.tfvars cannot be read: there is no such file.\n"},
		{"binary", Inputs{}, "-- terraform.tfvars --\n\x00\n",
			"terraform.tfvars:1,1: File is no text: terraform.tfvars cannot be read as configuration. It contains a NUL byte, so it is probably a binary file.\n"},
		{"blocks", Inputs{}, "-- terraform.tfvars --\nvariable \"s\" {}\n",
			"terraform.tfvars:1,1: Unexpected \"variable\" block: A file of values has lines of the form NAME = VALUE and no blocks. Declarations belong into a file that ends in .tf; terraform.tfvars only gives values.\n"},
		{"deep -var", Inputs{Flags: vars("l=" + strings.Repeat("[", 200_000))}, "",
			"<value for var.l>:1,1000: Nested too deeply: Here the configuration has more than 1000 brackets, blocks and templates within each other. Look for brackets that are never closed, or split the expression with local values. The value was set by -var l=….\n"},
		{"deep file", Inputs{}, "-- terraform.tfvars.json --\n{\"l\": " + strings.Repeat("[", 200_000) + "\n",
			"terraform.tfvars.json:1,1006: Nested too deeply: Here the configuration has more than 1000 brackets within each other. Look for brackets that are never closed, or split the expression with local values.\n"},
	}
	root := rootOf(t, variables)
	for _, c := range cases {
		files := archive(c.files)
		if len(files) == 0 {
			files = map[string][]byte{}
		}
		c.in.Source, c.in.Dir = InMemory(files), "."
		_, _, diags := Values(root, c.in, NewFiles())
		if diff := cmp.Diff(c.want, report(diags)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestMissing(t *testing.T) {
	root := rootOf(t, "variable \"b\" {}\nvariable \"a\" {\n  type = number\n}\nvariable \"c\" {\n  default = 1\n}\n")
	_, missing, diags := Values(root, Inputs{Source: InMemory(nil), Dir: "."}, NewFiles())
	if len(missing) != 2 || missing[0].Name != "a" || len(diags) > 0 {
		t.Fatal(missing, diags)
	}
	got := report(MissingDiagnostics(missing))
	want := "main.tf:2,1: No value for required variable: The variable \"a\" has no default. Give it a value with -var a=…, " +
		"in a file terraform.tfvars or one named with -var-file, or in the environment as TF_VAR_a.\n"
	if !strings.HasPrefix(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	// A wrong value is one mistake, not also a missing one.
	_, missing, diags = Values(root, Inputs{Flags: vars("a=x", "b=1")}, NewFiles())
	if len(missing) != 0 || len(diags) != 1 {
		t.Fatal(missing, report(diags))
	}
}

// TestSecretValuesQuoted looks at what messages could quote of values that
// are wrong.
func TestSecretValuesQuoted(t *testing.T) {
	root := rootOf(t, `
variable "secret" {
  type      = string
  sensitive = true
}
variable "passing" {
  type      = object({ a = string })
  ephemeral = true
}
variable "open" { type = string }
`)
	for text, want := range map[string]string{
		"open = [\"shown\"]\nsecret = [\"hunter2\",\n  \"hunter2\"]\npassing = \"hunter2\"\n": "open = [\"shown\"]\nsecret = ***********\n  **********\npassing = *********\n",
		"open = \"shown\nsecret = \"hunter2\n hunter2\nopen = \"shown\n":                      "open = \"shown\nsecret = ********\n *******\nopen = \"shown\n",
		"secrte = \"hunter2\"\n": "secrte = *********\n",
		"secret":                 "secret",
		"secret=":                "secret=",
	} {
		files := NewFiles()
		in := Inputs{Source: InMemory(map[string][]byte{"main.tf": nil, "x.auto.tfvars": []byte(text)}), Dir: "."}
		if _, _, diags := Values(root, in, files); len(diags) == 0 {
			t.Errorf("%q is taken", text)
		}
		if got := string(files.Content()["x.auto.tfvars"]); got != want {
			t.Errorf("of %q messages quote\n%s", text, cmp.Diff(want, got))
		}
	}
	files := NewFiles()
	in := Inputs{Flags: vars("secret=hunter2", "passing={ a = \"hunter2", "open=shown"), Environ: []string{"TF_VAR_passing=hunter2"},
		Source: InMemory(map[string][]byte{"x.auto.tfvars.json": []byte(`{"open":"", "secret": "hunter2" "x"}`)}), Dir: "."}
	Values(root, in, files)
	for name, content := range files.Content() {
		if strings.Contains(string(content), "hunter2") {
			t.Errorf("of %s messages quote %s", name, content)
		}
	}
	if got := string(files.Content()["<value for var.open>"]); got != "shown" {
		t.Errorf("of what is not sensitive messages quote %q", got)
	}
}
