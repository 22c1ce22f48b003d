package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// objectCase is a kind of object of a REST API with its whole life.
type objectCase struct {
	kind, path string
	create     string         // the call that makes it
	remove     string         // the call that deletes it
	given      map[string]any // the least that it is declared by
	imports    []string       // ids by which it is known
	changes    []objectChange
	fixed      map[string]any // values that make it another object
	drift      func(value any) any
	drifted    string // the attribute that drift changes
}

// objectChange is a change in place, which is one call.
type objectChange struct {
	attribute, call string
	value           any
}

const (
	backupPath = "projects/stoke-test/global/snapshots/backup"
	sharePath  = "projects/stoke-test/locations/" + zone + "/instances/shared"
	diskPath   = "projects/stoke-test/zones/" + zone + "/disks/data"
	rulePath   = "projects/stoke-test/global/firewalls/ssh"
)

func backup(more map[string]any) map[string]any {
	all := map[string]any{"name": "backup", "disk": diskPath}
	maps.Copy(all, more)
	return all
}

func shared(more map[string]any) map[string]any {
	all := map[string]any{"name": "shared", "tier": "BASIC_HDD", "share": "data", "capacity_gb": 1024, "export": []any{}}
	maps.Copy(all, more)
	return all
}

// diskCase is a Hyperdisk, zonal or regional.
func diskCase(path, calls string, given map[string]any, imports []string, fixed map[string]any) objectCase {
	return objectCase{
		kind: "gke_disk", path: path, create: calls + "insert", remove: calls + "delete", given: given, imports: append(imports, path),
		changes: []objectChange{
			{"size_gb", calls + "update", 200},
			{"iops", calls + "update", 5000},
			{"throughput", calls + "update", 300},
			{"access_mode", calls + "update", "READ_ONLY_MANY"},
			{"labels", calls + "setLabels", map[string]any{"team": "x"}},
			{"labels", calls + "setLabels", nil},
		},
		fixed: fixed,
		drift: func(value any) any {
			d := value.(*compute.Disk)
			d.Labels = map[string]string{"by": "hand"}
			return d
		},
		drifted: "labels",
	}
}

func firewallCase() objectCase {
	const patch = "compute.firewalls.patch"
	return objectCase{
		kind: "gke_firewall_rule", path: rulePath, create: "compute.firewalls.insert", remove: "compute.firewalls.delete",
		given:   ssh(nil),
		imports: []string{rulePath, "stoke-test/ssh", "ssh"},
		changes: []objectChange{
			{"description", patch, "x"},
			{"description", patch, ""},
			{"source_ranges", patch, []any{"10.1.0.0/16", "10.2.0.0/16"}},
			{"source_tags", patch, []any{"bastion"}},
			{"source_ranges", patch, []any{}},
			{"source_ranges", patch, []any{"10.1.0.0/16", "203.0.113.7"}},
			{"source_tags", patch, nil},
			{"target_tags", patch, []any{"gpu"}},
			{"target_tags", patch, nil},
			{"source_service_accounts", patch, []any{"a@stoke-test.iam.gserviceaccount.com"}},
			{"source_service_accounts", patch, nil},
			{"target_service_accounts", patch, []any{"b@stoke-test.iam.gserviceaccount.com"}},
			{"target_service_accounts", patch, nil},
			{"destination_ranges", patch, []any{"10.8.0.0/16"}},
			{"destination_ranges", patch, nil},
			{"priority", patch, 0},
			{"disabled", patch, true},
			{"log", patch, true},
			{"log", patch, false},
			{"allow", patch, []any{map[string]any{"protocol": "udp", "ports": []any{"53", "100-200"}}}},
		},
		fixed: map[string]any{"name": "other", "network": "other", "project": elsewhereProject},
		drift: func(value any) any {
			f := value.(*compute.Firewall)
			f.SourceRanges = []string{"0.0.0.0/0"}
			return f
		},
		drifted: "source_ranges",
	}
}

func objectCases() []objectCase {
	wide := map[string]any{"name": "wide", "location": "us-central1", "type": "hyperdisk-balanced-high-availability", "size_gb": 100, "replica_zones": []any{zone, "us-central1-c"}}
	zonal := diskCase(diskPath, "compute.disks.", data(nil), []string{"stoke-test/" + zone + "/data", zone + "/data", "data"},
		map[string]any{"name": "other", "location": "us-central1-b", "type": "pd-ssd", "snapshot": "s", "replica_zones": []any{zone, "us-central1-c"}, "project": elsewhereProject})
	regional := diskCase("projects/stoke-test/regions/us-central1/disks/wide", "compute.regionDisks.", wide, []string{"stoke-test/us-central1/wide", "us-central1/wide"},
		map[string]any{"name": "other", "location": "europe-west4", "type": "pd-ssd", "snapshot": "s", "replica_zones": []any{zone, "us-central1-b"}, "project": elsewhereProject})
	return append(restCases(), zonal, regional, firewallCase())
}

