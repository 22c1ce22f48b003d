package run_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
)

func thing(name, rest string) string {
	return "resource \"shelf_thing\" \"" + name + "\" {\n  name = \"" + name + "\"\n" + rest + "\n}\n"
}

// TestOrder looks at the order in which the provider was called.
func TestOrder(t *testing.T) {
	cases := []struct {
		name, before, after string
		mode                plan.Mode
		want                string // of the second apply
	}{
		{
			name:   "destroy goes backwards",
			before: thing("a", "") + thing("b", "value = shelf_thing.a.id") + thing("c", "value = shelf_thing.b.id"),
			after:  "", want: "delete c, delete b, delete a",
		},
		{
			name:   "dependencies through locals, modules and depends_on",
			before: thing("a", "") + "locals { x = shelf_thing.a.id }\n" + thing("b", "value = local.x") + thing("c", "depends_on = [shelf_thing.b]"),
			mode:   plan.Destroy,
			after:  thing("a", "") + "locals { x = shelf_thing.a.id }\n" + thing("b", "value = local.x") + thing("c", "depends_on = [shelf_thing.b]"),
			want:   "delete c, delete b, delete a",
		},
		{
			name:   "users are detached before a deletion",
			before: thing("a", "") + thing("b", "value = shelf_thing.a.id"),
			after:  thing("b", `value = "own"`),
			want:   "update b, delete a",
		},
		{
			name:   "replacement: users follow",
			before: thing("a", "") + thing("b", "value = shelf_thing.a.id"),
			after:  strings.Replace(thing("a", ""), `name = "a"`, `name = "a2"`, 1) + thing("b", "value = shelf_thing.a.id"),
			want:   "delete a, create a2, update b",
		},
		{
			name:   "replacement of both: the user goes first and comes last",
			before: thing("a", "") + thing("b", "value = shelf_thing.a.id"),
			after: strings.Replace(thing("a", ""), `name = "a"`, `name = "a2"`, 1) +
				strings.Replace(thing("b", "value = shelf_thing.a.id"), `name = "b"`, `name = "b2"`, 1),
			want: "delete b, delete a, create a2, create b2",
		},
		{
			name:   "create before destroy",
			before: thing("a", "lifecycle { create_before_destroy = true }") + thing("b", "value = shelf_thing.a.id"),
			after:  strings.Replace(thing("a", "lifecycle { create_before_destroy = true }"), `name = "a"`, `name = "a2"`, 1) + thing("b", "value = shelf_thing.a.id"),
			want:   "create a2, update b, delete a",
		},
		{
			name:   "create before destroy forces what it depends on",
			before: thing("a", "") + thing("b", "value = shelf_thing.a.id\nlifecycle { create_before_destroy = true }"),
			after: strings.Replace(thing("a", ""), `name = "a"`, `name = "a2"`, 1) +
				strings.Replace(thing("b", "value = shelf_thing.a.id\nlifecycle { create_before_destroy = true }"), `name = "b"`, `name = "b2"`, 1),
			want: "create a2, create b2, delete b, delete a",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", c.before))
			w.applied(plan.Normal)
			s.log = nil
			w.must(w.config("main.tf", c.after))
			w.applied(c.mode)
			if got := strings.Join(s.log, ", "); got != c.want {
				t.Errorf("the provider was called:\n%s\nwant\n%s", got, c.want)
			}
			if c.mode == plan.Destroy {
				return
			}
			again, diags := w.plan(plan.Normal)
			w.must(diags)
			if again.Changed() {
				t.Errorf("the next plan is not empty:\n%s", summary(again))
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	cases := []struct{ name, config, want string }{
		{"unknown attribute", thing("a", "valu = 1"), "main.tf:3,1-5: Unsupported argument"},
		{"unknown nested attribute", "resource \"shelf_thing\" \"a\" {\n  name = \"a\"\n  nested = { sise = 1 }\n}", "main.tf:3,14-18: Unsupported argument: An argument named \"sise\" is not expected here. Did you mean \"size\"?"},
		{"unknown type", `resource "shelf_thong" "a" {}`, `Did you mean "shelf_thing"?`},
		{"undeclared resource", thing("a", "value = shelf_thing.bb.id") + thing("b", ""), "Did you mean shelf_thing.b?"},
		{"undeclared variable", "variable \"region\" {\n  default = 1\n}\n" + thing("a", "value = var.regoin"), "Did you mean var.region?"},
		{"undeclared local", thing("a", "value = local.x"), "Reference to undeclared local value"},
		{"cycle of two", thing("a", "value = shelf_thing.b.id") + thing("b", "value = shelf_thing.a.id"), "shelf_thing.b (main.tf line 5)"},
		{"a block of itself", thing("a", "value = shelf_thing.a.id"), "main.tf:3,9-22: Self-referential block"},
		{"cycle with itself", "locals {\n  a = local.a\n}\n", "This needs its own value"},
		{"cycle of locals", "locals {\n  a = local.b\n  b = local.a\n}\n", "local.b (main.tf line 3)"},
		{"wrong type", thing("a", "tags = 5"), "main.tf:3,"},
		{"provider's own check", thing("a", `value = "forbidden"`), "main.tf:3,9-20: Forbidden value"},
		{"count that is never known", thing("b", "count = length(timestamp())"), "Invalid count argument"},
		{"negative count", thing("b", "count = -1"), "must be between 0"},
		{"for_each of a list", thing("b", `for_each = ["a"]`), "toset()"},
		{"count outside of count", thing("b", "value = count.index"), `Reference to "count" in non-count context`},
		{"no provider", `resource "aws_instance" "a" {}`, "Provider not available"},
		{"precondition", thing("a", "lifecycle {\n precondition {\n condition = path.module == \"\"\n error_message = \"No luck.\"\n}\n}"), "No luck."},
		{"postcondition", thing("a", "value = \"v\"\nlifecycle {\n postcondition {\n condition = self.value == \"w\"\n error_message = \"Not w.\"\n}\n}"), "Not w."},
		{"sensitive output", "variable \"s\" {\n default = \"x\"\n sensitive = true\n}\noutput \"o\" { value = var.s }", "Output refers to sensitive values"},
		{"variable validation", "variable \"n\" {\n default = 3\n validation {\n condition = var.n < 3\n error_message = \"Too much.\"\n}\n}\n", "Too much."},
		{"missing variable", "variable \"n\" {}\n" + thing("a", "value = var.n"), "No value for required variable"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			diags := w.config("main.tf", c.config)
			if !diags.HasErrors() {
				_, _, diags = w.apply(plan.Normal)
			}
			errs := diags.Errs()
			if len(errs) != 1 {
				t.Fatalf("want exactly one error, got %d:\n%s", len(errs), text(diags))
			}
			if got := text(diags); !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant something with\n%s", got, c.want)
			}
			if diags[0].Subject == nil {
				t.Errorf("the diagnostic names no place: %s", text(diags))
			}
			if len(s.log) > 0 && c.name != "postcondition" {
				t.Errorf("the provider was called: %s", s)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "")+thing("b", "broken = \"partial\"")+thing("c", "value = shelf_thing.b.id")+thing("d", "")))
	_, report, diags := w.apply(plan.Normal)
	if !diags.HasErrors() || report.Complete() {
		t.Fatal("the failure was not reported")
	}
	rows := map[string]run.Outcome{}
	for _, o := range report.Outcomes {
		rows[o.Addr.String()] = o
	}
	if rows["shelf_thing.a"].Status != run.Done || rows["shelf_thing.d"].Status != run.Done {
		t.Errorf("what does not depend on the failure was not done: %+v", rows)
	}
	if o := rows["shelf_thing.b"]; o.Status != run.Failed || o.Because != "Half done" {
		t.Errorf("outcome of b: %+v", o)
	}
	if o := rows["shelf_thing.c"]; o.Status != run.Skipped || o.Because != "shelf_thing.b" {
		t.Errorf("outcome of c: %+v", o)
	}
	b, _ := address.ParseInstance("shelf_thing.b")
	if o := w.open().State().Current(b); o == nil || !o.Tainted {
		t.Errorf("the half-made object is not stored as tainted: %+v", o)
	}
	w.must(w.config("main.tf", thing("a", "")+thing("b", "")+thing("c", "value = shelf_thing.b.id")+thing("d", "")))
	if got, want := summary(w.applied(plan.Normal)), "-/+ shelf_thing.b replace_because_tainted\n+ shelf_thing.c"; got != want {
		t.Errorf("the next apply plans\n%s\nwant\n%s", got, want)
	}
	w.must(w.config("main.tf", thing("e", "broken = \"keep\"")))
	w.apply(plan.Normal)
	e, _ := address.ParseInstance("shelf_thing.e")
	if o := w.open().State().Current(e); o == nil || o.Tainted {
		t.Errorf("an object to be kept is missing or tainted: %+v", o)
	}
	w.must(w.config("main.tf", thing("f", "value = \"v\"\nbroken = \"lie\"")))
	_, _, diags = w.apply(plan.Normal)
	if !strings.Contains(text(diags), "inconsistent result") {
		t.Errorf("a lie was not noticed: %s", text(diags))
	}
}

func TestUpdateThatFails(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", `value = "one"`)))
	w.applied(plan.Normal)
	s.hook = func(what, name string) error { return errors.New("jammed") }
	w.must(w.config("main.tf", thing("a", `value = "two"`)))
	if _, _, diags := w.apply(plan.Normal); !strings.Contains(text(diags), "jammed") {
		t.Errorf("diagnostics: %s", text(diags))
	}
	w.must(w.config("main.tf", ""))
	if _, _, diags := w.apply(plan.Normal); !strings.Contains(text(diags), "jammed") {
		t.Errorf("diagnostics: %s", text(diags))
	}
	s.hook = nil
	w.must(w.config("main.tf", thing("a", `value = "two"`)))
	if got := summary(w.applied(plan.Normal)); got != "~ shelf_thing.a" {
		t.Errorf("planned %s", got)
	}
}

func TestDrift(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", `value = "one"`)+thing("b", "value = shelf_thing.a.id")+thing("idle", "")))
	w.applied(plan.Normal)
	s.things["1"]["value"] = cty.StringVal("touched")
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if got := summary(p); got != "~ shelf_thing.a" && got != "~ shelf_thing.b" && got != "~ shelf_thing.idle" {
		t.Errorf("planned %s", got)
	}
	if len(p.Drift) != 1 || p.Drift[0].Action != plan.Update {
		t.Errorf("drift: %+v", p.Drift)
	}
	if len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0].Address, "shelf_thing.") {
		t.Errorf("notes: %+v", p.Notes)
	}
	delete(s.things, "1")
	p = w.applied(plan.Normal)
	if !strings.Contains(summary(p), "+ shelf_thing.") || len(p.Drift) != 1 || p.Drift[0].Action != plan.Delete {
		t.Errorf("planned %s, drift %+v", summary(p), p.Drift)
	}
	// Refresh only: the state follows what is there.
	for id := range s.things {
		s.things[id]["stamp"] = cty.StringVal("new stamp")
	}
	p = w.applied(plan.RefreshOnly)
	if summary(p) != "" || len(p.Refreshed) != 3 {
		t.Errorf("refresh-only: %s, %d objects", summary(p), len(p.Refreshed))
	}
	p, diags = w.plan(plan.RefreshOnly)
	w.must(diags)
	if len(p.Refreshed) != 0 {
		t.Errorf("refresh-only again: %d objects", len(p.Refreshed))
	}
}

