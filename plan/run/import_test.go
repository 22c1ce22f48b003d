package run_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
)

func imported(to, id string, more ...string) string {
	return "\nimport {\n  to = " + to + "\n  id = " + id + "\n" + strings.Join(more, "\n") + "\n}\n"
}

func TestImport(t *testing.T) {
	tests := []struct {
		name, config string
		before       string // applied first
		want         string // the plan, and what is imported
		calls        []string
		err          string
	}{
		{name: "as it is", config: thing("a", "") + imported("shelf_thing.a", `"x"`), want: "shelf_thing.a importing x"},
		{name: "with a secret that is not stored", config: thing("a", `key = sensitive("k")`) + imported("shelf_thing.a", `"x"`), want: "shelf_thing.a importing x"},
		{name: "and changes", config: thing("a", "value = \"v\"") + imported("shelf_thing.a", `"x"`), want: "~ shelf_thing.a importing x", calls: []string{"update a"}},
		{name: "and is replaced", config: strings.Replace(thing("a", ""), `name = "a"`, `name = "b"`, 1) + imported("shelf_thing.a", `"x"`),
			want: "-/+ shelf_thing.a replace_because_cannot_update importing x", calls: []string{"delete a", "create b"}},
		{name: "for each", config: "resource \"shelf_thing\" \"a\" {\n for_each = { p = \"a\", q = \"c\", r = \"new\" }\n name = each.value\n}\n" +
			imported("shelf_thing.a[each.key]", "each.value", `for_each = { p = "x", q = "y" }`),
			want: "shelf_thing.a[\"p\"] importing x\nshelf_thing.a[\"q\"] importing y\n+ shelf_thing.a[\"r\"]", calls: []string{"create new"}},
		{name: "into modules", config: "module \"m\" {\n source = \"./m\"\n for_each = toset([\"p\"])\n}\n" +
			imported("module.m[each.key].shelf_thing.in", `"i"`, `for_each = toset(["p"])`),
			want: "module.m[\"p\"].shelf_thing.in importing i"},
		{name: "an id that is computed", config: "locals {\n  x = \"x\"\n}\n" + thing("a", "") + imported("shelf_thing.a", "local.x"), want: "shelf_thing.a importing x"},
		{name: "managed already", before: thing("new", ""), config: thing("new", "") + imported("shelf_thing.new", `"x"`)},
		{name: "what uses it", config: thing("a", "") + thing("u", "value = shelf_thing.a.stamp") + imported("shelf_thing.a", `"x"`),
			want: "shelf_thing.a importing x\n+ shelf_thing.u", calls: []string{"create u"}},
		{name: "an id that nobody knows", config: thing("a", "") + imported("shelf_thing.a", "timestamp()"), err: "known only after apply"},
		{name: "keys of something made now, for nothing", config: thing("n", "") + imported("shelf_thing.a", `"x"`, "for_each = toset([shelf_thing.n.id])"), err: "Import target is not configured"},
		{name: "a secret id", config: thing("a", "") + imported("shelf_thing.a", `sensitive("x")`), err: "Invalid import id"},
		{name: "no id", config: thing("a", "") + imported("shelf_thing.a", "null"), err: "Invalid import id"},
		{name: "empty id", config: thing("a", "") + imported("shelf_thing.a", `""`), err: "Invalid import id"},
		{name: "gone", config: thing("a", "") + imported("shelf_thing.a", `"gone"`), err: "Object to import does not exist"},
		{name: "nothing", config: thing("a", "") + imported("shelf_thing.a", `"nothing"`), err: "Import found nothing"},
		{name: "several", config: thing("a", "") + imported("shelf_thing.a", `"several"`), err: "Import found several objects"},
		{name: "refused", config: thing("a", "") + imported("shelf_thing.a", `"refused"`), err: "Shelf refused"},
		{name: "not configured", config: imported("shelf_thing.a", `"x"`), err: "-generate-config-out"},
		{name: "no such instance", config: thing("a", "count = 1") + imported("shelf_thing.a[3]", `"x"`), err: "does not cover it"},
		{name: "twice", config: thing("a", "") + imported("shelf_thing.a", `"x"`) + imported("shelf_thing.a", `"y"`), err: "Several imports to one address"},
		{name: "one address for all", config: thing("a", "") + imported("shelf_thing.a", "each.key", `for_each = toset(["x", "y"])`), err: "Several imports to one address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			if tt.before != "" {
				w.must(w.config("main.tf", tt.before))
				w.applied(plan.Normal)
				s.log = nil
			}
			s.put("x", "a", nil)
			s.put("y", "c", nil)
			s.put("i", "in", nil)
			w.must(w.config("main.tf", tt.config, "m/main.tf", thing("in", "")))
			p, report, diags := w.apply(plan.Normal)
			if tt.err != "" {
				if !diags.HasErrors() || !strings.Contains(text(diags), tt.err) {
					t.Fatalf("no error %q but %s", tt.err, text(diags))
				}
				if len(s.log) > 0 || len(w.ids()) > 0 {
					t.Errorf("something was done: %v", s.log)
				}
				return
			}
			w.must(diags)
			if got := importFates(p); got != tt.want {
				t.Errorf("planned\n%s\nwant\n%s", got, tt.want)
			}
			if report != nil && report.Imported != p.Imports() {
				t.Errorf("%d imported, %d planned", report.Imported, p.Imports())
			}
			if diff := cmp.Diff(tt.calls, s.log); diff != "" {
				t.Error(diff)
			}
			again, diags := w.plan(plan.Normal)
			w.must(diags)
			if again.Changed() {
				t.Errorf("the next plan is\n%s", importFates(again))
			}
		})
	}
}

