package modules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

const overrideBase = `
-- main.tf --
terraform {
  required_version = ">= 99"
  required_providers {
    a = { source = "x/a", version = "1.0.0" }
    b = { source = "x/b" }
  }
  cloud {}
}
variable "v" {
  type        = number
  default     = 1
  description = "base"
}
locals {
  l = "base"
  m = "base"
}
output "o" {
  value       = "base"
  description = "base"
}
provider "a" {
  alias = "x"
  one   = "base"
  two   = "base"
}
resource "a_b" "r" {
  count = 2
  one   = "base"
  two   = "base"
  nested {
    name = "base 1"
  }
  nested {
    name = "base 2"
  }
  dynamic "other" {
    for_each = ["base"]
    content {
      name = other.value
    }
  }
  kept {
    name = "base"
  }
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [one]
    precondition {
      condition     = self.one != ""
      error_message = "base"
    }
  }
}
data "a_b" "d" {
  one = "base"
}
module "m" {
  source = "./m"
  one    = "base"
  two    = "base"
}
-- m/m.tf --
variable "one" {}
variable "two" {}
-- n/n.tf --
variable "one" {}
variable "two" {}
`

// The same changes, in both syntaxes and over two files.
var overrideFiles = map[string]string{
	"native": `
-- a_override.tf --
resource "a_b" "r" {
  two = "lost to the next file"
}
-- b_override.tf --
terraform {
  required_version = ">= 1.0"
  required_providers {
    a = { source = "y/a" }
    c = { source = "x/c" }
  }
  backend "local" {}
}
variable "v" {
  type    = string
  default = "over"
}
locals {
  l = "over"
}
output "o" {
  value = "over"
}
provider "a" {
  alias = "x"
  two   = "over"
}
provider "b" {
  one = "added"
}
resource "a_b" "r" {
  for_each = { k = 1 }
  provider = a.x
  two      = "over"
  nested {
    name = "over"
  }
  other {
    name = "over"
  }
  lifecycle {
    prevent_destroy = true
    ignore_changes  = [two]
  }
}
data "a_b" "d" {
  two = "over"
}
module "m" {
  source = "./n"
  two    = "over"
}
`,
	"json": `
-- a_override.tf --
resource "a_b" "r" {
  two = "lost to the next file"
}
-- b_override.tf.json --
{
  "//": "a comment",
  "terraform": [{"required_version": ">= 1.0"}, {
    "required_providers": {"a": {"source": "y/a"}, "c": {"source": "x/c"}},
    "backend": {"local": {}}
  }],
  "variable": {"v": {"type": "string", "default": "over"}},
  "locals": {"l": "over"},
  "output": {"o": {"value": "over"}},
  "provider": {"a": {"alias": "x", "two": "over"}, "b": [{"one": "added"}]},
  "resource": {"a_b": {"r": {
    "//": "another",
    "for_each": {"k": 1},
    "provider": "a.x",
    "two": "over",
    "nested": {"name": "over"},
    "other": [{"name": "over"}],
    "lifecycle": {"prevent_destroy": true, "ignore_changes": ["two"]}
  }}},
  "data": {"a_b": {"d": [{"two": "over"}]}},
  "module": {"m": {"source": "./n", "two": "over"}}
}
`,
}

