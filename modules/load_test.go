package modules

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
)

var update = flag.Bool("update", false, "rewrite golden files")

// archive splits a text into files at lines such as "-- main.tf --".
func archive(text string) map[string][]byte {
	files := map[string][]byte{}
	name := ""
	for line := range strings.Lines(text) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(s, " --") {
			name = strings.TrimSuffix(s, " --")
			files[name] = []byte{}
			continue
		}
		files[name] = append(files[name], line...)
	}
	delete(files, "")
	return files
}

// report writes diagnostics a line each.
func report(diags hcl.Diagnostics) string {
	var b strings.Builder
	for _, d := range diags {
		place := "-"
		if d.Subject != nil {
			place = fmt.Sprintf("%s:%d,%d", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column)
		}
		if d.Severity == hcl.DiagWarning {
			b.WriteString("warning: ")
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", place, d.Summary, strings.ReplaceAll(d.Detail, "\n", " "))
	}
	return b.String()
}

// TestMistakes loads each file of testdata/mistakes: configuration files,
// then, after a line "----------", the diagnostics.
func TestMistakes(t *testing.T) {
	paths, _ := filepath.Glob("testdata/mistakes/*.txt")
	if len(paths) < 10 {
		t.Fatalf("only %d files", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			input, want, _ := strings.Cut(string(text), "----------\n")
			m, files, diags := Load(InMemory(archive(input)), ".")
			if m == nil || files == nil {
				t.Fatal("nil results")
			}
			got := report(diags)
			if *update {
				if err := os.WriteFile(path, []byte(input+"----------\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			for _, d := range diags {
				if d.Severity == hcl.DiagError && len(strings.Fields(d.Summary)) > 8 {
					t.Errorf("summary too long: %s", d.Summary)
				}
			}
		})
	}
}

const whole = `
-- main.tf --
terraform {
  required_version = ">= 1.0"
  required_providers {
    metal = {
      source                = "stokehq/metal"
      version               = "~> 1.0"
      configuration_aliases = [metal.b]
    }
    old = "1.2"
  }
  backend "local" {
    path = "x"
  }
}
provider "metal" {
  ssh {}
}
provider "metal" {
  alias = "a"
}
variable "v" {
  type        = object({ a = string, b = optional(number, 3) })
  default     = { a = 1 }
  description = "text"
  sensitive   = true
  nullable    = false
  validation {
    condition     = var.v.a != ""
    error_message = "Empty."
  }
}
variable "required" {}
locals {
  x = var.v.a
}
resource "metal_host" "h" {
  for_each   = local.x
  provider   = metal.a
  depends_on = [module.m, data.metal_x.y]
  address    = "1.2.3.4"
  lifecycle {
    create_before_destroy = true
    prevent_destroy       = true
    ignore_changes        = [address, tags["x"]]
    replace_triggered_by  = [metal_host.other[each.key].id]
    precondition {
      condition     = each.key != ""
      error_message = "a"
    }
    postcondition {
      condition     = self.x
      error_message = "b"
    }
  }
  disk {
    size = 1
  }
  dynamic "nic" {
    for_each = []
    content {}
  }
}
data "metal_x" "y" {
  count = 2
}
module "m" {
  source    = "./child"
  providers = { metal = metal.a }
  in        = 1
}
output "o" {
  value       = module.m.out
  sensitive   = true
  depends_on  = [metal_host.h]
  description = "d"
}
-- more.tf.json --
{
  "//": "a comment",
  "resource": {"metal_host": {"j": {"provider": "metal.a", "count": "${1 + 1}", "address": "x",
    "depends_on": ["metal_host.h"], "lifecycle": {"ignore_changes": "all"}}}},
  "variable": {"jv": {"type": "list(string)", "default": ["a"]}},
  "locals": {"jl": "${var.jv}"}
}
-- extra.stoke.hcl --
stoke {
  required_version = ">= 0.1"
}
-- z_override.tf --
resource "metal_host" "h" {
  address = "5.6.7.8"
  lifecycle {
    prevent_destroy = false
  }
  disk {
    size = 2
  }
}
locals {
  x = "over"
}
-- child/c.tf --
variable "in" {}
output "out" {
  value = var.in
}
-- ignored.hcl --
this is [ not ours
-- .hidden.tf --
nor [ this
`

func TestLoad(t *testing.T) {
	m, files, diags := Load(InMemory(archive(whole)), ".")
	if len(diags) > 0 {
		t.Fatal(report(diags))
	}
	names := []string{}
	for name := range files.Content() {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"child/c.tf", "extra.stoke.hcl", "main.tf", "more.tf.json", "z_override.tf"}, names); diff != "" {
		t.Errorf("files:\n%s", diff)
	}
	s := m.Settings
	if len(s.RequiredVersion) != 2 || s.Backend.Type != "local" || s.RequiredProviders["old"].Version != "1.2" {
		t.Errorf("settings %+v", s)
	}
	if got := s.RequiredProviders["metal"]; got.Source != "stokehq/metal" || got.Version != "~> 1.0" || !slices.Equal(got.Aliases, []string{"metal.b"}) {
		t.Errorf("required provider %+v", got)
	}
	if m.Providers["metal"] == nil || m.Providers["metal.a"] == nil {
		t.Errorf("providers %v", m.Providers)
	}

	v := m.Variables["v"]
	want := cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("1"), "b": cty.NumberIntVal(3)})
	if !v.Default.RawEquals(want) || !v.Sensitive || v.Nullable || v.Required() || len(v.Validations) != 1 || v.Range.Start.Line != 21 {
		t.Errorf("variable %+v", v)
	}
	if v.Type.AttributeOptional("b") || !v.Constraint.AttributeOptional("b") {
		t.Errorf("type %#v, constraint %#v", v.Type, v.Constraint)
	}
	if !m.Variables["required"].Required() || m.Variables["jv"].Default.LengthInt() != 1 {
		t.Errorf("variables %v", m.Variables)
	}
	if v, _ := m.Locals["x"].Expr.Value(nil); v.AsString() != "over" || m.Locals["jl"] == nil {
		t.Errorf("locals %v", m.Locals)
	}
	if o := m.Outputs["o"]; !o.Sensitive || len(o.DependsOn) != 1 || o.Value == nil {
		t.Errorf("output %+v", o)
	}
	checkResources(t, m)

	call := m.Calls["m"]
	if call.Module == nil || call.Module.Dir != "child" || !slices.Equal(call.Module.Path, []string{"m"}) {
		t.Fatalf("call %+v", call)
	}
	if call.Args["in"] == nil || len(call.Args) != 1 || call.Providers["metal"].Key() != "metal.a" || call.Module.Variables["in"] == nil {
		t.Errorf("call %+v", call)
	}
}

