package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
)

// fates is a plan in a line a change, moves included.
func fates(p *plan.Plan) string {
	var lines []string
	for _, c := range p.Changes {
		if c.Idle() {
			continue
		}
		line := c.Addr.String()
		if verb := verbs[c.Action]; verb != "" {
			line = verb + " " + line
		}
		if c.Reason != "" {
			line += " " + string(c.Reason)
		}
		if c.Moved() {
			line += " from " + c.Previous.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const (
	leaf = `resource "terraform_data" "in" { input = "in" }`
	one  = `resource "terraform_data" "a" { input = "x" }`
	two  = `resource "terraform_data" "a" {
  count = 2
  input = "x"
}`
)

func moved(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "\nmoved {\n  from = %s\n  to   = %s\n}\n", pairs[i], pairs[i+1])
	}
	return b.String()
}

func TestMoved(t *testing.T) {
	call := func(name, repeat string) string {
		return fmt.Sprintf("\nmodule %q {\n  source = \"./m\"\n  %s\n}\n", name, repeat)
	}
	b := strings.ReplaceAll(one, `"a"`, `"b"`)
	tests := []struct {
		name, before, after string
		module              string // files of ./m afterwards; leaf by default
		want, warning       string
		err                 string // summary of the error
	}{
		{name: "a resource", before: one, after: b + moved("terraform_data.a", "terraform_data.b"), want: "terraform_data.b from terraform_data.a"},
		{name: "and changes", before: one, after: strings.Replace(b, `"x"`, `"y"`, 1) + moved("terraform_data.a", "terraform_data.b"),
			want: "~ terraform_data.b from terraform_data.a"},
		{name: "a chain", before: one, after: strings.ReplaceAll(one, `"a"`, `"c"`) + moved("terraform_data.a", "terraform_data.b", "terraform_data.b", "terraform_data.c"),
			want: "terraform_data.c from terraform_data.a"},
		{name: "the middle of a chain", before: b, after: strings.ReplaceAll(one, `"a"`, `"c"`) + moved("terraform_data.a", "terraform_data.b", "terraform_data.b", "terraform_data.c"),
			want: "terraform_data.c from terraform_data.b"},
		{name: "nothing left to move", before: b, after: b + moved("terraform_data.a", "terraform_data.b")},
		{name: "all instances", before: two, after: strings.ReplaceAll(two, `"a"`, `"b"`) + moved("terraform_data.a", "terraform_data.b"),
			want: "terraform_data.b[0] from terraform_data.a[0]\nterraform_data.b[1] from terraform_data.a[1]"},
		{name: "numbers to names", before: two, after: "resource \"terraform_data\" \"a\" {\n for_each = toset([\"p\", \"q r\"])\n input = \"x\"\n}" +
			moved("terraform_data.a[0]", `terraform_data.a["p"]`, "terraform_data.a[1]", `terraform_data.a["q r"]`),
			want: "terraform_data.a[\"p\"] from terraform_data.a[0]\nterraform_data.a[\"q r\"] from terraform_data.a[1]"},
		{name: "count comes", before: one, after: two, want: "terraform_data.a[0] from terraform_data.a\n+ terraform_data.a[1]"},
		{name: "count goes", before: two, after: one, want: "terraform_data.a from terraform_data.a[0]\n- terraform_data.a[1] delete_because_wrong_repetition"},
		{name: "for_each comes", before: one, after: "resource \"terraform_data\" \"a\" {\n for_each = toset([\"p\"])\n input = \"x\"\n}",
			want: "- terraform_data.a delete_because_wrong_repetition\n+ terraform_data.a[\"p\"]"},
		{name: "count comes with a block", before: one, after: two + moved("terraform_data.a", "terraform_data.a[1]"),
			want: "+ terraform_data.a[0]\nterraform_data.a[1] from terraform_data.a"},
		{name: "into a module", before: strings.ReplaceAll(one, `"x"`, `"in"`), after: call("m", "") + moved("terraform_data.a", "module.m.terraform_data.in"),
			want: "module.m.terraform_data.in from terraform_data.a"},
		{name: "out of a module", before: call("m", ""), after: strings.ReplaceAll(one, `"x"`, `"in"`) + moved("module.m.terraform_data.in", "terraform_data.a"),
			want: "terraform_data.a from module.m.terraform_data.in"},
		{name: "a module", before: call("m", ""), after: call("n", "") + moved("module.m", "module.n"), want: "module.n.terraform_data.in from module.m.terraform_data.in"},
		{name: "a module gets a count", before: call("m", ""), after: call("m", "count = 2") + moved("module.m", "module.m[1]"),
			want: "+ module.m[0].terraform_data.in\nmodule.m[1].terraform_data.in from module.m.terraform_data.in"},
		{name: "instances of a module", before: call("m", "count = 2"), after: call("n", "count = 2") + moved("module.m", "module.n"),
			want: "module.n[0].terraform_data.in from module.m[0].terraform_data.in\nmodule.n[1].terraform_data.in from module.m[1].terraform_data.in"},
		{name: "within every instance", before: call("m", "count = 2"), after: call("m", "count = 2"),
			module: strings.ReplaceAll(leaf, `"in" {`, `"inner" {`) + moved("terraform_data.in", "terraform_data.inner"),
			want:   "module.m[0].terraform_data.inner from module.m[0].terraform_data.in\nmodule.m[1].terraform_data.inner from module.m[1].terraform_data.in"},
		{name: "a module, and within it", before: call("m", ""), after: call("n", "") + moved("module.m", "module.n"),
			module: strings.ReplaceAll(leaf, `"in" {`, `"inner" {`) + moved("terraform_data.in", "terraform_data.inner"),
			want:   "module.n.terraform_data.inner from module.m.terraform_data.in"},
		{name: "the particular first", before: call("m", ""), after: call("n", "") + strings.ReplaceAll(one, `"x"`, `"in"`) + moved("module.m", "module.n", "module.m.terraform_data.in", "terraform_data.a"),
			want: "terraform_data.a from module.m.terraform_data.in\n+ module.n.terraform_data.in"},
		{name: "to where nothing is wanted", before: one, after: moved("terraform_data.a", "terraform_data.b"),
			want: "- terraform_data.b delete_because_no_move_target from terraform_data.a"},
		{name: "to where something is", before: one + "\n" + b, after: b + moved("terraform_data.a", "terraform_data.b"),
			want: "- terraform_data.a delete_because_no_resource_config", warning: "terraform_data.a could not move to terraform_data.b"},
		{name: "declared", before: one, after: one + "\n" + b + moved("terraform_data.a", "terraform_data.b"), err: "Moved object still declared"},
		{name: "declared instance", before: two, after: two + "\n" + b + moved("terraform_data.a[1]", "terraform_data.b"), err: "Moved object still declared"},
		{name: "instance beyond the count", before: two, after: strings.Replace(two, "2", "1", 1) + "\n" + b + moved("terraform_data.a[1]", "terraform_data.b"),
			want: "terraform_data.b from terraform_data.a[1]"},
		{name: "declared module", before: call("m", ""), after: call("m", "") + call("n", "") + moved("module.m", "module.n"), err: "Moved object still declared"},
		{name: "circle", before: one, after: "" + moved("terraform_data.a", "terraform_data.b", "terraform_data.b", "terraform_data.a"), err: "Moves lead in a circle"},
		{name: "a module into itself", before: call("m", ""), after: moved("module.m", "module.m.module.m"), err: "Moves lead in a circle"},
		{name: "two sources", before: one, after: b + moved("terraform_data.a", "terraform_data.b", "terraform_data.c", "terraform_data.b"), err: "Ambiguous moves"},
		{name: "two targets", before: one, after: b + moved("terraform_data.a", "terraform_data.b", "terraform_data.a", "terraform_data.c"), err: "Ambiguous moves"},
		{name: "another type", before: one, after: thing("b", "") + moved("terraform_data.a", "shelf_thing.b"), err: "Resource type cannot change by moving"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			catalogue := newWorld(t, nil).catalogue
			for source, entry := range newShelf().catalogue() {
				catalogue[source] = entry
			}
			w := newWorld(t, catalogue)
			w.must(w.config("main.tf", tt.before, "m/main.tf", leaf))
			w.applied(plan.Normal)
			ids := w.ids()
			inner := tt.module
			if inner == "" {
				inner = leaf
			}
			w.must(w.config("main.tf", tt.after, "m/main.tf", inner))
			p, _, diags := w.apply(plan.Normal)
			if tt.err != "" {
				if !diags.HasErrors() || !strings.Contains(text(diags), tt.err) {
					t.Fatalf("no error %q but %s", tt.err, text(diags))
				}
				return
			}
			w.must(diags)
			if got := fates(p); got != tt.want {
				t.Errorf("planned\n%s\nwant\n%s", got, tt.want)
			}
			if !strings.Contains(text(diags), tt.warning) || tt.warning == "" && len(diags) > 0 {
				t.Errorf("said %q, want %q", text(diags), tt.warning)
			}
			now := w.ids()
			for _, m := range p.Moves {
				if now[m.To.String()] != ids[m.From.String()] && !strings.Contains(tt.want, "- "+m.To.String()) {
					t.Errorf("%s has the id %q, %s had %q", m.To, now[m.To.String()], m.From, ids[m.From.String()])
				}
			}
			again, diags := w.plan(plan.Normal)
			w.must(diags)
			if again.Changed() {
				t.Errorf("the next plan is\n%s", fates(again))
			}
		})
	}
}