func restCases() []objectCase {
	return []objectCase{{
		kind: "gke_disk_snapshot", path: backupPath, create: "compute.snapshots.insert", remove: "compute.snapshots.delete",
		given:   backup(nil),
		imports: []string{backupPath, "stoke-test/backup", "backup"},
		changes: []objectChange{
			{"labels", "compute.snapshots.setLabels", map[string]any{"team": "x"}},
			{"labels", "compute.snapshots.setLabels", nil},
		},
		fixed: map[string]any{"name": "other", "disk": "other", "type": "ARCHIVE", "storage_locations": []any{"eu"}, "description": "x", "project": elsewhereProject},
		drift: func(value any) any {
			s := value.(*compute.Snapshot)
			s.Labels = map[string]string{"by": "hand"}
			return s
		},
		drifted: "labels",
	}, {
		kind: "gke_filestore", path: sharePath, create: "file.projects.locations.instances.create", remove: "file.projects.locations.instances.delete",
		given:   shared(nil),
		imports: []string{sharePath, "stoke-test/" + zone + "/shared", zone + "/shared", "shared"},
		changes: []objectChange{
			{"capacity_gb", "file.projects.locations.instances.patch", 2048},
			{"description", "file.projects.locations.instances.patch", "What all read."},
			{"description", "file.projects.locations.instances.patch", ""},
			{"labels", "file.projects.locations.instances.patch", map[string]any{"team": "x"}},
			{"labels", "file.projects.locations.instances.patch", nil},
			{"export", "file.projects.locations.instances.patch", []any{
				map[string]any{"ip_ranges": []any{"10.1.0.0/16", "10.0.0.0/16"}, "access_mode": "READ_ONLY"},
				map[string]any{"ip_ranges": []any{"10.2.0.0/16"}, "squash_mode": "ROOT_SQUASH", "anonymous_uid": 1000},
			}},
			{"export", "file.projects.locations.instances.patch", []any{}},
			{"deletion_protection", "file.projects.locations.instances.patch", true},
			{"deletion_protection", "file.projects.locations.instances.patch", false},
		},
		fixed: map[string]any{"name": "other", "location": "us-central1-b", "tier": "BASIC_SSD", "protocol": "NFS_V4_1", "share": "other", "network": "other",
			"connect_mode": "PRIVATE_SERVICE_ACCESS", "reserved_ip_range": "10.9.0.0/29", "kms_key": "projects/p/locations/l/keyRings/r/cryptoKeys/k", "project": elsewhereProject},
		drift: func(value any) any {
			f := value.(*file.Instance)
			f.FileShares = []*file.FileShareConfig{{Name: "data", CapacityGb: 1536}}
			return f
		},
		drifted: "capacity_gb",
	}}
}

// withDisk is a world in which there is the disk that snapshots are taken of.
func withDisk(t *testing.T) *world {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
	w.mutations()
	return w
}

// world is one in which the object can be made.
func (c objectCase) world(t *testing.T) *world {
	if c.kind == "gke_disk_snapshot" {
		return withDisk(t)
	}
	return newWorld(t, "grpc", gcptest.Options{})
}

// marked tells whether an object has a mark.
func marked(o *gcptest.Object) bool {
	return o != nil && (o.Labels["stoke-operation"] != "" || strings.Contains(o.Description, "stoke-operation: "))
}

func (w *world) object(path string) *gcptest.Object {
	for _, o := range w.google.Inventory() {
		if o.Path == path {
			return &o
		}
	}
	return nil
}

