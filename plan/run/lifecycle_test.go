package run_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
)

// each is a shelf_thing with for_each over names and values.
func each(forEach, rest string) string {
	return "resource \"shelf_thing\" \"a\" {\n  for_each = " + forEach + "\n  name = each.key\n" + rest + "\n}\n"
}

func TestDynamicPreventDestroy(t *testing.T) {
	const kept = "lifecycle { prevent_destroy = contains(var.kept, each.key) }"
	const variable = "variable \"kept\" { default = [\"a\"] }\n"
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", variable+each(`toset(["a", "b"])`, kept)))
	w.applied(plan.Normal)

	_, diags := w.plan(plan.Destroy)
	if got := text(diags); !strings.Contains(got, `shelf_thing.a["a"] has lifecycle.prevent_destroy set`) || strings.Contains(got, `a["b"] has`) {
		t.Errorf("destroy: %s", got)
	}
	// An instance that for_each does not name any more still has its key.
	w.must(w.config("main.tf", variable+each(`toset(["a"])`, kept)))
	if got := summary(w.applied(plan.Normal)); got != `- shelf_thing.a["b"] delete_because_each_key` {
		t.Errorf("fewer: %s", got)
	}
	w.must(w.config("main.tf", variable+each(`toset([])`, kept)))
	if _, diags = w.plan(plan.Normal); !strings.Contains(text(diags), "Instance cannot be destroyed") {
		t.Errorf("none: %s", text(diags))
	}
	// But no value: nobody can tell, and it stays.
	w.must(w.config("main.tf", each(`{}`, "lifecycle { prevent_destroy = each.value }")))
	if _, diags = w.plan(plan.Normal); !strings.Contains(text(diags), "Invalid prevent_destroy value") || !strings.Contains(text(diags), "no longer exists") {
		t.Errorf("no value: %s", text(diags))
	}
	w.must(w.config("main.tf", strings.Replace(variable, `["a"]`, "[]", 1)+each(`toset([])`, kept)))
	w.applied(plan.Normal)
	if len(s.things) > 0 {
		t.Errorf("left: %v", s.things)
	}
}

// TestDynamicPreventDestroyInModules takes instances of a module away.
func TestDynamicPreventDestroyInModules(t *testing.T) {
	child := "variable \"kept\" { default = \"x\" }\nvariable \"name\" {}\n" + thing("in", "lifecycle { prevent_destroy = var.kept == \"yes\" }")
	root := func(keys, kept string) string {
		return "module \"m\" {\n  source = \"./m\"\n  for_each = toset(" + keys + ")\n  name = each.key\n  kept = each.key == \"" + kept + "\" ? \"yes\" : \"no\"\n}\n"
	}
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", root(`["a", "b"]`, "a"), "m/main.tf", child))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", root(`[]`, "a"), "m/main.tf", child))
	_, diags := w.plan(plan.Normal)
	if got := text(diags); !strings.Contains(got, `module.m["a"].shelf_thing.in has lifecycle.prevent_destroy set`) || strings.Contains(got, `m["b"].shelf_thing.in has`) {
		t.Errorf("planned with %s", got)
	}
	w.must(w.config("main.tf", root(`[]`, "z"), "m/main.tf", child))
	w.applied(plan.Normal)
	if len(s.things) > 0 {
		t.Errorf("left: %v", s.things)
	}
}

