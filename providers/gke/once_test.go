package gke

import (
	"slices"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestChangedOnceEach: whatever is changed, and whether its answer is lost or the apply
// gives up waiting, there is one operation for it. What is taken out is no other case.
func TestChangedOnceEach(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	bare := lab(nil)
	it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", bare))
	w.google.Forget()
	for _, row := range clusterTable {
		value, ok := clusterValues[row.attribute]
		if !ok {
			continue
		}
		given := with(bare, map[string]any{row.attribute: value})
		w.google.Fail(gcptest.Fault{Method: row.call, When: gcptest.After, Code: codes.DeadlineExceeded})
		it = w.empty(w.make(it, w.conf(it.kind, given)), w.conf(it.kind, given))
		w.startedOne(row.attribute, "whose answer was lost")
		switch row.attribute {
		case "authorized_networks", "maintenance_window", "maintenance_exclusions", "labels":
			w.google.Fail(gcptest.Fault{Method: row.call, When: gcptest.After, Code: codes.DeadlineExceeded})
			it = w.empty(w.make(it, w.conf(it.kind, bare)), w.conf(it.kind, bare))
			w.startedOne(row.attribute, "taken out, whose answer was lost")
			it = w.givenUp(it, row.call, given)
			w.startedOne(row.attribute, "given up waiting for")
		}
		bare = given
	}
}

// startedOne checks that a change was one operation.
func (w *world) startedOne(attribute, what string) {
	w.Helper()
	n := 0
	for _, c := range w.google.Calls() {
		if c.Mutating && c.Operation != "" {
			n++
		}
	}
	if n != 1 {
		w.Errorf("%s, %s: %d operations", attribute, what, n)
	}
	w.google.Forget()
}

// givenUp has an apply give up waiting for a change, and the next one finish it.
func (w *world) givenUp(it thing, call string, given map[string]any) thing {
	w.Helper()
	w.google.Slow(call, -1, 1)
	brief := w.conf(it.kind, with(given, map[string]any{"timeouts": map[string]any{"update": "1s"}}))
	left, r := w.apply("", w.plan(it, brief))
	if !r.Diagnostics.HasErrors() {
		w.Fatalf("%s did not take long", call)
	}
	again := w.plan(w.refresh(left), w.conf(it.kind, given)) // which sees what was before
	w.google.Settle()
	it, r = w.apply("", again)
	if r.Diagnostics.HasErrors() {
		w.Fatal(r.Diagnostics)
	}
	return w.empty(it, w.conf(it.kind, given))
}

// TestPoolChangedOnceEach is the same of a pool, whose changes may each make all its
// nodes anew; over REST it is one row of each call, unless all are looked at.
func TestPoolChangedOnceEach(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		it, bare := w.outdated()
		w.google.Forget()
		values := with(poolValues, map[string]any{"autoscaling": map[string]any{"min": 1, "max": 3}})
		var seen []string
		for _, row := range poolTable {
			if w.transport == cloud.REST && !all && slices.Contains(seen, row.call) && row.attribute != "labels" {
				continue
			}
			seen = append(seen, row.call)
			given := with(bare, map[string]any{row.attribute: values[row.attribute]})
			if row.attribute == "autoscaling" {
				given["node_count"] = nil
			}
			lose := func(to map[string]any) {
				w.Helper()
				w.google.Fail(gcptest.Fault{Method: row.call, When: gcptest.After, Code: codes.DeadlineExceeded})
				it = w.empty(w.make(it, w.conf(it.kind, to)), w.conf(it.kind, to))
			}
			lose(given)
			w.startedOne(row.attribute, "whose answer was lost")
			switch row.attribute {
			case "labels", "taints", "tags", "resource_labels", "kubelet", "linux", "drain", "blue_green":
				lose(bare)
				w.startedOne(row.attribute, "taken out, whose answer was lost")
				it = w.givenUp(it, row.call, given)
				w.startedOne(row.attribute, "given up waiting for")
			case "autoscaling": // which takes the size along
				bare = with(bare, map[string]any{"node_count": 1})
				lose(bare)
				w.google.Forget()
				continue
			}
			bare = given
		}
	})
}

// TestFirstPoolIsSmall: the pool that a cluster is made with is one node in one zone,
// wherever the cluster is.
func TestFirstPoolIsSmall(t *testing.T) {
	for name, given := range map[string]map[string]any{
		"zonal": {}, "zonal in two zones": {"node_locations": []any{zone, "us-central1-b"}},
		"regional": {"location": "us-central1"}, "regional in two zones": {"location": "us-central1", "node_locations": []any{zone, "us-central1-b"}},
	} {
		w := newWorld(t, "grpc", gcptest.Options{})
		w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(given)))
		for _, o := range w.google.Inventory() {
			if p, ok := o.Value.(*containerpb.NodePool); ok && (o.Nodes != 1 || len(p.GetLocations()) != 1) {
				t.Errorf("%s: %d nodes in %v", name, o.Nodes, p.GetLocations())
			}
		}
	}
}