// ids are the ids of all objects in the state, by address.
func (w *world) ids() map[string]string {
	w.tb.Helper()
	out := map[string]string{}
	st := w.open().State()
	for _, a := range st.Instances() {
		if o := st.Current(a); o != nil {
			var attributes struct{ ID string }
			if err := json.Unmarshal(o.JSON, &attributes); err != nil {
				w.tb.Fatal(err)
			}
			out[a.String()] = attributes.ID
		}
	}
	return out
}

// TestMovedFollowsDependents destroys objects of which one was moved without
// an apply in between: what depends on it still goes first.
func TestMovedFollowsDependents(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "")+thing("b", "value = shelf_thing.a.id")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", thing("c", "")+thing("b", "value = shelf_thing.c.id")+moved("shelf_thing.a", "shelf_thing.c")))
	s.log = nil
	w.applied(plan.Destroy)
	var deletes []string
	for _, line := range s.log {
		if strings.HasPrefix(line, "delete") {
			deletes = append(deletes, line)
		}
	}
	if diff := cmp.Diff([]string{"delete b", "delete a"}, deletes); diff != "" {
		t.Error(diff)
	}
}

// TestMovedRefreshOnly stores a move although nothing else is to be done.
func TestMovedRefreshOnly(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.config("main.tf", one))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", strings.ReplaceAll(one, `"a"`, `"b"`)+moved("terraform_data.a", "terraform_data.b")))
	p := w.applied(plan.RefreshOnly)
	if len(p.Drift) != 1 || !p.Drift[0].Moved() || p.Changed() {
		t.Errorf("drift is %v", p.Drift)
	}
	if ids := w.ids(); ids["terraform_data.b"] == "" || len(ids) != 1 {
		t.Errorf("the state has %v", ids)
	}
}

