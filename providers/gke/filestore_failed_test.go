package gke

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestFilestoreEndedBadly: an instance stays in error when it could not be made. One
// that ended so while stoke was dead passes for no good one: it is made anew.
func TestFilestoreEndedBadly(t *testing.T) {
	const create = "file.projects.locations.instances.create"
	for name, seen := range map[string]bool{"seen while it is made": true, "seen when it has ended": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			conf := w.conf("gke_filestore", shared(nil))
			pl := w.plan(thing{kind: "gke_filestore"}, w.conf("gke_filestore", shared(map[string]any{"timeouts": map[string]any{"create": "1s"}})))
			w.google.Slow(create, -1, 1)
			w.google.Fail(gcptest.Fault{Method: create, When: gcptest.Halfway, Code: codes.Internal})
			w.apply("op-1", pl) // which is killed
			if !seen {
				w.google.Settle()
			}
			it := w.settle("op-1", pl)
			if seen {
				update := w.plan(it, conf)
				w.google.Settle()
				_, r := w.apply("op-2", update)
				if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "ERROR") {
					t.Fatalf("an instance in error passes for a good one: %v", r.Diagnostics)
				}
				it = thing{kind: it.kind, state: r.State, private: r.Private}
			}
			again := w.plan(w.refresh(it), conf)
			if got := again.replaced(); !slices.Equal(got, []string{"status"}) || again.Diagnostics.HasErrors() {
				t.Fatalf("it is replaced because of %v: %v", got, again.Diagnostics)
			}
			if r := w.destroy(it); r.Diagnostics.HasErrors() {
				t.Fatal(r.Diagnostics)
			}
			w.empty(w.make(thing{kind: it.kind}, conf), conf)
		})
	}
}

// TestDiskSpeedFixed: what Google never changes about a disk, the plan refuses.
func TestDiskSpeedFixed(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	fast := func(iops int) map[string]any {
		return map[string]any{"name": "fast", "type": "pd-extreme", "size_gb": 500, "iops": iops}
	}
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", fast(20000)))
	w.empty(it, w.conf(it.kind, fast(20000)))
	pl := w.plan(it, w.conf(it.kind, fast(30000)))
	if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != "IOPS of pd-extreme do not change" {
		t.Errorf("plans %v", pl.Diagnostics)
	}
}