func importFates(p *plan.Plan) string {
	lines := strings.Split(fates(p), "\n")
	n := 0
	for _, c := range p.Changes {
		if c.Idle() {
			continue
		}
		if c.Importing != "" {
			lines[n] += " importing " + c.Importing
		}
		n++
	}
	return strings.Join(lines, "\n")
}

// TestImportNotAlways leaves imports out of plans that only look, destroy or
// cover something else.
func TestImportNotAlways(t *testing.T) {
	s := newShelf()
	s.put("x", "a", nil)
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "")+thing("b", "")+imported("shelf_thing.a", `"x"`)))
	for _, mode := range []plan.Mode{plan.RefreshOnly, plan.Destroy} {
		p, diags := w.plan(mode)
		w.must(diags)
		if p.Imports() != 0 {
			t.Errorf("mode %d imports", mode)
		}
	}
	w.targets = []string{"shelf_thing.b"}
	p := w.applied(plan.Normal)
	if got := importFates(p); got != "+ shelf_thing.b" {
		t.Error(got)
	}
}

// TestImportPlanFile carries an import, and what was written for it, in a file.
func TestImportGenerated(t *testing.T) {
	s := newShelf()
	s.put("x", "a", map[string]cty.Value{
		"value": cty.StringVal("two\nlines ${x}"), "tags": cty.MapVal(map[string]cty.Value{"k v": cty.StringVal("t")}),
		"secret": cty.StringVal("hidden"), "nested": cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(3)}),
	})
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", imported("shelf_thing.a", `"x"`)))
	w.generate = "out.tf"
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	want := `# Written by stoke for imported objects. Look it over, and move it to where it
# belongs.

# imported by the id "x"
resource "shelf_thing" "a" {
  name = "a"
  nested = {
    size = 3
  }
  secret = null # sensitive
  tags = {
    "k v" = "t"
  }
  value = "two\nlines $${x}"
}
`
	if diff := cmp.Diff(want, string(p.Generated)); diff != "" {
		t.Error(diff)
	}
	if got := importFates(p); got != "~ shelf_thing.a importing x" { // the secret has to be put in
		t.Error(got)
	}
	read := w.throughFile(p)
	if importFates(read) != importFates(p) || read.Changes[0].Generated != p.Changes[0].Generated || p.Changes[0].Generated == "" {
		t.Errorf("read back %s", importFates(read))
	}
	if string(read.Files["out.tf"]) != want {
		t.Errorf("the plan file has %q", read.Files["out.tf"])
	}
}

// TestImportLater leaves an import whose id is not known yet to the next
// round: the object must not be made in the meantime.
func TestImportLater(t *testing.T) {
	for name, block := range map[string]string{
		"id":   imported("shelf_thing.a", "shelf_thing.n.stamp"),
		"keys": imported("shelf_thing.a", "each.key", "for_each = toset([shelf_thing.n.stamp])"),
	} {
		s := newShelf()
		s.put("s1", "a", nil)
		w := newWorld(t, s.catalogue())
		w.must(w.config("main.tf", thing("a", "")+thing("n", "")+block))
		first := w.applied(plan.Normal)
		if got := importFates(first); got != "+ shelf_thing.n" || len(first.Deferred) != 1 {
			t.Errorf("%s: first %s, deferred %v", name, got, first.Deferred)
		}
		second := w.applied(plan.Normal)
		if got := importFates(second); got != "shelf_thing.a importing s1" {
			t.Errorf("%s: then %s", name, got)
		}
		if diff := cmp.Diff([]string{"create n"}, s.log); diff != "" {
			t.Error(diff)
		}
	}
}