func TestObjectLife(t *testing.T) {
	for _, test := range objectCases() {
		t.Run(test.path, func(t *testing.T) {
			w := test.world(t)
			given := maps.Clone(test.given)
			it := w.make(thing{kind: test.kind}, w.conf(test.kind, given))
			if got := w.mutations(); !slices.Equal(got, []string{test.create}) {
				t.Errorf("made by %v", got)
			}
			if strings.Contains(it.state.GoString(), "stoke-operation") || !marked(w.object(test.path)) {
				t.Error("the mark is in the state, or not on the object")
			}
			it = w.empty(it, w.conf(it.kind, given))
			for _, id := range test.imports {
				w.empty(w.importing(it.kind, id), w.conf(it.kind, given))
				timed := w.conf(it.kind, with(given, map[string]any{"timeouts": map[string]any{"delete": "2h"}}))
				w.empty(w.importingAs(timed, it.kind, id), timed)
			}
			w.mutations()
			for _, change := range test.changes {
				w.google.Pass(4 * time.Hour) // a Hyperdisk's size and speed change no sooner
				given[change.attribute] = change.value
				pl := w.plan(it, w.conf(it.kind, given))
				if pl.noop() || len(pl.Replace) > 0 {
					t.Errorf("%s = %v: replaced because of %v", change.attribute, change.value, pl.replaced())
				}
				it = w.make(it, w.conf(it.kind, given))
				if got := w.mutations(); !slices.Equal(got, []string{change.call}) {
					t.Errorf("%s is changed by %v", change.attribute, got)
				}
				it = w.empty(it, w.conf(it.kind, given))
				if !marked(w.object(test.path)) {
					t.Errorf("%s takes the mark away", change.attribute)
				}
			}
			w.google.Put(test.path, test.drift(w.object(test.path).Value))
			now := w.refresh(it)
			if now.state.GetAttr(test.drifted).RawEquals(it.state.GetAttr(test.drifted)) {
				t.Errorf("a change of %s by hand is not seen", test.drifted)
			}
			w.mutations()
			it = w.make(now, w.conf(it.kind, given))
			if got := w.mutations(); len(got) != 1 {
				t.Errorf("a change of %s by hand is mended by %v", test.drifted, got)
			}
			it = w.empty(it, w.conf(it.kind, given))
			w.remade(it, w.conf(it.kind, given), test.path)
			w.mutations()
			if r := w.destroy(it); r.Diagnostics.HasErrors() {
				t.Error(r.Diagnostics)
			}
			if got := w.mutations(); !slices.Equal(got, []string{test.remove}) || w.object(test.path) != nil {
				t.Errorf("destroyed by %v", got)
			}
			if now := w.refresh(it); !now.state.IsNull() {
				t.Error("it is still there")
			}
			if r := w.destroy(it); r.Diagnostics.HasErrors() {
				t.Errorf("what is gone cannot be destroyed: %v", r.Diagnostics)
			}
		})
	}
}

// TestObjectUnsure: calls without an answer make one object, and change and delete
// it once; another operation's is never taken over.
func TestObjectUnsure(t *testing.T) {
	for _, test := range objectCases() {
		for _, when := range []gcptest.When{gcptest.Before, gcptest.After} {
			w := test.world(t)
			for _, method := range []string{test.create, test.changes[0].call, test.remove} {
				w.google.Fail(gcptest.Fault{Method: method, When: when})
			}
			w.google.Fail(gcptest.Fault{Method: "*perations.get"})
			w.google.Fail(gcptest.Fault{Method: "file.projects.locations.operations.get"})
			given := maps.Clone(test.given)
			it := w.make(thing{kind: test.kind}, w.conf(test.kind, given))
			change := test.changes[0]
			given[change.attribute] = change.value
			it = w.make(it, w.conf(it.kind, given))
			it = w.empty(it, w.conf(it.kind, given))
			if r := w.destroy(it); r.Diagnostics.HasErrors() || w.object(test.path) != nil {
				t.Errorf("%s %v: %v", test.kind, when, r.Diagnostics)
			}
		}
		w := test.world(t)
		config := w.conf(test.kind, test.given)
		pl := w.plan(thing{kind: test.kind}, config)
		if found := w.settle("op-1", pl); !found.state.IsNull() {
			t.Errorf("%s: found before it was made", test.kind)
		}
		it, r := w.apply("op-1", pl)
		if r.Diagnostics.HasErrors() {
			t.Fatal(r.Diagnostics)
		}
		if found := w.settle("op-1", pl); found.state.IsNull() || !found.state.GetAttr("id").RawEquals(it.state.GetAttr("id")) {
			t.Errorf("%s: not found by its mark", test.kind)
		}
		if found := w.settle("another", pl); !found.state.IsNull() {
			t.Errorf("%s: another operation's object is taken over", test.kind)
		}
		if _, r := w.apply("another", pl); !r.Diagnostics.HasErrors() || !r.State.IsNull() || !strings.Contains(r.Diagnostics[0].Detail, "Import it") {
			t.Errorf("%s: somebody else's object: %v", test.kind, r.Diagnostics)
		}
	}
}

// TestObjectLong: a create that outlives its time is kept as still running, and the
// next apply goes on with it; so is one that an apply was killed in.
func TestObjectLong(t *testing.T) {
	for _, test := range objectCases() {
		t.Run(test.path, func(t *testing.T) {
			w := test.world(t)
			w.google.Slow(test.create, -1, 1)
			given := maps.Clone(test.given)
			given["timeouts"] = map[string]any{"create": "1s"}
			config := w.conf(test.kind, given)
			pl := w.plan(thing{kind: test.kind}, config)
			it, r := w.apply("op-1", pl)
			if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Summary, "still running") || !r.Keep || it.state.IsNull() {
				t.Fatalf("kept %v: %v", r.Keep, r.Diagnostics)
			}
			if len(w.steps) == 0 {
				t.Error("nothing was said while it was waited for")
			}
			settled := w.settle("op-1", pl) // as after a kill
			w.google.Settle()
			for _, from := range []thing{it, settled} {
				w.empty(w.make(w.refresh(from), config), config)
			}
			if n := len(w.google.Calls(test.create)); n != 1 {
				t.Errorf("%d creates", n)
			}
		})
	}
}

