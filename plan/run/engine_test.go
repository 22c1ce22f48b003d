package run_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/local"
	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/builtin"
)

// world is a configuration with its state, for driving the engine as the
// command line does.
type world struct {
	tb          testing.TB
	catalogue   providers.Catalogue
	state       string
	root        *modules.Module
	files       *modules.Files
	listen      plan.Listener
	replace     []string
	targets     []string
	limits      plan.Limits
	parallelism int
	generate    string
	wrap        func(state.Store) state.Store // nil: the store as it is
	excludes    []string
	shape       func(*plan.Request) // nil: as it is
}

func newWorld(tb testing.TB, catalogue providers.Catalogue) *world {
	if catalogue == nil {
		catalogue = providers.Catalogue{"terraform.io/builtin/terraform": builtin.Entry(nil)}
	}
	return &world{tb: tb, catalogue: catalogue, state: filepath.Join(tb.TempDir(), "terraform.tfstate")}
}

func (w *world) config(files ...string) hcl.Diagnostics {
	content := map[string][]byte{}
	for i := 0; i < len(files); i += 2 {
		content[files[i]] = []byte(files[i+1])
	}
	var diags hcl.Diagnostics
	w.root, w.files, diags = modules.Load(modules.InMemory(content), ".")
	return diags
}

func (w *world) must(diags hcl.Diagnostics) {
	w.tb.Helper()
	if diags.HasErrors() {
		w.tb.Fatal(text(diags))
	}
}

func text(diags hcl.Diagnostics) string {
	var lines []string
	for _, d := range diags {
		at := ""
		if d.Subject != nil {
			at = d.Subject.String() + ": "
		}
		lines = append(lines, at+d.Summary+": "+d.Detail)
	}
	return strings.Join(lines, "\n")
}

func (w *world) open() *state.File {
	w.tb.Helper()
	file, err := local.New(w.state)
	if err != nil {
		w.tb.Fatal(err)
	}
	var store state.Store = file
	if w.wrap != nil {
		store = w.wrap(file)
	}
	f, err := state.Open(context.Background(), store)
	if err != nil {
		w.tb.Fatal(err)
	}
	return f
}

func (w *world) request(f *state.File, mode plan.Mode) plan.Request {
	r := plan.Request{
		Root: w.root, Files: w.files, State: f.State(), Catalogue: w.catalogue, Mode: mode,
		Workspace: "default", Dir: ".", Listen: w.listen, Replace: w.replace, Targets: w.targets, Limits: w.limits, Parallelism: w.parallelism, Excludes: w.excludes, GenerateTo: w.generate,
	}
	if w.shape != nil {
		w.shape(&r)
	}
	return r
}

func (w *world) plan(mode plan.Mode) (*plan.Plan, hcl.Diagnostics) {
	w.tb.Helper()
	return plan.Make(context.Background(), w.request(w.open(), mode))
}

// apply plans and carries out, and returns the plan as it was.
func (w *world) apply(mode plan.Mode) (*plan.Plan, *run.Report, hcl.Diagnostics) {
	w.tb.Helper()
	ctx := context.Background()
	f := w.open()
	if open := f.Open(); len(open) > 0 {
		j, err := f.Begin(ctx)
		if err != nil {
			w.tb.Fatal(err)
		}
		diags := plan.Settle(ctx, w.request(f, mode), j, open)
		if err := j.Close(ctx); err != nil {
			w.tb.Fatal(err)
		}
		if diags.HasErrors() {
			return nil, nil, diags
		}
	}
	p, diags := plan.Make(ctx, w.request(f, mode))
	if diags.HasErrors() {
		return p, nil, diags
	}
	j, err := f.Begin(ctx)
	if err != nil {
		w.tb.Fatal(err)
	}
	report, more := run.Apply(ctx, run.Request{Plan: p, Root: w.root, Journal: j, Catalogue: w.catalogue, Listen: w.listen, Limits: w.limits, Parallelism: w.parallelism})
	if err := j.Close(ctx); err != nil {
		w.tb.Fatal(err)
	}
	return p, report, append(diags, more...)
}

// applyStopping applies with a channel that stands for Ctrl-C.
func (w *world) applyStopping(stopping <-chan struct{}) *run.Report {
	w.tb.Helper()
	ctx := context.Background()
	f := w.open()
	p, diags := plan.Make(ctx, w.request(f, plan.Normal))
	w.must(diags)
	j, err := f.Begin(ctx)
	if err != nil {
		w.tb.Fatal(err)
	}
	report, diags := run.Apply(ctx, run.Request{Plan: p, Root: w.root, Journal: j, Catalogue: w.catalogue, Stopping: stopping, Limits: w.limits, Parallelism: w.parallelism})
	w.must(diags)
	if err := j.Close(ctx); err != nil {
		w.tb.Fatal(err)
	}
	return report
}

