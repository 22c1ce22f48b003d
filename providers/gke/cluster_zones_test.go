package gke

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestClusterZones: other zones of a cluster move its pools, and the plan says so;
// where data would be lost, or a pool has zones of its own, it is refused.
func TestClusterZones(t *testing.T) {
	const b, c = "us-central1-b", "us-central1-c"
	for name, test := range map[string]struct {
		pool          map[string]any // of a cluster in zone and c
		zones         []any
		moves, refuse string
	}{
		"one comes":            {cpu(nil), []any{zone, b, c}, "cpu into us-central1-b", ""},
		"one goes":             {cpu(nil), []any{zone}, "cpu out of us-central1-c", ""},
		"one for another":      {cpu(nil), []any{zone, b}, "cpu into us-central1-b and out of us-central1-c", ""},
		"a pool that is there": {cpu(map[string]any{"zones": []any{zone}}), []any{zone}, "", ""},
		"a pool of its own":    {cpu(map[string]any{"zones": []any{zone}}), []any{zone, b, c}, "", "pool cpu has zones of its own"},
		"disks that come":      {cpu(map[string]any{"local_ssd_count": 1}), []any{zone, b, c}, "cpu into us-central1-b", ""},
		"disks that go":        {cpu(map[string]any{"raw_local_ssd_count": 1}), []any{zone}, "", "local SSDs"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": []any{zone, c}})))
			before := w.plan(it, w.conf(it.kind, lab(map[string]any{"node_locations": test.zones}))) // no pool is there yet
			pool := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", test.pool))
			it = w.refresh(it) // whose first pool is gone
			w.mutations()
			config := w.conf(it.kind, lab(map[string]any{"node_locations": test.zones}))
			pl := w.plan(it, config)
			if test.refuse != "" {
				if !pl.Diagnostics.HasErrors() || !strings.Contains(pl.Diagnostics[0].Detail, test.refuse) {
					t.Errorf("plans %v", pl.Diagnostics)
				}
				if _, r := w.apply("late", before); !r.Diagnostics.HasErrors() || len(w.mutations()) > 0 {
					t.Errorf("a pool that came since the plan: %v", r.Diagnostics)
				}
				return
			}
			said := slices.DeleteFunc(pl.notes, func(n string) bool { return !strings.HasPrefix(n, "moves nodes of ") })
			if got := strings.TrimPrefix(strings.Join(said, "\n"), "moves nodes of "); got != test.moves {
				t.Errorf("plan says it moves %q: %v", got, pl.Diagnostics)
			}
			w.empty(w.make(it, config), config)
			got := w.object(labPath + "/nodePools/cpu").Value.(*containerpb.NodePool).GetLocations()
			var want []string
			for _, z := range test.zones {
				want = append(want, z.(string))
			}
			if !slices.Equal(got, want) {
				t.Errorf("the pool is in %v", got)
			}
			w.empty(w.refresh(pool), w.conf(pool.kind, test.pool))
		})
	}
}
