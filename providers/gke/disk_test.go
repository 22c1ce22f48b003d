package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

func data(more map[string]any) map[string]any {
	all := map[string]any{"name": "data", "type": "hyperdisk-balanced", "size_gb": 100}
	maps.Copy(all, more)
	return all
}

func TestDiskShrink(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
	pl := w.plan(it, w.conf(it.kind, data(map[string]any{"size_gb": 50})))
	if !pl.Diagnostics.HasErrors() || pl.Diagnostics[0].Summary != "Disks do not shrink" {
		t.Errorf("a smaller disk plans %v", pl.Diagnostics)
	}
}

// TestDiskGrows: a Hyperdisk's size and speed change together, as Google takes some
// of them only so, and either once in four hours; a persistent disk is resized.
func TestDiskGrows(t *testing.T) {
	for name, test := range map[string]struct {
		before, after map[string]any
		calls         []string
	}{
		"too slow for the size":  {map[string]any{"size_gb": 4, "iops": 2000}, map[string]any{"size_gb": 6, "iops": 3000}, []string{"compute.disks.update"}},
		"too fast for the old":   {map[string]any{"size_gb": 10, "iops": 5000}, map[string]any{"size_gb": 20, "iops": 10000, "throughput": 2000}, []string{"compute.disks.update"}},
		"speed alone, both down": {map[string]any{"iops": 20000, "throughput": 2000}, map[string]any{"iops": 3000, "throughput": 140}, []string{"compute.disks.update"}},
		"with labels":            {nil, map[string]any{"size_gb": 200, "labels": map[string]any{"team": "x"}}, []string{"compute.disks.update", "compute.disks.setLabels"}},
		"a persistent disk":      {map[string]any{"type": "pd-balanced"}, map[string]any{"type": "pd-balanced", "size_gb": 200}, []string{"compute.disks.resize"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(test.before)))
			w.mutations()
			after := w.conf(it.kind, data(test.after))
			it = w.make(it, after)
			if got := w.mutations(); !slices.Equal(got, test.calls) {
				t.Errorf("changed by %v", got)
			}
			w.empty(it, after)
		})
	}
}

// TestHyperdiskTooSoon: a change that Google refuses for now is named, and made by a
// later apply.
func TestHyperdiskTooSoon(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
	it = w.make(it, w.conf(it.kind, data(map[string]any{"size_gb": 200})))
	more := w.conf(it.kind, data(map[string]any{"size_gb": 300}))
	now, r := w.apply("soon", w.plan(it, more))
	if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "once in 4 hours") {
		t.Errorf("a second change: %v", r.Diagnostics)
	}
	w.google.Pass(4 * time.Hour)
	w.empty(w.make(w.refresh(now), more), more)
}

// TestDiskSnapshotBefore: what is destroyed is kept under a name that can be found
// again, also where a destroy is repeated.
func TestDiskSnapshotBefore(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(map[string]any{"snapshot_before_destroy": true})))
	w.mutations()
	w.google.Fail(gcptest.Fault{Method: "compute.disks.delete", Code: 7, Message: "Required 'compute.disks.delete' permission"})
	if r := w.destroy(it); !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "role") {
		t.Errorf("a destroy without the right: %v", r.Diagnostics)
	}
	if r := w.destroy(it); r.Diagnostics.HasErrors() {
		t.Error(r.Diagnostics)
	}
	if got := w.mutations(); !slices.Equal(got, []string{"compute.snapshots.insert", "compute.disks.delete"}) {
		t.Errorf("destroyed by %v", got)
	}
}

// TestDiskSnapshotFails: a snapshot that came to nothing is no other destroy's answer.
func TestDiskSnapshotFails(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(map[string]any{"snapshot_before_destroy": true})))
	w.google.Fail(gcptest.Fault{Method: "compute.snapshots.insert", When: gcptest.Halfway, Code: codes.Internal})
	if r := w.destroy(it); !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "disk is still there") {
		t.Errorf("a disk whose snapshot failed: %v", r.Diagnostics)
	}
	if r := w.destroy(it); r.Diagnostics.HasErrors() || w.object(diskPath) != nil {
		t.Errorf("the next destroy: %v", r.Diagnostics)
	}
}

