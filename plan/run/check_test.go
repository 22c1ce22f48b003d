package run_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
)

// results is check results in a line an object, for comparing.
func results(list []state.CheckResult) string {
	var lines []string
	for _, r := range list {
		line := fmt.Sprintf("%s %s", r.Config, r.Status)
		for _, o := range r.Objects {
			line += fmt.Sprintf("; %s %s", o.Address, o.Status)
			for _, m := range o.Messages {
				line += fmt.Sprintf(" (%s)", m)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// warnings are the diagnostics, none of which may be an error.
func warnings(t *testing.T, diags hcl.Diagnostics) string {
	t.Helper()
	if diags.HasErrors() {
		t.Fatal(text(diags))
	}
	var lines []string
	for _, d := range diags {
		lines = append(lines, d.Summary+": "+d.Detail)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

const checkedChild = `
variable "k" {
  validation {
    condition     = length(var.k) == 1
    error_message = "Too long."
  }
}
check "inner" {
  assert {
    condition     = var.k == "p"
    error_message = "k is ${var.k}"
  }
}
`

const checkedRoot = `
resource "shelf_thing" "a" {
  count = 2
  name  = "a${count.index}"
  lifecycle {
    precondition {
      condition     = count.index < 5
      error_message = "pre"
    }
    postcondition {
      condition     = self.id != "never"
      error_message = "post"
    }
  }
}
resource "shelf_thing" "none" {
  count = 0
  name  = "none"
  lifecycle {
    precondition {
      condition     = count.index < 5
      error_message = "pre"
    }
  }
}
module "m" {
  source   = "./m"
  for_each = toset(["p", "q"])
  k        = each.key
}
check "late" {
  assert {
    condition     = shelf_thing.a[0].id == "never"
    error_message = "a is ${shelf_thing.a[0].name}"
  }
}
output "o" {
  value = 1
  precondition {
    condition     = shelf_thing.a[1].id != "x"
    error_message = "out"
  }
}
`

func TestChecks(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", checkedRoot, "m/main.tf", checkedChild))
	p, _, diags := w.apply(plan.Normal)
	const before = `check.late unknown; check.late unknown
module.m.check.inner fail; module.m["p"].check.inner pass; module.m["q"].check.inner fail (k is q)
module.m.var.k pass; module.m["p"].var.k pass; module.m["q"].var.k pass
output.o unknown; output.o unknown
shelf_thing.a unknown; shelf_thing.a[0] unknown; shelf_thing.a[1] unknown
shelf_thing.none pass`
	if got := results(p.Checks); got != before {
		t.Errorf("the plan has\n%s\nwant\n%s", got, before)
	}
	if got, want := warnings(t, diags), `Check block assertion failed: a is a0
Check block assertion failed: k is q
Check block assertion failed: k is q
Check block assertion known after apply: The condition depends on values that are not known yet; the apply decides it.`; got != want {
		t.Errorf("warnings\n%s\nwant\n%s", got, want)
	}
	after := strings.NewReplacer("check.late unknown; check.late unknown", "check.late fail; check.late fail (a is a0)", "unknown", "pass").Replace(before)
	if got := results(w.open().State().CheckResults()); got != after {
		t.Errorf("the state has\n%s\nwant\n%s", got, after)
	}
	again, diags := w.plan(plan.Normal)
	if got := warnings(t, diags); again.Changed() || len(diags) != 2 {
		t.Errorf("planned again: %s\n%s", summary(again), got)
	}
	// What a plan says of checks goes through its file.
	var file bytes.Buffer
	if err := plan.Encode(&file, p, fileKey()); err != nil {
		t.Fatal(err)
	}
	read, err := plan.Decode(bytes.NewReader(file.Bytes()), int64(file.Len()), fileKey())
	if err != nil || !state.EqualChecks(read.Checks, p.Checks) {
		t.Errorf("from its file, the plan has\n%s\n%v", results(read.Checks), err)
	}
	// Nothing but a check's result changes: it is stored all the same.
	w.must(w.config("main.tf", strings.Replace(checkedRoot, `== "never"`, `!= "never"`, 1), "m/main.tf", checkedChild))
	w.applied(plan.Normal)
	if got := results(w.open().State().CheckResults()); !strings.HasPrefix(got, "check.late pass; check.late pass\n") {
		t.Errorf("the state has\n%s", got)
	}
	w.targets = []string{"shelf_thing.none"}
	if got := results(w.applied(plan.Normal).Checks); !strings.HasPrefix(got, "check.late unknown\nmodule.m.check.inner unknown\n") {
		t.Errorf("with a target the plan has\n%s", got)
	}
	w.targets = nil
	w.applied(plan.Destroy)
	if got := results(w.open().State().CheckResults()); strings.Contains(got, "pass") || strings.Contains(got, "fail") {
		t.Errorf("after destroying everything the state has\n%s", got)
	}
}

// TestCheckData follows a check's own data source: what is wrong with it is a
// warning, and it is read again by an apply that changes something.
func TestCheckData(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	config := thing("a", `value = "%"`) + `
check "c" {
  data "shelf_thing" "own" { id = "1" }
  assert {
    condition     = data.shelf_thing.own.value == "one"
    error_message = "value is ${data.shelf_thing.own.value}"
  }
}
`
	set := func(value string) { w.must(w.config("main.tf", strings.Replace(config, "%", value, 1))) }
	set("one")
	p, _, diags := w.apply(plan.Normal)
	if got, want := summary(p), "+ shelf_thing.a\n<= data.shelf_thing.own read_because_check_nested"; got != want {
		t.Errorf("planned\n%s\nwant\n%s", got, want)
	}
	if got := warnings(t, diags); got != "No such thing: " && !strings.HasPrefix(got, "No such thing") {
		t.Errorf("warnings: %s", got)
	}
	if got := results(p.Checks); got != "check.c fail; check.c fail (No such thing: )" {
		t.Errorf("the plan has %s", got)
	}
	if got := results(w.open().State().CheckResults()); got != "check.c pass; check.c pass" {
		t.Errorf("the state has %s (%s)", got, s)
	}
	again := w.applied(plan.Normal)
	if again.Changed() || len(again.Ops) != 0 {
		t.Errorf("a check alone makes a plan: %s", summary(again))
	}
	set("two")
	_, _, diags = w.apply(plan.Normal)
	if got := warnings(t, diags); got != "Check block assertion failed: value is two" {
		t.Errorf("warnings: %s", got)
	}
	// It is gone, and nothing else changes.
	s.things["9"] = s.things["1"]
	delete(s.things, "1")
	w.must(w.config("main.tf", config[strings.Index(config, "check"):]))
	if p := w.applied(plan.RefreshOnly); results(p.Checks) != "check.c fail; check.c fail (No such thing: )" {
		t.Errorf("the plan has %s", results(p.Checks))
	}
	w.must(w.config("main.tf", ""))
	w.applied(plan.Normal)
	if list := w.open().State().Instances(); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

func TestCheckMistakes(t *testing.T) {
	check := func(condition, message string) string {
		return "check \"c\" {\n  assert {\n    condition = " + condition + "\n    error_message = " + message + "\n  }\n}\n"
	}
	own := "check \"d\" {\n  data \"shelf_thing\" \"own\" { id = \"1\" }\n  assert {\n    condition = data.shelf_thing.own.id != \"\"\n    error_message = \"m\"\n  }\n}\n"
	cases := []struct{ name, config, want string }{
		{"faulty condition", "locals { l = [] }\n" + check("local.l[0] == 1", `"m"`), "Invalid index"},
		{"no boolean", "locals { l = [] }\n" + check("local.l", `"m"`), "Invalid condition result"},
		{"undeclared", check("local.nothing", `"m"`), "Reference to undeclared local value"},
		{"another check's data", own + check("data.shelf_thing.own.id == 1", `"m"`), `belongs to the check "d"`},
		{"a check's data outside", own + "output \"o\" { value = data.shelf_thing.own.id }\n", "Reference to a check's own data source"},
		{"a check's data in depends_on", own + thing("a", "depends_on = [data.shelf_thing.own]"), "Reference to a check's own data source"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			s.things["1"] = map[string]cty.Value{"value": cty.StringVal("v")}
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", c.config))
			_, diags := w.plan(plan.Normal)
			if !diags.HasErrors() || !strings.Contains(text(diags), c.want) {
				t.Errorf("planned with\n%s\nwant an error with\n%s", text(diags), c.want)
			}
			diags = plan.Validate(context.Background(), w.request(w.open(), plan.Normal))
			if strings.HasPrefix(c.name, "a") && !strings.Contains(text(diags), c.want) {
				t.Errorf("validated with\n%s\nwant an error with\n%s", text(diags), c.want)
			}
		})
	}
}