func TestDynamicCreateBeforeDestroy(t *testing.T) {
	config := func(name, user string) string {
		return "resource \"shelf_thing\" \"low\" {\n  count = 2\n  name = \"" + name + "${count.index}\"\n  lifecycle { create_before_destroy = count.index == 1 }\n}\n" +
			"resource \"shelf_thing\" \"user\" {\n  name = \"" + name + "\"\n  value = join(\" \", shelf_thing.low[*].id)\n" + user + "}\n"
	}
	const firm = "lifecycle { create_before_destroy = terraform.workspace == \"default\" }\n"
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", config("x", "")))
	w.applied(plan.Normal)
	// Each instance has its own order, unless something needs all of them.
	steps := []struct{ name, user, want string }{
		{"y", "", "-/+ shelf_thing.low[0]\n+/- shelf_thing.low[1]\n-/+ shelf_thing.user"},
		{"z", firm, "+/- shelf_thing.low[0]\n+/- shelf_thing.low[1]\n+/- shelf_thing.user"},
	}
	for _, step := range steps {
		w.must(w.config("main.tf", config(step.name, step.user)))
		before := slices.Sorted(maps.Keys(s.things))
		s.replaced = nil
		p := w.applied(plan.Normal)
		if slices.Sort(s.replaced); !slices.Equal(s.replaced, before) {
			t.Errorf("the provider was told that %v are replaced, not %v", s.replaced, before)
		}
		if got := strings.ReplaceAll(summary(p), " replace_because_cannot_update", ""); got != step.want {
			t.Errorf("planned\n%s\nwant\n%s", got, step.want)
		}
		if len(s.things) != 3 {
			t.Errorf("%d things are left", len(s.things))
		}
		again, diags := w.plan(plan.Normal)
		w.must(diags)
		if again.Changed() {
			t.Errorf("planned again: %s", summary(again))
		}
	}
}

func TestDynamicIgnoreChanges(t *testing.T) {
	cases := []struct {
		name, expr, vars string
		// ignored says whether a change of value, and of tags["x"], is.
		value, tag bool
	}{
		{"choice, taken", "var.on ? [value] : []", "true", true, false},
		{"choice, not taken", "var.on ? [value] : []", "false", false, false},
		{"choice of all", "(var.on ? all : [value])", "true", true, true},
		{"choice within a choice", `var.on ? (each.key == "k" ? [tags["x"], value] : []) : all`, "true", true, true},
		{"texts", `concat(["value"], var.on ? ["tags[\"x\"]"] : [])`, "true", true, true},
		{"for", `[for k in ["x"] : "tags[\"${k}\"]"]`, "true", false, true},
		{"names and templates", `[value, "tags[\"${each.value}\"]"]`, "true", true, true},
		{"text all", `var.on ? "all" : "value"`, "true", true, true},
		{"one text", `lower("VALUE")`, "true", true, false},
		{"a set", `toset(["value"])`, "true", true, false},
		{"nothing", `tolist([])`, "true", false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			config := func(v string) string {
				return "variable \"on\" { default = " + c.vars + " }\n" +
					each(`{ k = "x" }`, "value = \""+v+"\"\n tags = { x = \""+v+"\" }\n lifecycle { ignore_changes = "+c.expr+" }")
			}
			w.must(w.config("main.tf", config("one")))
			w.applied(plan.Normal)
			w.must(w.config("main.tf", config("two")))
			p, diags := w.plan(plan.Normal)
			w.must(diags)
			after := p.Changes[0].After
			if got := after.GetAttr("value").AsString() == "one"; got != c.value {
				t.Errorf("value ignored: %t", got)
			}
			if got := after.GetAttr("tags").Index(cty.StringVal("x")).AsString() == "one"; got != c.tag {
				t.Errorf("tags[\"x\"] ignored: %t", got)
			}
		})
	}
}

