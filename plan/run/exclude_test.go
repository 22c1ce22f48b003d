package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/plan"
)

// hosts is a chain for_each by for_each, with somebody who needs all.
const hosts = `
variable "v" { default = "1" }
resource "shelf_thing" "host" {
  for_each = toset(["a", "b"])
  name     = "host-${each.key}"
  value    = var.v
}
resource "shelf_thing" "driver" {
  for_each = shelf_thing.host
  name     = "driver-${each.key}"
  value    = each.value.stamp
}
resource "shelf_thing" "node" {
  for_each = toset(["a", "b"])
  name     = "node-${each.key}"
  value    = shelf_thing.driver[each.key].stamp
}
resource "shelf_thing" "all" {
  name  = "all"
  value = join(",", [for h in shelf_thing.host : h.stamp])
}
resource "shelf_thing" "after" {
  name       = "after"
  depends_on = [shelf_thing.all]
}
resource "shelf_thing" "many" {
  count = length(shelf_thing.all.id)
  name  = "many"
}
module "m" {
  source = "./m"
  value  = shelf_thing.host["b"].stamp
}
resource "shelf_thing" "free" { name = "free" }
output "a" { value = shelf_thing.node["a"].stamp }
output "b" { value = shelf_thing.node["b"].stamp }
`

const hostsModule = `
variable "value" {}
resource "shelf_thing" "in" {
  name  = "in"
  value = var.value
}
`

func TestExclude(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", hosts, "m/main.tf", hostsModule))
	cases := []struct {
		name, exclude, want string
	}{
		{"one instance and what comes of it", `shelf_thing.host["b"]`, `+ shelf_thing.driver["a"]
+ shelf_thing.free
+ shelf_thing.host["a"]
+ shelf_thing.node["a"]
+ output.a`},
		{"a whole resource", `shelf_thing.host`, `+ shelf_thing.free`},
		{"a module", `module.m`, `+ shelf_thing.after
+ shelf_thing.all
+ shelf_thing.driver["a"]
+ shelf_thing.driver["b"]
+ shelf_thing.free
+ shelf_thing.host["a"]
+ shelf_thing.host["b"]
+ shelf_thing.node["a"]
+ shelf_thing.node["b"]
+ output.a
+ output.b`},
		{"the end of a chain", `shelf_thing.node["a"]`, `+ shelf_thing.after
+ shelf_thing.all
+ shelf_thing.driver["a"]
+ shelf_thing.driver["b"]
+ shelf_thing.free
+ shelf_thing.host["a"]
+ shelf_thing.host["b"]
+ shelf_thing.node["b"]
+ module.m.shelf_thing.in
+ output.b`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.tb, w.excludes = t, []string{c.exclude}
			p, diags := w.plan(plan.Normal)
			w.must(diags)
			if got := summary(p); got != c.want {
				t.Errorf("planned\n%s\nwant\n%s", got, c.want)
			}
			if p.Complete {
				t.Error("the plan says that it is complete")
			}
		})
	}
}

// TestExcludeStored leaves out what is there, while everything changes.
func TestExcludeStored(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", hosts, "m/main.tf", hostsModule))
	w.converge(2)
	outputs := w.open().State().Outputs()
	w.must(w.config("main.tf", strings.Replace(hosts, `default = "1"`, `default = "2"`, 1), "m/main.tf", hostsModule))
	w.excludes = []string{`shelf_thing.host["b"]`}
	got := w.converge(2)
	if want := []string{"~ shelf_thing.driver[\"a\"]\n~ shelf_thing.host[\"a\"]\n~ shelf_thing.node[\"a\"]\n~ output.a"}; !slices.Equal(got, want) {
		t.Errorf("planned %q", got)
	}
	after := w.open().State().Outputs()
	if !after["b"].Value.RawEquals(outputs["b"].Value) || after["a"].Value.RawEquals(outputs["a"].Value) {
		t.Errorf("outputs: %v, were %v", after, outputs)
	}
	if p, diags := w.plan(plan.Normal); diags.HasErrors() || p.Changed() || len(p.Deferred) > 0 {
		t.Errorf("again: %s %s", summary(p), text(diags))
	}

	// What is not in the configuration any more goes, but for what is excluded
	// and what that uses.
	w.must(w.config("main.tf", "provider \"shelf\" {}\n"))
	w.excludes = []string{`shelf_thing.driver["b"]`}
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if got := summary(p); strings.Contains(got, "driver[\"b\"]") || strings.Contains(got, "host") || strings.Contains(got, "node") ||
		!strings.Contains(got, "- shelf_thing.after") || !strings.Contains(got, "- module.m.shelf_thing.in") {
		t.Errorf("planned\n%s", got)
	}
	w.excludes = []string{`shelf_thing.host["b"]`}
	p = w.applied(plan.Destroy)
	if got := summary(p); strings.Contains(got, "host[\"b\"]") || !strings.Contains(got, "host[\"a\"]") || !strings.Contains(got, "node[\"b\"]") {
		t.Errorf("planned\n%s", got)
	}
	if len(s.things) != 1 {
		t.Errorf("left: %v", s.things)
	}
	w.excludes = nil
	w.applied(plan.Destroy)
}

func TestExcludeMistakes(t *testing.T) {
	w := newWorld(t, newShelf().catalogue())
	w.must(w.config("main.tf", thing("a", "")))
	w.excludes = []string{"shelf_thing"}
	if _, diags := w.plan(plan.Normal); !strings.Contains(text(diags), "Invalid -exclude address") {
		t.Errorf("diagnostics: %s", text(diags))
	}
	w.excludes, w.targets = []string{"shelf_thing.a"}, []string{"shelf_thing.a"}
	if _, diags := w.plan(plan.Normal); !strings.Contains(text(diags), "Targets and exclusions together") {
		t.Errorf("diagnostics: %s", text(diags))
	}
}
