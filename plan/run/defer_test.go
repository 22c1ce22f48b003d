package run_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/plan"
)

// deferrals is what a plan defers, a line each.
func deferrals(p *plan.Plan) string {
	var lines []string
	for _, d := range p.Deferred {
		line := fmt.Sprintf("%s %s %s", verbs[d.Change.Action], d.Change.Addr, d.Reason)
		if d.Argument != "" {
			line += " " + d.Argument + " of " + d.Subject
		}
		lines = append(lines, line+" because of "+strings.Join(d.Because, ", "))
	}
	return strings.Join(lines, "\n")
}

// converge applies round after round and returns what each has planned.
func (w *world) converge(most int) []string {
	w.tb.Helper()
	var rounds []string
	for range most {
		p := w.applied(plan.Normal)
		rounds = append(rounds, summary(p))
		if len(p.Deferred) == 0 {
			return rounds
		}
	}
	w.tb.Fatalf("after %d rounds something is still deferred:\n%s", most, strings.Join(rounds, "\n---\n"))
	return nil
}

const chain = `
resource "terraform_data" "a" { input = 2 }
resource "terraform_data" "b" {
  count = terraform_data.a.output
  input = "b${count.index}"
}
resource "terraform_data" "c" {
  for_each = { for b in terraform_data.b : b.output => b.id }
  input    = each.value
}
output "n" { value = length(terraform_data.b) }
output "c" { value = keys(terraform_data.c) }
output "a" { value = terraform_data.a.output }
`

