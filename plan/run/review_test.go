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
	entry.Review = func(_ context.Context, planned []providers.PlannedInstance) ([]providers.Note, providers.Diagnostics) {
		var diags providers.Diagnostics
		for _, p := range planned {
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