func TestLifecycle(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	rest := "tags = { a = \"1\", b = \"2\" }\nvalue = \"%\"\nlifecycle {\n  prevent_destroy = true\n  ignore_changes = [value, tags[\"a\"]]\n}"
	w.must(w.config("main.tf", thing("a", strings.Replace(rest, "%", "one", 1))))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", thing("a", strings.NewReplacer("%", "two", `a = "1"`, `a = "9"`).Replace(rest))))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if p.Changed() {
		t.Errorf("ignored changes are planned: %s", summary(p))
	}
	_, diags = w.plan(plan.Destroy)
	if !strings.Contains(text(diags), "Instance cannot be destroyed") {
		t.Errorf("prevent_destroy did not prevent: %s", text(diags))
	}
	w.must(w.config("main.tf", strings.Replace(thing("a", rest), `name = "a"`, `name = "z"`, 1)))
	_, diags = w.plan(plan.Normal)
	if !strings.Contains(text(diags), "Instance cannot be destroyed") {
		t.Errorf("prevent_destroy did not prevent a replacement: %s", text(diags))
	}
	w.replace = []string{"shelf_thing.a"}
	w.must(w.config("main.tf", thing("a", "value = \"one\"\n tags = { a = \"1\", b = \"2\" }")))
	if got := summary(w.applied(plan.Normal)); got != "-/+ shelf_thing.a replace_by_request" {
		t.Errorf("-replace plans %s", got)
	}
}