// TestMovedTargets refuses a plan that would leave out what has moved.
func TestMovedTargets(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.config("main.tf", one))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", strings.ReplaceAll(one, `"a"`, `"b"`)+"\n"+strings.ReplaceAll(one, `"a"`, `"c"`)+moved("terraform_data.a", "terraform_data.b")))
	w.targets = []string{"terraform_data.c"}
	if _, diags := w.plan(plan.Normal); !strings.Contains(text(diags), "-target='terraform_data.b'") {
		t.Errorf("said %s", text(diags))
	}
	w.targets = []string{"terraform_data.b"}
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if got := fates(p); got != "terraform_data.b from terraform_data.a" {
		t.Error(got)
	}
}

// TestMovedPlanFile carries moves in a file, and applies them once.
func TestMovedPlanFile(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, nil)
	w.must(w.config("main.tf", one))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", strings.ReplaceAll(one, `"a"`, `"b"`)+moved("terraform_data.a", "terraform_data.b")))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	read := w.throughFile(p)
	if fates(read) != fates(p) || len(read.Moves) != 1 {
		t.Errorf("read back %s", fates(read))
	}
	for turn, want := range []bool{true, false} {
		f := w.open()
		j, err := f.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, diags := run.Apply(ctx, run.Request{Plan: read, Root: w.root, Journal: j, Catalogue: w.catalogue})
		if err := j.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if diags.HasErrors() == want {
			t.Errorf("turn %d: %s", turn, text(diags))
		}
	}
	if ids := w.ids(); len(ids) != 1 || ids["terraform_data.b"] == "" {
		t.Errorf("the state has %v", ids)
	}
}

// throughFile is the plan as a saved one is read back.
func (w *world) throughFile(p *plan.Plan) *plan.Plan {
	w.tb.Helper()
	var file bytes.Buffer
	if err := plan.Encode(&file, p, fileKey()); err != nil {
		w.tb.Fatal(err)
	}
	read, err := plan.Decode(bytes.NewReader(file.Bytes()), int64(file.Len()), fileKey())
	if err != nil {
		w.tb.Fatal(err)
	}
	w.must(read.Bind(context.Background(), w.catalogue))
	return read
}