func (w *world) applied(mode plan.Mode) *plan.Plan {
	w.tb.Helper()
	p, _, diags := w.apply(mode)
	w.must(diags)
	return p
}

// summary is a plan in a line a change, for comparing.
func summary(p *plan.Plan) string {
	var lines []string
	for _, c := range p.Changes {
		if c.Action == plan.NoOp {
			continue
		}
		line := fmt.Sprintf("%s %s", verbs[c.Action], c.Addr)
		if c.Deposed != "" {
			line += " (deposed)"
		}
		if c.Reason != "" {
			line += " " + string(c.Reason)
		}
		lines = append(lines, line)
	}
	for _, o := range p.Outputs {
		if o.Action != plan.NoOp {
			lines = append(lines, fmt.Sprintf("%s output.%s", verbs[o.Action], o.Name))
		}
	}
	return strings.Join(lines, "\n")
}

var verbs = map[plan.Action]string{
	plan.Create: "+", plan.Read: "<=", plan.Update: "~", plan.Delete: "-", plan.DeleteThenCreate: "-/+", plan.CreateThenDelete: "+/-", plan.Forget: ".",
}

func TestLife(t *testing.T) {
	steps := []struct {
		name, config string
		mode         plan.Mode
		want         string
	}{
		{name: "create", config: `
resource "terraform_data" "a" { input = "one" }
resource "terraform_data" "b" { input = terraform_data.a.id }
output "b" { value = terraform_data.b.output }`, want: `+ terraform_data.a
+ terraform_data.b
+ output.b`},
		{name: "nothing", config: `
resource "terraform_data" "a" { input = "one" }
resource "terraform_data" "b" { input = terraform_data.a.id }
output "b" { value = terraform_data.b.output }`},
		{name: "update", config: `
resource "terraform_data" "a" { input = "two" }
resource "terraform_data" "b" { input = terraform_data.a.output }
output "b" { value = terraform_data.b.output }`, want: `~ terraform_data.a
~ terraform_data.b
~ output.b`},
		{name: "replace", config: `
resource "terraform_data" "a" {
  input = "two"
  triggers_replace = 1
}
resource "terraform_data" "b" { input = terraform_data.a.id }
output "b" { value = terraform_data.b.output }`, want: `-/+ terraform_data.a replace_because_cannot_update
~ terraform_data.b
~ output.b`},
		{name: "create before destroy", config: `
resource "terraform_data" "a" {
  input = "two"
  triggers_replace = 2
}
resource "terraform_data" "b" {
  input = terraform_data.a.id
  triggers_replace = terraform_data.a.id
  lifecycle { create_before_destroy = true }
}`, want: `+/- terraform_data.a replace_because_cannot_update
+/- terraform_data.b replace_because_cannot_update
- output.b`},
		{name: "remove one", config: `
resource "terraform_data" "a" { input = "two" }`, want: `-/+ terraform_data.a replace_because_cannot_update
- terraform_data.b delete_because_no_resource_config`},
		{name: "count", config: `
resource "terraform_data" "a" {
  count = 3
  input = count.index
}
resource "terraform_data" "b" {
  for_each = { x = 0, y = 1 }
  input = "${each.key}:${terraform_data.a[each.value].output}"
}
output "all" { value = terraform_data.a[*].output }`, want: `~ terraform_data.a[0]
+ terraform_data.a[1]
+ terraform_data.a[2]
+ terraform_data.b["x"]
+ terraform_data.b["y"]
+ output.all`},
		{name: "fewer", config: `
resource "terraform_data" "a" {
  count = 2
  input = count.index
}
resource "terraform_data" "b" {
  for_each = { x = 0 }
  input = "${each.key}:${terraform_data.a[each.value].output}"
}
output "all" { value = terraform_data.a[*].output }`, want: `- terraform_data.a[2] delete_because_count_index
- terraform_data.b["y"] delete_because_each_key
~ output.all`},
		{name: "destroy", config: `
resource "terraform_data" "a" { count = 2 }`, mode: plan.Destroy, want: `- terraform_data.a[0]
- terraform_data.a[1]
- terraform_data.b["x"]
- output.all`},
		{name: "empty", config: ``},
	}
	w := newWorld(t, nil)
	for _, s := range steps {
		w.must(w.config("main.tf", s.config))
		p := w.applied(s.mode)
		if got := summary(p); got != s.want {
			t.Fatalf("%s: planned\n%s\nwant\n%s", s.name, got, s.want)
		}
		if s.mode == plan.Destroy {
			continue
		}
		again, diags := w.plan(plan.Normal)
		w.must(diags)
		if got := summary(again); got != "" {
			t.Fatalf("%s: the second plan is\n%s", s.name, got)
		}
	}
}