// TestReplaceRefused: what a provider refuses to change is made anew where that is
// asked for.
func TestReplaceRefused(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	stiff := func(value string) string { return thing("a", "broken = \"stiff\"\n value = \""+value+"\"") }
	w.must(w.config("main.tf", stiff("one")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", stiff("two")))
	if _, diags := w.plan(plan.Normal); !strings.Contains(text(diags), "Thing is stiff") {
		t.Errorf("a change that is refused: %s", text(diags))
	}
	w.replace = []string{"shelf_thing.a"}
	if got := summary(w.applied(plan.Normal)); got != "-/+ shelf_thing.a replace_by_request" {
		t.Errorf("-replace plans %s", got)
	}
	w.replace = nil
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if p.Changed() {
		t.Errorf("planned again: %s", summary(p))
	}
}

func TestDataSources(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	config := thing("a", `value = "one"`) + `
data "shelf_thing" "a" { id = shelf_thing.a.id }
output "v" { value = data.shelf_thing.a.value }
`
	w.must(w.config("main.tf", config))
	if got := summary(w.applied(plan.Normal)); got != "<= data.shelf_thing.a read_because_config_unknown\n+ shelf_thing.a\n+ output.v" &&
		got != "+ shelf_thing.a\n<= data.shelf_thing.a read_because_config_unknown\n+ output.v" {
		t.Errorf("planned %s", got)
	}
	if v := w.open().State().Outputs()["v"]; v.Value.AsString() != "one" {
		t.Errorf("output: %#v", v)
	}
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if p.Changed() {
		t.Errorf("planned again: %s", summary(p))
	}
	w.must(w.config("main.tf", strings.Replace(config, `"one"`, `"two"`, 1)+"\n"))
	w.must(w.config("main.tf", strings.NewReplacer(`"one"`, `"two"`, "{ id = shelf_thing.a.id }", "{\n id = shelf_thing.a.id\n depends_on = [shelf_thing.a]\n}").Replace(config)))
	w.applied(plan.Normal)
	if v := w.open().State().Outputs()["v"]; v.Value.AsString() != "two" {
		t.Errorf("a data source with depends_on was read too early: %#v", v)
	}
}

func TestModules(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	child := "variable \"v\" {\n  type = string\n}\n" + thing("in", "value = var.v") + "output \"id\" { value = shelf_thing.in.id }\n"
	root := `
provider "shelf" { prefix = "p" }
module "one" {
  source = "./child"
  v      = "x"
}
module "many" {
  source   = "./child"
  for_each = toset(["k1", "k2"])
  v        = "${each.key} after ${module.one.id}"
}
output "ids" { value = [for k, m in module.many : "${k}=${m.id}"] }
`
	w.must(w.config("main.tf", root, "child/main.tf", child))
	if got, want := summary(w.applied(plan.Normal)), `+ module.many["k1"].shelf_thing.in
+ module.many["k2"].shelf_thing.in
+ module.one.shelf_thing.in
+ output.ids`; got != want {
		t.Errorf("planned\n%s\nwant\n%s", got, want)
	}
	if s.things["p1"]["value"].AsString() != "x" {
		t.Errorf("the provider's configuration did not reach the child: %v", s.things)
	}
	w.targets = []string{`module.many["k1"]`}
	if got := summary(w.applied(plan.Destroy)); got != `- module.many["k1"].shelf_thing.in` {
		t.Errorf("destroying a target plans\n%s", got)
	}
	w.targets = []string{"module.one"}
	if got := summary(w.applied(plan.Destroy)); got != "- module.many[\"k2\"].shelf_thing.in\n- module.one.shelf_thing.in" {
		t.Errorf("destroying a target with users plans\n%s", got)
	}
	w.targets = []string{`module.many["k1"]`}
	if got := summary(w.applied(plan.Normal)); got != "+ module.many[\"k1\"].shelf_thing.in\n+ module.one.shelf_thing.in" {
		t.Errorf("a target with what it needs plans\n%s", got)
	}
	w.targets = nil
	w.must(w.config("main.tf", "provider \"shelf\" {}\n"))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if !strings.Contains(summary(p), "delete_because_no_resource_config") {
		t.Errorf("planned\n%s", summary(p))
	}
}

func TestInterrupt(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "")+thing("b", "value = shelf_thing.a.id")))
	stopping := make(chan struct{})
	s.hook = func(what, name string) error { close(stopping); return nil }
	report := w.applyStopping(stopping)
	if report.Complete() || report.Added != 1 || report.Outcomes[1].Status != run.Interrupted {
		t.Errorf("report: %+v", report)
	}
	s.hook = nil
	if got := summary(w.applied(plan.Normal)); got != "+ shelf_thing.b" {
		t.Errorf("the next apply plans %s", got)
	}
	if !slices.Equal(s.log, []string{"create a", "create b"}) {
		t.Errorf("the provider was called: %s", s)
	}
}