// TestFilestoreTiers: what a tier does not do is said before anything is touched.
func TestFilestoreTiers(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.provider = map[string]cty.Value{"region": cty.StringVal("us-central1")}
	for _, test := range []struct {
		name           string
		before, given  map[string]any
		summary, where string
	}{
		{"basic in a region", nil, shared(map[string]any{"location": "us-central1"}), "Tier is not for this location", ""},
		{"regional in a zone", nil, shared(map[string]any{"tier": "REGIONAL", "location": zone}), "Tier is not for this location", ""},
		{"regional without a place", nil, shared(map[string]any{"tier": "REGIONAL", "name": "wide"}), "", "us-central1"},
		{"basic shrinks", shared(map[string]any{"capacity_gb": 2048}), shared(nil), "Instances of this tier do not shrink", ""},
		{"zonal shrinks", shared(map[string]any{"name": "zonal", "tier": "ZONAL", "capacity_gb": 2048}), shared(map[string]any{"name": "zonal", "tier": "ZONAL"}), "", zone},
		{"protected", shared(map[string]any{"name": "kept", "deletion_protection": true}), shared(map[string]any{"name": "kept", "deletion_protection": true, "tier": "BASIC_SSD", "capacity_gb": 2560}), "Filestore instance is protected", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			it := thing{kind: "gke_filestore"}
			if test.before != nil {
				it = w.make(it, w.conf(it.kind, test.before))
			}
			pl := w.plan(it, w.conf("gke_filestore", test.given))
			if test.summary != "" {
				if !pl.Diagnostics.HasErrors() || pl.Diagnostics[0].Summary != test.summary {
					t.Errorf("plans %v", pl.Diagnostics)
				}
				return
			}
			if it = w.make(it, w.conf(it.kind, test.given)); it.state.GetAttr("location").AsString() != test.where {
				t.Errorf("made in %#v", it.state.GetAttr("location"))
			}
		})
	}
}

// TestDiskLetGo: a disk that a machine has which is being deleted is waited for, and
// a machine that only stops is named.
func TestDiskLetGo(t *testing.T) {
	node := "projects/stoke-test/zones/" + zone + "/instances/node-1"
	for _, status := range []string{"STOPPING", "TERMINATED", ""} {
		w := newWorld(t, "grpc", gcptest.Options{})
		it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
		if err := w.google.Attach(diskPath, "node-1", true); err != nil {
			t.Fatal(err)
		}
		if w.google.Remove(node); status != "" {
			w.google.Put(node, &compute.Instance{Name: "node-1", Status: status})
		}
		done := make(chan error, 1)
		go func() { // the node goes once it has been looked at a few times
			for len(w.google.Calls("compute.instances.get")) < 3 && len(w.google.Calls("compute.disks.delete")) == 0 {
				if w.Context().Err() != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			done <- w.google.Attach(diskPath, "node-1", false)
		}()
		r := w.destroy(it)
		if status == "TERMINATED" {
			if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "attached to node-1") {
				t.Errorf("a disk of a machine that is off: %v", r.Diagnostics)
			}
			continue
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if r.Diagnostics.HasErrors() || w.object(diskPath) != nil {
			t.Errorf("a disk of a machine that is %q: %v", status, r.Diagnostics)
		}
	}
}

// TestDiskLeaves: a plan that deletes a disk says which snapshot it leaves.
func TestDiskLeaves(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	given := data(map[string]any{"snapshot_before_destroy": true})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", given))
	other := maps.Clone(given)
	other["type"] = "pd-ssd"
	for name, config := range map[string]cty.Value{"destroy": cty.NullVal(it.state.Type()), "replace": w.conf(it.kind, other), "keep": w.conf(it.kind, given)} {
		var notes []string
		ctx := providers.WithCall(t.Context(), &providers.Call{Note: func(n providers.Note) { notes = append(notes, n.Text) }})
		p := w.phase()
		schema, _ := p.Schema(ctx)
		next := config
		if !config.IsNull() {
			next = proposed(schema.Resources[it.kind].Block.Attributes, it.state, config)
		}
		p.Plan(ctx, providers.PlanRequest{Type: it.kind, Prior: it.state, Config: config, Proposed: next, Private: it.private})
		if said := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "bills") }); said != (name != "keep") {
			t.Errorf("%s says %q", name, notes)
		}
	}
}