// TestDiskInUse: a disk that is attached is neither kept nor deleted, and what was
// written to it since an earlier snapshot is in another one.
func TestDiskInUse(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	given := data(map[string]any{"snapshot_before_destroy": true})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", given))
	w.google.Fail(gcptest.Fault{Method: "compute.disks.delete", Code: 7, Message: "Required 'compute.disks.delete' permission"})
	if r := w.destroy(it); !r.Diagnostics.HasErrors() {
		t.Fatal("a destroy without the right")
	}
	name := it.state.GetAttr("id").AsString()
	if err := w.google.Attach(name, "node-1", true); err != nil {
		t.Fatal(err)
	}
	w.mutations()
	if r := w.destroy(it); !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "attached to node-1") || len(w.mutations()) > 0 {
		t.Errorf("a disk in use: %v", r.Diagnostics)
	}
	if err := w.google.Attach(name, "node-1", false); err != nil {
		t.Fatal(err)
	}
	if r := w.destroy(it); r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	if got := w.mutations(); !slices.Equal(got, []string{"compute.snapshots.insert", "compute.disks.delete"}) {
		t.Errorf("destroyed by %v", got)
	}
}

// TestCreateCutOff: a create whose answer is lost, with nobody to ask, is kept, and
// the next apply goes on with it.
func TestCreateCutOff(t *testing.T) {
	for _, test := range []struct {
		kind, create, read string
		given              map[string]any
	}{
		{"gke_cluster", "CreateCluster", "GetCluster", lab(nil)},
		{"gke_disk", "compute.disks.insert", "compute.disks.get", data(nil)},
	} {
		t.Run(test.kind, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			config := w.conf(test.kind, test.given)
			pl := w.plan(thing{kind: test.kind}, config)
			w.google.Fail(gcptest.Fault{Method: test.create, When: gcptest.After})
			w.google.Fail(gcptest.Fault{Method: test.read, Skip: 1, Times: 8, Code: 13})
			it, r := w.apply("op-1", pl)
			if !r.Diagnostics.HasErrors() || !r.Keep || it.state.IsNull() {
				t.Fatalf("kept %v: %v", r.Keep, r.Diagnostics)
			}
			w.google.Settle()
			it = w.make(w.refresh(it), config)
			w.empty(it, config)
			if n := len(w.google.Calls(test.create)); n != 1 {
				t.Errorf("%d creates", n)
			}
		})
	}
}

// TestDiskUnsure: lost answers make one disk, and nobody else's is taken.
func TestDiskUnsure(t *testing.T) {
	for _, when := range []gcptest.When{gcptest.Before, gcptest.After} {
		w := newWorld(t, "grpc", gcptest.Options{})
		for _, method := range []string{"compute.disks.insert", "compute.disks.resize", "compute.disks.setLabels", "compute.disks.delete", "compute.zoneOperations.get"} {
			w.google.Fail(gcptest.Fault{Method: method, When: when})
		}
		it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
		grown := data(map[string]any{"size_gb": 300, "labels": map[string]any{"a": "b"}})
		it = w.make(it, w.conf(it.kind, grown))
		it = w.empty(it, w.conf(it.kind, grown))
		if r := w.destroy(it); r.Diagnostics.HasErrors() {
			t.Errorf("%v: %v", when, r.Diagnostics)
		}
	}
	w := newWorld(t, "grpc", gcptest.Options{})
	config := w.conf("gke_disk", data(nil))
	pl := w.plan(thing{kind: "gke_disk"}, config)
	w.make(thing{kind: "gke_disk"}, config)
	if _, r := w.apply("another", pl); !r.Diagnostics.HasErrors() || !r.State.IsNull() {
		t.Errorf("somebody else's disk: %v", r.Diagnostics)
	}
	if found := w.settle("another", pl); !found.state.IsNull() {
		t.Error("another operation's disk is taken over")
	}
	w.google.SetQuota("us-central1", "SSD_TOTAL_GB", 120)
	_, r := w.apply("third", w.plan(thing{kind: "gke_disk"}, w.conf("gke_disk", data(map[string]any{"name": "more"}))))
	if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Summary, "quota") {
		t.Errorf("a missing quota says %v", r.Diagnostics)
	}
}
