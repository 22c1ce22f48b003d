package gke

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// manyPools and manyDisks are what a plan of many objects looks at: half of the
// pools are in two zones.
const manyPools, manyDisks = 40, 20

// many makes the objects of such a plan, and returns them with what is declared.
func many(w *world) (all []thing, configs []cty.Value) {
	w.Helper()
	zones := []any{zone, "us-central1-c"}
	w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": zones})))
	add := func(kind string, given map[string]any) {
		config := w.conf(kind, given)
		all, configs = append(all, w.make(thing{kind: kind}, config)), append(configs, config)
	}
	for n := range manyPools {
		add("gke_node_pool", gpu(map[string]any{"name": fmt.Sprintf("gpu-%d", n), "zones": zones[:1+n%2]}))
	}
	for n := range manyDisks {
		add("gke_disk", data(map[string]any{"name": fmt.Sprintf("data-%d", n)}))
	}
	return all, configs
}

// planAll plans them as the engine does: one provider, all at the same time.
func (w *world) planAll(all []thing, configs []cty.Value) {
	w.Helper()
	p := w.phase()
	schema, _ := p.Schema(w.Context())
	var group sync.WaitGroup
	for n, it := range all {
		group.Go(func() {
			ctx := providers.WithCall(w.Context(), &providers.Call{Address: it.kind + ".x"})
			read := p.Read(ctx, providers.ReadRequest{Type: it.kind, State: it.state, Private: it.private})
			if read.Diagnostics.HasErrors() || read.State.IsNull() {
				w.Errorf("read: %v", read.Diagnostics)
				return
			}
			plan := p.Plan(ctx, providers.PlanRequest{Type: it.kind, Prior: read.State, Config: configs[n], Private: read.Private,
				Proposed: proposed(schema.Resources[it.kind].Block.Attributes, read.State, configs[n])})
			if plan.Diagnostics.HasErrors() || !plan.Planned.RawEquals(read.State) {
				w.Errorf("the plan of %s %d is not empty: %v", it.kind, n, plan.Diagnostics)
			}
		})
	}
	group.Wait()
}

// TestManyReads: a plan reads each object once, the groups of machines once in each
// zone, and whatever else it checks once in each zone or project.
func TestManyReads(t *testing.T) {
	transports(t, gcptest.Options{Polls: -1}, func(w *world) {
		all, configs := many(w)
		w.google.Forget()
		w.planAll(all, configs)
		count := map[string]int{}
		for _, c := range w.google.Calls() {
			count[c.Method+" "+c.Target]++
			if c.Mutating {
				w.Errorf("a plan calls %s", c.Method)
			}
		}
		reads := 0
		for call, n := range count {
			if n > 1 {
				w.Errorf("%d × %s", n, call)
			}
			reads += n
		}
		groups := count["compute.instanceGroupManagers.list projects/"+w.google.Project()+"/zones/"+zone+"/instanceGroupManagers"]
		if groups != 1 {
			w.Errorf("machines of a zone are listed %d times: %v", groups, count)
		}
		if most := manyPools + manyDisks + 10; reads > most {
			w.Errorf("%d calls, more than %d: %v", reads, most, count)
		}
	})
}

// BenchmarkPlan is a plan of 60 node pools and disks, where each call takes 20 ms.
func BenchmarkPlan(b *testing.B) {
	for _, transport := range []string{"grpc", "rest"} {
		b.Run(transport, func(b *testing.B) {
			w := newWorld(b, transport, gcptest.Options{Polls: -1})
			all, configs := many(w)
			w.google.SetLatency(20 * time.Millisecond)
			for b.Loop() {
				w.planAll(all, configs)
			}
		})
	}
}