// TestDynamicIgnoreChangesApplied: an apply that has to plan again ignores the
// same.
func TestDynamicIgnoreChangesApplied(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	config := func(v string) string {
		return "variable \"on\" { default = true }\n" + thing("first", "value = \""+v+"\"") +
			"resource \"shelf_thing\" \"a\" {\n name = \"a\"\n value = \"" + v + "\"\n tags = { stamp = shelf_thing.first.stamp }\n lifecycle { ignore_changes = var.on ? [value] : [] }\n}\n"
	}
	w.must(w.config("main.tf", config("one")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", config("two")))
	if got := summary(w.applied(plan.Normal)); got != "~ shelf_thing.a\n~ shelf_thing.first" {
		t.Errorf("planned %s", got)
	}
	for _, thing := range s.things {
		if thing["name"].AsString() == "a" && thing["value"].AsString() != "one" {
			t.Errorf("not ignored: %v", thing)
		}
	}
}

func TestLifecycleMistakes(t *testing.T) {
	const variables = `
variable "secret" {
  default   = true
  sensitive = true
}
variable "once" {
  default   = true
  ephemeral = true
}
variable "nothing" {
  type    = bool
  default = null
}
`
	cases := []struct{ name, lifecycle, want string }{
		{"unknown", "prevent_destroy = shelf_thing.first.stamp == \"s\"", "known only after apply"},
		{"unknown, create", "create_before_destroy = shelf_thing.first.stamp == \"s\"", "Invalid create_before_destroy value"},
		{"unknown names", "ignore_changes = [for x in [shelf_thing.first.stamp] : x]", "Invalid ignore_changes value"},
		{"unknown choice", "ignore_changes = shelf_thing.first.stamp == \"s\" ? all : []", "known only after apply"},
		{"null", "prevent_destroy = var.nothing", "is null"},
		{"null choice", "ignore_changes = var.nothing ? all : []", "is null"},
		{"null name", "ignore_changes = concat([\"value\"], [null])", "is null"},
		{"literal null", "prevent_destroy = null", "Wrong type of argument"},
		{"type", "prevent_destroy = length(\"ab\")", "bool"},
		{"literal type", "prevent_destroy = \"maybe\"", "must be a bool"},
		{"type of the list", "ignore_changes = length(\"ab\")", "not number"},
		{"literal number", "ignore_changes = 5", "It must be a list"},
		{"a map", "ignore_changes = { a = upper(\"b\") }", "not object"},
		{"sensitive", "prevent_destroy = var.secret", "nonsensitive()"},
		{"sensitive, create", "create_before_destroy = var.secret", "nonsensitive()"},
		{"sensitive choice", "ignore_changes = var.secret ? all : []", "nonsensitive()"},
		{"ephemeral", "prevent_destroy = var.once", "ephemeral"},
		{"no such argument", "ignore_changes = [valuee]", `Did you mean "value"?`},
		{"a text", "ignore_changes = \"value\"", "It must be a list"},
		{"no such argument, nested", "ignore_changes = [nested.sise]", "Unsupported attribute in ignore_changes"},
		{"no such argument, by text", "ignore_changes = concat([\"valuee\"], [])", `Did you mean "value"?`},
		{"no path", "ignore_changes = concat([\"a b\"], [])", `"a b" does not name an argument`},
		{"a value in a list", "ignore_changes = [var.secret]", "write the list as an expression"},
		{"each without for_each", "prevent_destroy = each.key == \"a\"", "for_each"},
		{"self", "prevent_destroy = self.value == \"a\"", `Invalid "self" reference`},
		{"itself", "prevent_destroy = shelf_thing.a.value == \"a\"", "Cycle"},
		{"undeclared", "prevent_destroy = var.nope", "nope"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, newShelf().catalogue())
			diags := w.config("main.tf", variables+thing("first", "")+thing("a", "value = \"v\"\nlifecycle {\n"+c.lifecycle+"\n}"))
			if !diags.HasErrors() {
				_, diags = w.plan(plan.Normal)
			}
			if !diags.HasErrors() || !strings.Contains(text(diags), c.want) {
				t.Errorf("got\n%s\nwant something with\n%s", text(diags), c.want)
			}
		})
	}
}

// TestLifecycleUndecided: under a count that is not known yet, a lifecycle
// argument that rests on it waits with its instances.
func TestLifecycleUndecided(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("first", "")+
		"resource \"shelf_thing\" \"a\" {\n  count = length(shelf_thing.first.stamp)\n  name = \"a${count.index}\"\n  lifecycle { prevent_destroy = count.index == 0 }\n}\n"))
	if p := w.applied(plan.Normal); len(p.Deferred) != 1 {
		t.Fatalf("deferred: %v", p.Deferred)
	}
	w.applied(plan.Normal)
	_, diags := w.plan(plan.Destroy)
	if got := text(diags); !strings.Contains(got, "shelf_thing.a[0] has") || strings.Contains(got, "shelf_thing.a[1] has") {
		t.Errorf("destroy: %s", got)
	}
}
