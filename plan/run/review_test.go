package run_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// TestReview: a provider sees all of its instances, also those that it would
// not plan, and what it says stands where the instance is declared, without
// what is secret.
func TestReview(t *testing.T) {
	catalogue := newShelf().catalogue()
	entry := catalogue["registry.terraform.io/stokehq/shelf"]
	var saw []string
	entry.Review = func(_ context.Context, all providers.Review) ([]providers.Note, providers.Diagnostics) {
		var diags providers.Diagnostics
		for _, p := range all.Planned {
			what := "goes"
			if !p.Planned.IsNull() {
				what = p.Planned.GetAttr("name").AsString()
			}
			saw = append(saw, p.Address+" "+what)
			if s := p.Planned; !s.IsNull() && !s.GetAttr("secret").IsNull() {
				diags = append(diags, providers.Diagnostic{Summary: "Doubled", Detail: "There is another " + s.GetAttr("secret").AsString() + ".", Address: p.Address, Path: cty.GetAttrPath("value")})
			}
		}
		return []providers.Note{{Text: "reviewed"}}, append(diags, providers.Diagnostic{Severity: providers.Warning, Summary: "Crowded", Detail: "All in all."})
	}
	catalogue["registry.terraform.io/stokehq/shelf"] = entry
	w := newWorld(t, catalogue)
	w.must(w.config("main.tf", `
terraform {
  required_providers {
    shelf = { source = "stokehq/shelf" }
  }
}
resource "shelf_thing" "fine" {
  name   = "a"
  value  = "b"
  secret = "a-long-secret"
}
resource "shelf_thing" "refused" {
  count  = 2
  name   = "r${count.index}"
  broken = "plan"
}
resource "shelf_thing" "forbidden" {
  name  = "never seen"
  value = "forbidden"
}
`))
	p, diags := w.plan(plan.Normal)
	if want := []string{"shelf_thing.fine a", "shelf_thing.refused[0] r0", "shelf_thing.refused[1] r1"}; !slices.Equal(saw, want) {
		t.Error(cmp.Diff(want, saw))
	}
	if len(p.Notes) != 1 || p.Complete {
		t.Errorf("notes: %v, complete: %v", p.Notes, p.Complete)
	}
	want := strings.Join([]string{
		"main.tf:9,12-15: Doubled: There is another (sensitive value).",
		"main.tf:14,12-29: Shelf is full: Make room.",
		"main.tf:14,12-29: Shelf is full: Make room.",
		"main.tf:19,11-22: Forbidden value: Choose another.",
		"Crowded: (provider stokehq/shelf) All in all.",
	}, "\n")
	if diff := cmp.Diff(want, text(diags)); diff != "" {
		t.Error(diff)
	}
}

// TestReviewSeesOthers: a provider sees the instances of other linked-in ones,
// without what is sensitive in them, and its own configured values.
func TestReviewSeesOthers(t *testing.T) {
	catalogue := newShelf().catalogue()
	const shelf, other = "registry.terraform.io/stokehq/shelf", "registry.terraform.io/stokehq/other"
	entry := catalogue[shelf]
	saw := map[string][]string{}
	var own []int
	look := func(source string) func(context.Context, providers.Review) ([]providers.Note, providers.Diagnostics) {
		return func(_ context.Context, r providers.Review) ([]providers.Note, providers.Diagnostics) {
			for _, p := range r.Planned {
				secret := "withheld"
				if v := p.Planned.GetAttr("secret"); v.IsKnown() {
					secret = v.AsString()
				}
				saw[source] = append(saw[source], strings.TrimPrefix(p.Source, "registry.terraform.io/stokehq/")+" "+p.Address+" "+p.Planned.GetAttr("name").AsString()+" "+secret)
			}
			own = append(own, len(r.Configured))
			return nil, nil
		}
	}
	entry.Review = look("shelf")
	catalogue[shelf] = entry
	entry.Review = look("other")
	catalogue[other] = entry
	w := newWorld(t, catalogue)
	w.must(w.config("main.tf", `
terraform {
  required_providers {
    shelf = { source = "stokehq/shelf" }
    other = { source = "stokehq/other" }
  }
}
resource "shelf_thing" "a" {
  name   = "a"
  secret = "a-long-secret"
}
resource "shelf_thing" "b" {
  provider = other
  name     = "b"
  secret   = "b-long-secret"
}
`))
	_, diags := w.plan(plan.Normal)
	if diags.HasErrors() {
		t.Fatal(text(diags))
	}
	want := map[string][]string{
		"shelf": {"shelf shelf_thing.a a a-long-secret", "other shelf_thing.b b withheld"},
		"other": {"shelf shelf_thing.a a withheld", "other shelf_thing.b b b-long-secret"},
	}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(own, []int{1, 1}) {
		t.Errorf("configured values: %v", own)
	}
}

// TestDeletionsCount: what an update deletes of its object is in the plan's totals, and
// prevent_destroy keeps it.
func TestDeletionsCount(t *testing.T) {
	for name, c := range map[string]struct {
		lifecycle, want string
		add, destroy    int
	}{
		"counted":   {"", "", 2, 2},
		"protected": {"lifecycle { prevent_destroy = true }", "has lifecycle.prevent_destroy set, but in the plan part two is deleted", 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := newShelf().catalogue()
			const shelf = "registry.terraform.io/stokehq/shelf"
			entry := catalogue[shelf]
			entry.Review = func(context.Context, providers.Review) ([]providers.Note, providers.Diagnostics) {
				return []providers.Note{
					{Address: "shelf_thing.a", Kind: providers.NoteDeletion, Text: "part one is made anew", Number: 1},
					{Address: "shelf_thing.a", Kind: providers.NoteDeletion, Text: "part two is deleted"},
				}, nil
			}
			catalogue[shelf] = entry
			w := newWorld(t, catalogue)
			w.must(w.config("main.tf", "terraform {\n  required_providers {\n    shelf = { source = \"stokehq/shelf\" }\n  }\n}\nresource \"shelf_thing\" \"a\" {\n  name = \"a\"\n"+c.lifecycle+"\n}\n"))
			p, diags := w.plan(plan.Normal)
			if c.want == "" && diags.HasErrors() || !strings.Contains(text(diags), c.want) {
				t.Errorf("it says %s", text(diags))
			}
			if add, _, destroy := p.Count(); add != c.add || destroy != c.destroy {
				t.Errorf("%d to add, %d to destroy", add, destroy)
			}
		})
	}
}
