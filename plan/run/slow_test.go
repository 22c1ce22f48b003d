package run_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// ponderer plans only once somebody was told that it takes its time.
type ponderer struct {
	shelfServer
	told chan struct{}
}

func (p *ponderer) Plan(ctx context.Context, r providers.PlanRequest) providers.PlanResponse {
	if r.Proposed.GetAttr("name").AsString() == "slow" {
		<-p.told
	}
	return p.shelfServer.Plan(ctx, r)
}

// TestPlanSlow: of an object whose planning takes its time one hears so, and
// when it is over; of others nothing.
func TestPlanSlow(t *testing.T) {
	s := newShelf()
	catalogue, told := s.catalogue(), make(chan struct{})
	entry := catalogue["registry.terraform.io/stokehq/shelf"]
	entry.New = func() (providers.Provider, error) { return &ponderer{shelfServer{s: s}, told}, nil }
	catalogue["registry.terraform.io/stokehq/shelf"] = entry
	w := newWorld(t, catalogue)
	var mu sync.Mutex
	var heard []plan.EventKind
	w.listen = func(e plan.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind != plan.PlanSlow && e.Kind != plan.PlanDone || e.Addr.String() != "shelf_thing.slow" {
			return
		}
		heard = append(heard, e.Kind)
		if e.Kind == plan.PlanSlow {
			close(told)
		}
	}
	w.must(w.config("main.tf", `
terraform {
  required_providers {
    shelf = { source = "stokehq/shelf" }
  }
}
resource "shelf_thing" "slow" { name = "slow" }
resource "shelf_thing" "quick" { name = "quick" }
`))
	_, diags := w.plan(plan.Normal)
	w.must(diags)
	if want := []plan.EventKind{plan.PlanSlow, plan.PlanDone}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}