// TestChain is a count that comes from another's result, twice in a row.
func TestChain(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.config("main.tf", chain))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	want := `+ terraform_data.b[*] instance_count_unknown count of terraform_data.b because of terraform_data.a
+ terraform_data.c[*] instance_count_unknown for_each of terraform_data.c because of terraform_data.b`
	if got := deferrals(p); got != want {
		t.Errorf("deferred\n%s\nwant\n%s", got, want)
	}
	if p.Complete || !p.Changed() {
		t.Errorf("complete %v, changed %v", p.Complete, p.Changed())
	}
	got := w.converge(3)
	if want := []string{
		"+ terraform_data.a\n+ output.a\n+ output.c\n+ output.n",
		"+ terraform_data.b[0]\n+ terraform_data.b[1]\n+ output.c\n+ output.n",
		"+ terraform_data.c[\"b0\"]\n+ terraform_data.c[\"b1\"]\n+ output.c",
	}; !slices.Equal(got, want) {
		t.Errorf("rounds:\n%s", strings.Join(got, "\n---\n"))
	}
	if p, diags = w.plan(plan.Normal); diags.HasErrors() || p.Changed() || len(p.Deferred) > 0 {
		t.Errorf("the next plan is not empty: %s %s", summary(p), text(diags))
	}
	// What is there stays while its number is not known.
	w.must(w.config("main.tf", strings.Replace(chain, "input = 2", "input = 1", 1)))
	p, diags = w.plan(plan.Normal)
	w.must(diags)
	if got := summary(p); got != "~ terraform_data.a\n~ output.a" {
		t.Errorf("planned\n%s", got)
	}
	got = w.converge(3)
	if len(got) != 2 || got[1] != "- terraform_data.b[1] delete_because_count_index\n- terraform_data.c[\"b1\"] delete_because_each_key\n~ output.c\n~ output.n" {
		t.Errorf("rounds:\n%s", strings.Join(got, "\n---\n"))
	}
	w.applied(plan.Destroy)
	if left := w.open().State().Instances(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestDeferredModules repeats a module by what is not known yet.
func TestDeferredModules(t *testing.T) {
	w := newWorld(t, nil)
	child := `
variable "n" { type = number }
resource "terraform_data" "in" {
  count = var.n
  input = "in"
}
module "deep" { source = "../deep" }
output "ids" { value = terraform_data.in[*].output }
`
	root := `
resource "terraform_data" "names" { input = { x = 1, y = 2 } }
module "m" {
  source   = "./child"
  for_each = terraform_data.names.output
  n        = each.value
}
resource "terraform_data" "after" { input = "after" depends_on = [module.m] }
resource "terraform_data" "free" { input = "free" }
output "all" { value = { for k, m in module.m : k => m.ids } }
`
	root = strings.Replace(root, `" depends_on`, "\"\n  depends_on", 1)
	root = strings.Replace(root, `{ input = "after"`, "{\n  input = \"after\"", 1)
	root = strings.Replace(root, "[module.m] }", "[module.m]\n}", 1)
	deep := "resource \"terraform_data\" \"d\" {}\n"
	w.must(w.config("main.tf", root, "child/main.tf", child, "deep/main.tf", deep))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	want := `+ terraform_data.after deferred_prereq because of terraform_data.d, terraform_data.in
+ module.m[*].terraform_data.in[*] instance_count_unknown for_each of module.m because of terraform_data.names
+ module.m[*].module.deep.terraform_data.d instance_count_unknown for_each of module.m because of terraform_data.names`
	want = strings.Replace(want, "because of terraform_data.d, terraform_data.in", "because of module.m.module.deep.terraform_data.d, module.m.terraform_data.in", 1)
	if got := deferrals(p); got != want {
		t.Errorf("deferred\n%s\nwant\n%s", got, want)
	}
	if got := summary(p); got != "+ terraform_data.free\n+ terraform_data.names\n+ output.all" {
		t.Errorf("planned\n%s", got)
	}
	if got := w.converge(2); len(got) != 2 {
		t.Errorf("rounds:\n%s", strings.Join(got, "\n---\n"))
	}
	if n := len(w.open().State().Instances()); n != 8 {
		t.Errorf("%d objects", n)
	}
	// The objects below a module whose keys are unknown again stay.
	w.must(w.config("main.tf", strings.Replace(root, "y = 2", "y = 1", 1), "child/main.tf", child, "deep/main.tf", deep))
	p, diags = w.plan(plan.Normal)
	w.must(diags)
	if got := summary(p); got != "~ terraform_data.names" {
		t.Errorf("planned\n%s", got)
	}
	if got := w.converge(2); len(got) != 2 || got[1] != "- module.m[\"y\"].terraform_data.in[1] delete_because_count_index\n~ output.all" {
		t.Errorf("rounds:\n%s", strings.Join(got, "\n---\n"))
	}
	w.applied(plan.Destroy)
	if left := w.open().State().Instances(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestDeferredProvider leaves a provider alone whose configuration is not
// known yet, and what it makes or has made.
func TestDeferredProvider(t *testing.T) {
	s := newShelf()
	catalogue := s.catalogue()
	catalogue["terraform.io/builtin/terraform"] = newWorld(t, nil).catalogue["terraform.io/builtin/terraform"]
	w := newWorld(t, catalogue)
	config := "resource \"terraform_data\" \"p\" { input = \"pre\" }\nprovider \"shelf\" { prefix = terraform_data.p.output }\n"
	w.must(w.config("main.tf", config+thing("a", "")+thing("b", "value = shelf_thing.a.id")))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	want := `+ shelf_thing.a provider_config_unknown because of terraform_data.p
+ shelf_thing.b provider_config_unknown because of terraform_data.p`
	if got := deferrals(p); got != want {
		t.Errorf("deferred\n%s\nwant\n%s", got, want)
	}
	w.converge(2)
	if s.things["pre1"] == nil {
		t.Errorf("things: %v", s.things)
	}
	// Now the configuration becomes unknown again while objects are there.
	s.log = nil
	w.must(w.config("main.tf", strings.Replace(config, `"pre"`, `"post"`, 1)+thing("a", `value = "new"`)))
	p, diags = w.plan(plan.Normal)
	w.must(diags)
	want = `~ shelf_thing.a provider_config_unknown because of terraform_data.p
- shelf_thing.b provider_config_unknown because of terraform_data.p`
	if got := deferrals(p); got != want {
		t.Errorf("deferred\n%s\nwant\n%s", got, want)
	}
	if got := w.converge(2); got[1] != "~ shelf_thing.a\n- shelf_thing.b delete_because_no_resource_config" {
		t.Errorf("rounds: %s", strings.Join(got, "\n---\n"))
	}
	w.applied(plan.Destroy)
	if len(s.things) > 0 {
		t.Errorf("things: %v", s.things)
	}
}

// TestHeldBack keeps what a deferred object still uses.
func TestHeldBack(t *testing.T) {
	s := newShelf()
	catalogue := s.catalogue()
	catalogue["terraform.io/builtin/terraform"] = newWorld(t, nil).catalogue["terraform.io/builtin/terraform"]
	w := newWorld(t, catalogue)
	w.must(w.config("main.tf", "resource \"terraform_data\" \"n\" { input = 1 }\n"+
		thing("net", "")+thing("vm", "count = terraform_data.n.output\nvalue = shelf_thing.net.id")))
	w.converge(2)
	w.must(w.config("main.tf", "resource \"terraform_data\" \"n\" { input = 2 }\n"+thing("vm", "count = terraform_data.n.output")))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if got, want := deferrals(p), `- shelf_thing.net deferred_prereq because of shelf_thing.vm
+ shelf_thing.vm[*] instance_count_unknown count of shelf_thing.vm because of terraform_data.n`; got != want {
		t.Errorf("deferred\n%s\nwant\n%s", got, want)
	}
	s.log = nil
	w.converge(2)
	if at := slices.Index(s.log, "delete net"); at < slices.Index(s.log, "update vm") || at < 0 {
		t.Errorf("order: %s", s)
	}
}

// TestDeferredFile sends a plan with deferrals through a plan file.
func TestDeferredFile(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.config("main.tf", chain))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	var b bytes.Buffer
	if err := plan.Encode(&b, p, fileKey()); err != nil {
		t.Fatal(err)
	}
	q, err := plan.Decode(bytes.NewReader(b.Bytes()), int64(b.Len()), fileKey())
	if err != nil {
		t.Fatal(err)
	}
	w.must(q.Bind(t.Context(), w.catalogue))
	if got, want := deferrals(q), deferrals(p); got != want {
		t.Errorf("read\n%s\nwrote\n%s", got, want)
	}
	for i, d := range q.Deferred {
		if d.Change.Schema == nil || !d.Change.After.RawEquals(p.Deferred[i].Change.After) {
			t.Errorf("%s: %#v", d.Change.Addr, d.Change)
		}
	}
	for i, o := range q.Outputs {
		if o.Deferred != p.Outputs[i].Deferred {
			t.Errorf("output %s", o.Name)
		}
	}
}

// TestDeferredByProvider leaves over what the provider cannot plan yet, and
// what depends on it.
func TestDeferredByProvider(t *testing.T) {
	s := newShelf()
	s.defers = func(name string) bool { return name == "late" && len(s.things) == 0 }
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("early", "")+thing("late", "")+thing("user", "value = shelf_thing.late.id")+`
data "shelf_thing" "d" { id = shelf_thing.late.id }
check "c" {
  data "shelf_thing" "checked" { id = shelf_thing.late.id }
  assert {
    condition     = shelf_thing.user.value == data.shelf_thing.checked.id
    error_message = "Odd."
  }
}
output "late" { value = data.shelf_thing.d.id }
`))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	want := `+ shelf_thing.late absent_prereq because of 
+ shelf_thing.user deferred_prereq because of shelf_thing.late
<= data.shelf_thing.d deferred_prereq because of shelf_thing.late`
	if got := deferrals(p); got != want {
		t.Errorf("deferred\n%s\nwant\n%s", got, want)
	}
	got := w.converge(2)
	if got[0] != "+ shelf_thing.early\n+ output.late" || !strings.HasPrefix(got[1], "+ shelf_thing.late\n+ shelf_thing.user\n<= data") {
		t.Errorf("rounds: %s", strings.Join(got, "\n---\n"))
	}
	if p, diags := w.plan(plan.Normal); len(diags) > 0 || p.Changed() {
		t.Errorf("the next plan: %s %s", summary(p), text(diags))
	}
}

// TestInterruptedRound stops in the middle of a round; the next apply goes on.
func TestInterruptedRound(t *testing.T) {
	s := newShelf()
	catalogue := s.catalogue()
	catalogue["terraform.io/builtin/terraform"] = newWorld(t, nil).catalogue["terraform.io/builtin/terraform"]
	w := newWorld(t, catalogue)
	w.must(w.config("main.tf", "resource \"terraform_data\" \"n\" { input = 2 }\n"+
		thing("a", "value = terraform_data.n.output")+thing("b", "count = length(shelf_thing.a.id)")+"output \"n\" { value = length(shelf_thing.b) }\n"))
	stopping := make(chan struct{})
	s.hook = func(what, name string) error { close(stopping); return nil }
	w.applyStopping(stopping)
	s.hook = nil
	if got := w.converge(2); len(got) != 1 || got[0] != "+ shelf_thing.b[0]\n+ output.n" {
		t.Errorf("rounds: %s", strings.Join(got, "\n---\n"))
	}
	if got := strings.Join(s.log, ", "); got != "create a, create b" {
		t.Errorf("the provider was called: %s", got)
	}
}