func checkResources(t *testing.T, m *Module) {
	h := m.Resources[ResourceName{Type: "metal_host", Name: "h"}]
	l := h.Lifecycle
	if h.ForEach == nil || h.Count != nil || h.Provider.Key() != "metal.a" || len(h.DependsOn) != 2 || h.ModuleOwner != m {
		t.Errorf("resource %+v", h)
	}
	if !l.CreateBeforeDestroy || l.PreventDestroy || len(l.IgnoreChanges) != 2 || len(l.ReplaceTriggeredBy) != 1 ||
		len(l.Preconditions) != 1 || len(l.Postconditions) != 1 || l.IgnoreAll {
		t.Errorf("lifecycle %+v", l)
	}
	content, diags := h.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "address"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "disk"}, {Type: "dynamic", LabelNames: []string{"type"}}},
	})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if v, _ := content.Attributes["address"].Expr.Value(nil); v.AsString() != "5.6.7.8" {
		t.Errorf("address %#v", v)
	}
	if len(content.Blocks) != 2 {
		t.Errorf("blocks %v", content.Blocks)
	}

	j := m.Resources[ResourceName{Type: "metal_host", Name: "j"}]
	if j.Count == nil || !j.Lifecycle.IgnoreAll || j.Provider.Key() != "metal.a" || len(j.DependsOn) != 1 {
		t.Errorf("JSON resource %+v", j)
	}
	if attrs, diags := j.Body.JustAttributes(); diags.HasErrors() || len(attrs) != 1 {
		t.Errorf("JSON body %v %v", attrs, diags)
	}
	d := m.Resources[ResourceName{Mode: address.Data, Type: "metal_x", Name: "y"}]
	if d == nil || d.Count == nil || d.Provider.Key() != "metal" {
		t.Errorf("data %+v", d)
	}
}

// One folder may be called many times: the calls share what is the same.
func TestSharedFolder(t *testing.T) {
	files := archive(`
-- main.tf --
module "a" {
  source = "./mid"
}
module "b" {
  source = "./mid"
}
-- mid/x.tf --
module "c" {
  source = "../leaf"
}
resource "t_r" "x" {}
-- leaf/x.tf --
resource "t_r" "y" {}
`)
	m, _, diags := Load(InMemory(files), ".")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	a, b := m.Calls["a"].Module, m.Calls["b"].Module
	if got := b.Calls["c"].Module.Path; !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("path %v", got)
	}
	if got := a.Calls["c"].Module.Path; !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("path %v", got)
	}
	name := ResourceName{Type: "t_r", Name: "x"}
	if a.Resources[name].ModuleOwner != a || b.Resources[name].ModuleOwner != b {
		t.Error("resources do not know their module")
	}
}