// TestGoneWhileReferredTo takes over that an object is gone, though an output
// and another object refer to it.
func TestGoneWhileReferredTo(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "")+thing("b", "value = shelf_thing.a.id")+"output \"o\" { value = shelf_thing.a.id }"))
	w.applied(plan.Normal)
	delete(s.things, "1")
	p := w.applied(plan.RefreshOnly)
	if len(p.Drift) != 1 || p.Drift[0].Action != plan.Delete {
		t.Errorf("drift: %+v", p.Drift)
	}
	a, _ := address.ParseInstance("shelf_thing.a")
	if w.open().State().Current(a) != nil {
		t.Error("what is gone is still in the state")
	}
}

// TestRejectedObject checks that nothing works with an object whose
// postcondition fails: no dependent, no output.
func TestRejectedObject(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "lifecycle {\n postcondition {\n condition = self.stamp == \"never\"\n error_message = \"Rejected.\"\n}\n}")+
		thing("b", "value = shelf_thing.a.id")+"output \"o\" { value = shelf_thing.a.id }"))
	_, report, diags := w.apply(plan.Normal)
	if text := text(diags); !strings.Contains(text, "Rejected.") || report.Added != 1 {
		t.Errorf("%d added, diagnostics: %s", report.Added, text)
	}
	if o, ok := w.open().State().Outputs()["o"]; ok {
		t.Errorf("the output was stored: %#v", o)
	}
	if slices.Contains(s.log, "create b") {
		t.Error("a dependent was made")
	}
}

// TestModuleFiles reads a file by path.module from within a module.
func TestModuleFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{
		"main.tf":   "module \"m\" { source = \"./m\" }\noutput \"o\" { value = module.m.o }\n",
		"m/main.tf": "output \"o\" { value = \"${file(\"${path.module}/x.txt\")} ${fileexists(\"m/x.txt\")}\" }\n",
		"m/x.txt":   "text",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, nil)
	var diags hcl.Diagnostics
	w.root, w.files, diags = modules.Load(modules.OnDisk(), ".")
	w.must(diags)
	w.applied(plan.Normal)
	if o := w.open().State().Outputs()["o"]; o.Value.AsString() != "text true" {
		t.Errorf("output: %#v", o.Value)
	}
}