func TestOverride(t *testing.T) {
	const want = `version >= 1.0; providers a=y/a b=x/b c=x/c; backend local
v: string "over" "base"
locals: over base
output: over "base"
a.x: one=base two=over
b: one=added
r: count=false for_each=true provider=a.x one=base two=over
  kept: base
  nested: over
  other: over
  lifecycle: true true 1 [two] 1
d: one=base two=over
m: ./n in n: one=base two=over
`
	for name, over := range overrideFiles {
		t.Run(name, func(t *testing.T) {
			m, _, diags := Load(InMemory(archive(overrideBase+over)), ".")
			if diags.HasErrors() {
				t.Fatal(report(diags))
			}
			if diff := cmp.Diff(want, overriddenModule(t, m)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func overriddenModule(t *testing.T, m *Module) string {
	t.Helper()
	var b strings.Builder
	r := m.Settings.RequiredProviders
	fmt.Fprintf(&b, "version %s; providers a=%s b=%s c=%s; backend %s\n",
		m.Settings.RequiredVersion[0].Text, r["a"].Source, r["b"].Source, r["c"].Source, m.Settings.Backend.Type)
	v := m.Variables["v"]
	fmt.Fprintf(&b, "v: %s %q %q\n", v.TypeString(), v.Default.AsString(), v.Description)
	fmt.Fprintf(&b, "locals: %s %s\n", constantText(t, m.Locals["l"].Expr), constantText(t, m.Locals["m"].Expr))
	fmt.Fprintf(&b, "output: %s %q\n", constantText(t, m.Outputs["o"].Value), m.Outputs["o"].Description)
	fmt.Fprintf(&b, "a.x: %s\n", arguments(t, m.Providers["a.x"].Body))
	fmt.Fprintf(&b, "b: %s\n", arguments(t, m.Providers["b"].Body))
	for _, res := range m.Resources {
		if res.Mode != 'd' && res.Name == "r" {
			fmt.Fprintf(&b, "r: count=%t for_each=%t provider=%s %s\n", res.Count != nil, res.ForEach != nil, res.Provider.Key(), arguments(t, res.Body))
			for _, block := range nestedBlocks(t, res.Body) {
				fmt.Fprintf(&b, "  %s: %s\n", block.Type, strings.TrimPrefix(arguments(t, block.Body), "name="))
			}
			l := res.Lifecycle
			fmt.Fprintf(&b, "  lifecycle: %t %t %d [%s] %d\n", l.CreateBeforeDestroy, l.PreventDestroy, len(l.IgnoreChanges), l.IgnoreChanges[0][0].(hcl.TraverseAttr).Name, len(l.Preconditions))
		}
	}
	for _, res := range m.Resources {
		if res.Name == "d" {
			fmt.Fprintf(&b, "d: %s\n", arguments(t, res.Body))
		}
	}
	c := m.Calls["m"]
	fmt.Fprintf(&b, "m: %s in %s: one=%s two=%s\n", c.Source, c.Module.Dir, constantText(t, c.Args["one"].Expr), constantText(t, c.Args["two"].Expr))
	return b.String()
}

func constantText(t *testing.T, expr hcl.Expression) string {
	t.Helper()
	v, diags := expr.Value(&hcl.EvalContext{})
	if diags.HasErrors() || v.Type() != cty.String {
		t.Fatal(diags, v)
	}
	return v.AsString()
}

// arguments reads a body as a provider would, by schema.
func arguments(t *testing.T, body hcl.Body) string {
	t.Helper()
	content, _, diags := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "one"}, {Name: "two"}, {Name: "name"}}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var all []string
	for name, attr := range content.Attributes {
		all = append(all, name+"="+constantText(t, attr.Expr))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func nestedBlocks(t *testing.T, body hcl.Body) hcl.Blocks {
	t.Helper()
	content, diags := body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "one", Required: true}, {Name: "two", Required: true}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "nested"}, {Type: "other"}, {Type: "kept"}, {Type: "dynamic", LabelNames: []string{"type"}}},
	})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	slices.SortStableFunc(content.Blocks, func(a, b *hcl.Block) int { return strings.Compare(a.Type, b.Type) })
	return content.Blocks
}

// A required argument may come from either file, but must come.
func TestOverrideRequired(t *testing.T) {
	for _, over := range []string{"-- override.tf --\noutput \"o\" {\n  value = 1\n}\n", "-- override.tf.json --\n{\"output\": {\"o\": {\"value\": 1}}}\n"} {
		if _, _, diags := Load(InMemory(archive("-- a.tf --\noutput \"o\" {}\n"+over)), "."); diags.HasErrors() {
			t.Error(report(diags))
		}
	}
	_, _, diags := Load(InMemory(archive("-- a.tf --\noutput \"o\" {}\n-- override.tf.json --\n{\"output\": {\"o\": {\"description\": \"x\"}}}\n")), ".")
	if len(diags) != 1 || diags[0].Summary != "Missing required argument" || diags[0].Subject.Filename != "a.tf" {
		t.Error(report(diags))
	}
}

func TestEscape(t *testing.T) {
	for name, text := range map[string]string{
		"native": "-- a.tf --\nresource \"a_b\" \"r\" {\n  one = \"1\"\n  _ {\n    two   = \"2\"\n    count = \"3\"\n  }\n}\n",
		"json":   `-- a.tf.json --` + "\n" + `{"resource": {"a_b": {"r": {"one": "1", "_": {"two": "2", "count": "3"}}}}}`,
	} {
		m, _, diags := Load(InMemory(archive(text)), ".")
		if diags.HasErrors() {
			t.Fatal(name, report(diags))
		}
		for _, r := range m.Resources {
			if got := arguments(t, r.Body); got != "one=1 two=2" || r.Count != nil {
				t.Errorf("%s: %s, count %v", name, got, r.Count)
			}
			content, _, _ := r.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "count"}}})
			if content.Attributes["count"] == nil {
				t.Errorf("%s: the provider's own count is lost", name)
			}
		}
	}
}

func TestTriggersInJSON(t *testing.T) {
	m, _, diags := Load(InMemory(archive(`-- a.tf.json --
{"resource": {"a_b": {"r": {"lifecycle": {"replace_triggered_by": ["a_b.c[each.key].id"], "ignore_changes": "all"}, "depends_on": ["a_b.c"]}}}}`)), ".")
	if diags.HasErrors() {
		t.Fatal(report(diags))
	}
	for _, r := range m.Resources {
		refs := r.Lifecycle.ReplaceTriggeredBy[0].Variables()
		if len(refs) != 2 || !r.Lifecycle.IgnoreAll || len(r.DependsOn) != 1 {
			t.Errorf("%v, %v, %v", refs, r.Lifecycle.IgnoreAll, r.DependsOn)
		}
	}
}
