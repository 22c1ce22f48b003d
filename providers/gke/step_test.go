package gke

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestStepImported: a pool that was made by a step of its fallback, and is imported, runs
// by that step: it is neither moved nor made anew, and comes to be as if it had never
// been away.
func TestStepImported(t *testing.T) {
	const path = labPath + "/nodePools/gpu"
	spot, elsewhere, larger := map[string]any{"spot": true}, map[string]any{"zones": []any{"us-central1-c"}}, map[string]any{"machine_type": "g2-standard-12"}
	scaled := map[string]any{"node_count": nil, "autoscaling": map[string]any{"min": 1, "max": 1}}
	for _, test := range []struct {
		name  string
		given map[string]any
		lacks []gcptest.Capacity
		steps []any
		step  int
	}{
		{"spot", nil, []gcptest.Capacity{{Provisioning: "on-demand"}}, []any{spot}, 1},
		{"spot, declared otherwise", map[string]any{"spot": false}, []gcptest.Capacity{{Provisioning: "on-demand"}}, []any{spot}, 1},
		{"zone", map[string]any{"zones": []any{zone}}, []gcptest.Capacity{{Zone: zone}}, []any{spot, elsewhere}, 2},
		{"machine type", nil, []gcptest.Capacity{{MachineType: "g2-standard-8"}}, []any{spot, larger}, 2},
		{"from a reservation", map[string]any{"reservation": "r"}, nil, []any{map[string]any{"reservation": "", "zones": []any{"us-central1-c"}}}, 1},
		{"flex-start", with(scaled, map[string]any{"reservation": "r", "flex_start": false}), nil, []any{map[string]any{"reservation": "", "flex_start": true}, with(spot, map[string]any{"reservation": ""})}, 1},
		{"spot after flex-start", with(scaled, map[string]any{"reservation": "r"}), []gcptest.Capacity{{Provisioning: "flex-start"}}, []any{map[string]any{"reservation": "", "flex_start": true}, with(spot, map[string]any{"reservation": ""})}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": []any{zone, "us-central1-c"}})))
			for _, of := range test.lacks {
				w.google.SetCapacity(of, 0)
			}
			given := with(gpu(map[string]any{"zones": []any{zone}, "fallback": test.steps}), test.given)
			config := w.conf("gke_node_pool", given)
			made := w.empty(w.make(thing{kind: "gke_node_pool"}, config), config)
			if made.step() != test.step {
				t.Fatalf("made by step %d", made.step())
			}
			imported := w.importing(made.kind, path)
			pl := w.plan(imported, config)
			if pl.Diagnostics.HasErrors() || len(pl.Replace) > 0 || !strings.Contains(strings.Join(pl.notes, "\n"), "-replace=") {
				t.Fatalf("%v, replaced because of %v, with %v", pl.Diagnostics, pl.replaced(), pl.notes)
			}
			_, diags := w.entry.Review(t.Context(), providers.Review{Configured: []providers.Provider{w.phase()}, Planned: []providers.PlannedInstance{
				{Address: "gke_node_pool.x", Type: made.kind, Prior: imported.state, Planned: pl.Planned}}})
			if pool := newPlannedPool(providers.PlannedInstance{Prior: imported.state, Planned: pl.Planned}); diags.HasErrors() || pool.describeRecreation() != "" {
				t.Errorf("the nodes are said to be made anew: %q %v", pool.describeRecreation(), diags)
			}
			w.mutations()
			it := w.empty(w.make(imported, config), config)
			if got := w.mutations(); len(got) > 0 {
				t.Errorf("recorded by %v", got)
			}
			for name, was := range made.state.AsValueMap() {
				if is := it.state.GetAttr(name); name != "timeouts" && !is.RawEquals(was) {
					t.Errorf("%s is %#v, and was %#v", name, is, was)
				}
			}
			given["labels"] = map[string]any{"a": "b"}
			if pl = w.plan(imported, w.conf(it.kind, given)); len(pl.Replace) > 0 {
				t.Errorf("with a change beside it is replaced because of %v", pl.replaced())
			}
			w.make(imported, w.conf(it.kind, given))
			w.brought("labels", "UpdateNodePool", "labels")
		})
	}
}

// TestStepOfAnother: what the fallback does not say of a pool that is imported is a
// difference, as it is of every pool.
func TestStepOfAnother(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	w.google.SetCapacity(gcptest.Capacity{Zone: zone, Provisioning: "on-demand"}, 0)
	given := func(steps ...any) cty.Value {
		return w.conf("gke_node_pool", gpu(map[string]any{"spot": false, "fallback": steps}))
	}
	w.make(thing{kind: "gke_node_pool"}, given(map[string]any{"spot": true}))
	imported := w.importing("gke_node_pool", labPath+"/nodePools/gpu")
	for name, config := range map[string]cty.Value{"no fallback": given(), "another zone": given(map[string]any{"spot": true, "zones": []any{"us-central1-c"}}), "another step": given(map[string]any{"machine_type": "g2-standard-12"})} {
		if got := w.plan(imported, config).replaced(); !slices.Equal(got, []string{"spot"}) {
			t.Errorf("%s: replaced because of %v", name, got)
		}
	}
}
