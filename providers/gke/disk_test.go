package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

func data(more map[string]any) map[string]any {
	all := map[string]any{"name": "data", "type": "hyperdisk-balanced", "size_gb": 100}
	maps.Copy(all, more)
	return all
}

func TestDiskLife(t *testing.T) {
	for _, test := range []struct {
		name, prefix string
		given        map[string]any
	}{
		{"zonal", "compute.disks.", data(map[string]any{"labels": map[string]any{"team": "x"}})},
		{"regional", "compute.regionDisks.", data(map[string]any{"location": "us-central1", "type": "hyperdisk-balanced-high-availability", "replica_zones": []any{zone, "us-central1-c"}})},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", test.given))
			if got := w.mutations(); !slices.Equal(got, []string{test.prefix + "insert"}) {
				t.Errorf("made by %v", got)
			}
			it = w.empty(it, w.conf(it.kind, test.given))
			w.empty(w.importing("gke_disk", it.state.GetAttr("id").AsString()), w.conf(it.kind, test.given))
			if strings.Contains(it.state.GoString(), "stoke-operation") {
				t.Error("the mark is in the state")
			}
			// Each attribute that can be changed is, by one call.
			for _, change := range []struct {
				attribute, call string
				value           any
			}{{"size_gb", "resize", 200}, {"iops", "update", 5000}, {"throughput", "update", 300}, {"access_mode", "update", "READ_ONLY_MANY"}, {"labels", "setLabels", map[string]any{"team": "y"}}} {
				test.given[change.attribute] = change.value
				it = w.make(it, w.conf(it.kind, test.given))
				if got := w.mutations(); !slices.Equal(got, []string{test.prefix + change.call}) {
					t.Errorf("%s is changed by %v", change.attribute, got)
				}
				it = w.empty(it, w.conf(it.kind, test.given))
			}
			other := maps.Clone(test.given)
			other["type"], other["snapshot"] = "pd-ssd", "s"
			if got := w.plan(it, w.conf(it.kind, other)).replaced(); !slices.Equal(got, []string{"snapshot", "type"}) {
				t.Errorf("replaced because of %v", got)
			}
			if r := w.destroy(it); r.Diagnostics.HasErrors() {
				t.Error(r.Diagnostics)
			}
			if now := w.refresh(it); !now.state.IsNull() {
				t.Error("it is still there")
			}
		})
	}
}

func TestDiskShrink(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
	pl := w.plan(it, w.conf(it.kind, data(map[string]any{"size_gb": 50})))
	if !pl.Diagnostics.HasErrors() || pl.Diagnostics[0].Summary != "Disks do not shrink" {
		t.Errorf("a smaller disk plans %v", pl.Diagnostics)
	}
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

func ssh(more map[string]any) map[string]any {
	all := map[string]any{"name": "ssh", "source_ranges": []any{"10.0.0.0/8"}, "description": "From the office.\nAnd its lab.",
		"allow": []any{map[string]any{"protocol": "tcp", "ports": []any{"22"}}, map[string]any{"protocol": "icmp"}}}
	maps.Copy(all, more)
	return all
}

func TestFirewallRuleLife(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	given := ssh(nil)
	it := w.make(thing{kind: "gke_firewall_rule"}, w.conf("gke_firewall_rule", given))
	it = w.empty(it, w.conf(it.kind, given))
	w.empty(w.importing("gke_firewall_rule", "ssh"), w.conf(it.kind, given))
	if strings.Contains(it.state.GoString(), "stoke-operation") {
		t.Error("the mark is in the state")
	}
	w.mutations()
	for name, value := range map[string]any{"description": "x", "source_ranges": []any{"10.1.0.0/16", "10.2.0.0/16"}, "target_tags": []any{"gpu"}, "priority": 900, "disabled": true, "allow": []any{map[string]any{"protocol": "udp", "ports": []any{"53", "100-200"}}}} {
		given[name] = value
		it = w.make(it, w.conf(it.kind, given))
		if got := w.mutations(); !slices.Equal(got, []string{"compute.firewalls.patch"}) {
			t.Errorf("%s is changed by %v", name, got)
		}
		it = w.empty(it, w.conf(it.kind, given))
	}
	delete(given, "target_tags")
	it = w.make(it, w.conf(it.kind, given))
	it = w.empty(it, w.conf(it.kind, given))
	w.mutations()

	pl := w.plan(it, w.conf(it.kind, ssh(map[string]any{"source_ranges": []any{"0.0.0.0/0"}})))
	if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Severity != providers.Warning {
		t.Errorf("a rule for everybody: %v", pl.Diagnostics)
	}
	if pl := w.plan(it, w.conf(it.kind, ssh(map[string]any{"allow": []any{}}))); !pl.Diagnostics.HasErrors() {
		t.Error("a rule that does nothing is planned")
	}
	pl = w.plan(thing{kind: it.kind}, w.conf(it.kind, given))
	if _, r := w.apply("another", pl); !r.Diagnostics.HasErrors() || !r.State.IsNull() {
		t.Errorf("somebody else's rule: %v", r.Diagnostics)
	}
	if r := w.destroy(it); r.Diagnostics.HasErrors() {
		t.Error(r.Diagnostics)
	}
	if now := w.refresh(it); !now.state.IsNull() {
		t.Error("it is still there")
	}
	for _, when := range []gcptest.When{gcptest.Before, gcptest.After} {
		w.google.Fail(gcptest.Fault{Method: "compute.firewalls.insert", When: when})
		it = w.make(thing{kind: it.kind}, w.conf(it.kind, given))
		w.destroy(it)
	}
}
