package gke

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// changing is a resource whose second configuration changes all that can be changed
// at the same time.
type changing struct {
	name, kind, path string
	given, altered   map[string]any
	grows            bool // and does not shrink: the first configuration cannot be declared again
}

func changings() []changing {
	cluster, pool := maps.Clone(clusterValues), gpu(maps.Clone(poolValues))
	if !all { // a few that are each of another sort
		cluster = map[string]any{}
		for _, name := range []string{"release_channel", "authorized_networks", "maintenance_window", "maintenance_exclusions", "labels"} {
			cluster[name] = clusterValues[name]
		}
	}
	if !all {
		for name := range poolValues {
			if !slices.Contains([]string{"labels", "kubelet", "drain", "node_count", "max_surge", "accelerator"}, name) {
				delete(pool, name)
			}
		}
		pool["machine_type"] = "g2-standard-8"
	}
	delete(pool, "version")    // that of the cluster
	delete(pool, "zones")      // the cluster has one
	delete(pool, "blue_green") // it takes the place of max_surge
	speed := map[string]any{"size_gb": 200, "iops": 5000, "throughput": 300, "labels": map[string]any{"team": "x"}}
	more := map[string]any{"labels": map[string]any{"team": "x"}}
	return []changing{
		{"cluster", "gke_cluster", labPath, lab(nil), lab(cluster), false},
		{"pool", "gke_node_pool", labPath + "/nodePools/gpu", gpu(nil), pool, false},
		{"disk", "gke_disk", diskPath, data(nil), data(speed), true},
		{"regional disk", "gke_disk", "projects/stoke-test/regions/us-central1/disks/scratch",
			map[string]any{"name": "scratch", "location": "us-central1", "type": "pd-ssd", "size_gb": 100, "replica_zones": []any{zone, "us-central1-c"}},
			map[string]any{"name": "scratch", "location": "us-central1", "type": "pd-ssd", "size_gb": 200, "replica_zones": []any{zone, "us-central1-c"}, "labels": map[string]any{"team": "x"}}, true},
		{"firewall rule", "gke_firewall_rule", rulePath, ssh(nil), ssh(map[string]any{"priority": 900, "disabled": true, "description": "x"}), false},
		{"snapshot", "gke_disk_snapshot", backupPath, backup(nil), backup(more), false},
		{"share", "gke_filestore", sharePath, shared(nil), shared(map[string]any{"capacity_gb": 2048, "description": "x", "labels": map[string]any{"team": "x"}}), true},
	}
}

// TestPlanAfterARefusedApply: each call of each apply of each resource is refused once,
// without the tag e2e one call of refusals. The next plan has all that is missing, also
// where the first configuration is declared again in between, and Google has it after the
// next apply.
func TestPlanAfterARefusedApply(t *testing.T) {
	t.Parallel()
	for _, of := range changings() {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			for n, met := 0, true; met && !t.Failed(); n += refusals {
				met = newWorld(t, "grpc", gcptest.Options{}).refusedAt(of, n)
			}
		})
	}
}

// refusedAt is one life in which the call n of each apply is refused. It reports whether
// one was.
func (w *world) refusedAt(of changing, n int) (met bool) {
	w.Helper()
	switch of.kind {
	case "gke_node_pool":
		w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"release_channel": "NONE"})))
	case "gke_disk_snapshot":
		w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
	}
	it := thing{kind: of.kind}
	for step, given := range []map[string]any{of.given, of.altered} {
		config := w.conf(of.kind, given)
		pl := w.plan(it, config)
		if pl.Diagnostics.HasErrors() {
			w.Fatal(pl.Diagnostics)
		}
		got, r, refused := w.refusing(n, pl)
		met = met || refused
		title := fmt.Sprintf("step %d, call %d", step, n)
		if step > 0 && r && n%2 == 1 && !of.grows {
			got = w.asDeclared(of, got, of.given, title+", then taken back")
		}
		if it = w.asDeclared(of, got, given, title); w.Failed() {
			return false
		}
	}
	w.google.Fail(gcptest.Fault{Method: "*", Skip: n, Code: codes.PermissionDenied})
	r := w.destroy(it)
	w.google.Heal()
	if r.Diagnostics.HasErrors() {
		now := w.refresh(it)
		if !now.state.IsNull() {
			if r = w.destroy(now); r.Diagnostics.HasErrors() {
				w.Errorf("call %d: the next destroy says %v", n, r.Diagnostics)
			}
		}
	}
	if now := w.refresh(it); !now.state.IsNull() {
		w.Errorf("call %d: it is still there after the destroy", n)
	}
	return met
}

// refusing applies, with the call n refused. failed tells that the apply says so, refused that
// there was such a call.
func (w *world) refusing(n int, pl planned) (got thing, failed, refused bool) {
	w.Helper()
	before := len(w.google.Calls())
	w.google.Fail(gcptest.Fault{Method: "*", Skip: n, Code: codes.PermissionDenied})
	w.applies++
	got, r := w.apply(fmt.Sprint("refused-", w.applies), pl)
	w.google.Heal()
	if failed = r.Diagnostics.HasErrors(); failed && !got.state.IsNull() && !r.Keep && pl.prior.state.IsNull() { // stored as tainted
		if gone := w.destroy(w.refresh(got)); gone.Diagnostics.HasErrors() {
			w.Fatal(gone.Diagnostics)
		}
		got = thing{kind: got.kind}
	}
	return got, failed, len(w.google.Calls())-before > n
}

// asDeclared plans and applies after an apply that may have failed, and checks with an import,
// which takes nothing from the state, that Google has all of it.
func (w *world) asDeclared(of changing, got thing, given map[string]any, title string) thing {
	w.Helper()
	config := w.conf(of.kind, given)
	if got.state != cty.NilVal && !got.state.IsNull() {
		got = w.refresh(got)
	}
	if got.state == cty.NilVal || got.state.IsNull() {
		got = thing{kind: of.kind}
	}
	it := w.empty(w.make(got, config), config)
	w.mutations()
	w.make(w.importing(of.kind, of.path), config)
	if calls := w.mutations(); len(calls) > 0 {
		w.Errorf("%s: after the next apply %v is missing", title, calls)
	}
	return it
}
