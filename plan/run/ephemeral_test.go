package run_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
)

const secretVariable = "variable \"s\" {\n  ephemeral = true\n}\n"

// stored is all that is on disk of a state.
func (w *world) stored() string {
	w.tb.Helper()
	text, err := os.ReadFile(w.state)
	if err != nil {
		w.tb.Fatal(err)
	}
	return string(text)
}

// TestWriteOnly follows an ephemeral value through locals, a module and its
// outputs into a write-only argument, and through a saved plan.
func TestWriteOnly(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", secretVariable+`
variable "unset" {
  ephemeral = true
  default   = ""
}
locals { l = "<${var.s}>" }
provider "shelf" { prefix = var.s }
module "m" {
  source = "./m"
  v      = local.l
}
`+thing("a", "key = module.m.o")+thing("b", "key = shelf_thing.a.id"), "m/main.tf", `
variable "v" {
  ephemeral = true
}
output "o" {
  value     = "${var.v}!"
  ephemeral = true
}
`))
	ctx := context.Background()
	f := w.open()
	r := w.request(f, plan.Normal)
	r.Variables = map[string]cty.Value{"s": cty.StringVal("canary")}
	p, diags := plan.Make(ctx, r)
	w.must(diags)
	if len(p.Variables) != 0 || len(p.Ephemeral) != 1 || p.Ephemeral[0] != "s" {
		t.Errorf("the plan has the variables %v and names %v", p.Variables, p.Ephemeral)
	}
	var file bytes.Buffer
	if err := plan.Encode(&file, p, fileKey()); err != nil {
		t.Fatal(err)
	}
	read, err := plan.Decode(bytes.NewReader(file.Bytes()), int64(file.Len()), fileKey())
	if err != nil {
		t.Fatal(err)
	}
	w.must(read.Bind(ctx, w.catalogue))
	for _, c := range read.Changes {
		if c.Config != cty.NilVal {
			t.Errorf("the plan holds the configuration of %s", c.Addr)
		}
	}
	j, err := f.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, diags = run.Apply(ctx, run.Request{Plan: read, Root: w.root, Journal: j, Catalogue: w.catalogue, Ephemeral: r.Variables})
	w.must(diags)
	if err := j.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.String(); got != `["create a","key \u003ccanary\u003e!","create b","key canary1"]` {
		t.Errorf("the provider was called: %s", got)
	}
	if text := w.stored(); strings.Contains(text, "<canary") || strings.Contains(text, `"s"`) {
		t.Errorf("the state holds the value:\n%s", text)
	}
}

// TestWriteOnlyReturned has a provider hand a write-only value back: it is
// refused, shown nowhere and not stored.
func TestWriteOnlyReturned(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "key = \"canary\"\nbroken = \"leak\"")))
	_, _, diags := w.apply(plan.Normal)
	if got := text(diags); !strings.Contains(got, "Provider returned a write-only value") || strings.Contains(got, "canary") {
		t.Errorf("diagnostics: %s", got)
	}
	if strings.Contains(w.stored(), "canary") {
		t.Error("it is in the state")
	}
	// Reading may return it, too.
	if p, diags := w.plan(plan.Normal); len(p.Drift) > 0 || diags.HasErrors() {
		t.Errorf("drift %+v, diagnostics %s", p.Drift, text(diags))
	}
}

func TestEphemeralMistakes(t *testing.T) {
	withDefault := "variable \"s\" {\n  ephemeral = true\n  default = \"canary\"\n}\n"
	cases := []struct{ name, config, want string }{
		{"stored argument", thing("a", "value = \"x${var.s}\""), `main.tf:7,9-20: Ephemeral value not allowed: The value is ephemeral: it must never be stored, but the argument "value" of shelf_thing.a`},
		{"part of an argument", thing("a", "tags = { k = var.s }"), `the argument "tags"`},
		{"data source", "data \"shelf_thing\" \"d\" { id = var.s }\n", `the argument "id" of data.shelf_thing.d`},
		{"root output", "output \"o\" { value = var.s }\n", "ephemeralasnull()"},
		{"ephemeral root output", "output \"o\" {\n  value = 1\n  ephemeral = true\n}\n", "none can be ephemeral"},
		{"count", thing("a", "count = length(var.s)"), "Invalid count argument"},
		{"for_each", thing("a", "for_each = toset([var.s])"), "Invalid for_each argument"},
		{"to a variable", "module \"m\" {\n  source = \"./m\"\n  v = var.s\n}\n", `the variable "v" declared at m/main.tf`},
		{"out of a module", "module \"m\" {\n  source = \"./m\"\n  e = var.s\n}\n", "Add `ephemeral = true` to the output"},
		{"terraform.applying", thing("a", "value = terraform.applying ? \"a\" : \"p\""), "Ephemeral value not allowed"},
	}
	const child = "variable \"v\" {\n  default = 1\n}\nvariable \"e\" {\n  default = 1\n  ephemeral = true\n}\noutput \"o\" { value = var.e == 1 ? null : var.e }\n"
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, newShelf().catalogue())
			w.must(w.config("main.tf", withDefault+c.config, "m/main.tf", child))
			_, diags := w.plan(plan.Normal)
			if got := text(diags); !diags.HasErrors() || !strings.Contains(got, c.want) || strings.Contains(got, "canary") {
				t.Errorf("planned with\n%s\nwant something with\n%s", got, c.want)
			}
			diags = plan.Validate(context.Background(), w.request(w.open(), plan.Normal))
			if !diags.HasErrors() && c.name != "out of a module" {
				t.Error("validated without an error")
			}
		})
	}
}
