package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestNamedOtherwise: an argument that names the same thing by other words, and what
// an import has in full, is no difference; what names another thing makes it anew.
func TestNamedOtherwise(t *testing.T) {
	const url = "https://www.googleapis.com/compute/v1/"
	w := withDisk(t)
	w.make(thing{kind: "gke_disk_snapshot"}, w.conf("gke_disk_snapshot", backup(nil)))
	for _, test := range []struct {
		kind, attribute, id string
		given               map[string]any
		words               []string // the first is declared
		other               string
	}{
		{"gke_firewall_rule", "network", "ssh", ssh(nil), []string{"default", "global/networks/default", "projects/stoke-test/global/networks/default", url + "projects/stoke-test/global/networks/default"}, "projects/elsewhere/global/networks/default"},
		{"gke_filestore", "network", "shared", shared(nil), []string{"default", "projects/stoke-test/global/networks/default"}, "projects/elsewhere/global/networks/default"},
		{"gke_disk", "snapshot", "restored", data(map[string]any{"name": "restored"}), []string{"backup", backupPath, url + backupPath}, "projects/elsewhere/global/snapshots/backup"},
		{"gke_disk", "type", "fast", data(map[string]any{"name": "fast"}), []string{"hyperdisk-balanced", "projects/stoke-test/zones/" + zone + "/diskTypes/hyperdisk-balanced"}, "pd-ssd"},
		{"gke_disk_snapshot", "disk", "second", map[string]any{"name": "second"}, []string{"data", diskPath, url + diskPath}, "projects/stoke-test/zones/us-central1-b/disks/other"},
	} {
		t.Run(test.kind+" "+test.attribute, func(t *testing.T) {
			say := func(words string) cty.Value {
				given := maps.Clone(test.given)
				given[test.attribute] = words
				return w.conf(test.kind, given)
			}
			it := w.empty(w.make(thing{kind: test.kind}, say(test.words[0])), say(test.words[0]))
			for _, words := range test.words {
				w.empty(it, say(words))
				w.empty(w.importing(test.kind, test.id), say(words))
			}
			if got := w.plan(it, say(test.other)).replaced(); !slices.Equal(got, []string{test.attribute}) {
				t.Errorf("%s: replaced because of %v", test.other, got)
			}
		})
	}
}

// TestPlannedID: an object's id is known before it is made, so that what refers to a
// disk that is made anew, such as its snapshots, is none that has to be, too.
func TestPlannedID(t *testing.T) {
	for _, test := range objectCases() {
		w := test.world(t)
		pl := w.plan(thing{kind: test.kind}, w.conf(test.kind, test.given))
		if id := pl.Planned.GetAttr("id"); !id.IsKnown() || id.AsString() != test.path {
			t.Errorf("%s is planned as %#v", test.path, id)
		}
	}
}

// TestUndeclared: what was set by hand and nobody declares is no difference; what is
// not known yet is planned as such.
func TestUndeclared(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	rule := ssh(nil)
	delete(rule, "description")
	r := w.make(thing{kind: "gke_firewall_rule"}, w.conf("gke_firewall_rule", rule))
	f := w.object(rulePath).Value.(*compute.Firewall)
	f.Description = "By hand.\n" + f.Description
	w.google.Put(rulePath, f)
	w.empty(r, w.conf(r.kind, rule))
	r = w.make(w.refresh(r), w.conf(r.kind, ssh(map[string]any{"description": nil, "priority": 900})))
	if now := w.object(rulePath); !strings.HasPrefix(now.Description, "By hand.\n") || !marked(now) {
		t.Errorf("another change makes the description %q", now.Description)
	}

	s := w.make(thing{kind: "gke_filestore"}, w.conf("gke_filestore", shared(nil)))
	i := w.object(sharePath).Value.(*file.Instance)
	i.Description, i.DeletionProtectionEnabled = "By hand.", true
	w.google.Put(sharePath, i)
	s = w.empty(s, w.conf(s.kind, shared(nil)))
	w.empty(w.importing(s.kind, "shared"), w.conf(s.kind, shared(nil)))
	if pl := w.plan(s, cty.NullVal(s.state.Type())); !pl.Diagnostics.HasErrors() {
		t.Error("a share that was protected by hand is destroyed")
	}

	for kind, names := range map[string][]string{"gke_firewall_rule": {"allow", "source_ranges"}, "gke_filestore": {"export"}} {
		for _, name := range names {
			conf := w.conf(kind, map[string]map[string]any{"gke_firewall_rule": ssh(nil), "gke_filestore": shared(nil)}[kind]).AsValueMap()
			conf[name] = cty.UnknownVal(conf[name].Type())
			if pl := w.plan(thing{kind: kind}, cty.ObjectVal(conf)); pl.Diagnostics.HasErrors() || pl.Planned.GetAttr(name).IsKnown() {
				t.Errorf("%s.%s: %v", kind, name, pl.Diagnostics)
			}
		}
	}
}

// TestDataLoss: a plan by which data is lost is refused until that is allowed.
func TestDataLoss(t *testing.T) {
	const kept = "snapshot_before_destroy"
	for _, test := range []struct {
		name, kind     string
		before, change map[string]any
		summary        string // "" for none
		fatal          bool
	}{
		{"disk", "gke_disk", data(nil), map[string]any{"type": "pd-ssd"}, "Data of the disk would be lost", true},
		{"disk, allowed", "gke_disk", data(nil), map[string]any{"type": "pd-ssd", "allow_data_loss": true}, "Data of the disk is lost", false},
		{"disk with a snapshot", "gke_disk", data(map[string]any{kept: true}), map[string]any{"type": "pd-ssd"}, "", false},
		{"disk, whose snapshot is declared too late", "gke_disk", data(nil), map[string]any{"type": "pd-ssd", kept: true}, "Data of the disk would be lost", true},
		{"disk that shrinks", "gke_disk", data(nil), map[string]any{"size_gb": 50, "allow_data_loss": true}, "Disks do not shrink", true},
		{"share", "gke_filestore", shared(nil), map[string]any{"tier": "BASIC_SSD", "capacity_gb": 2560}, "Data of the Filestore instance would be lost", true},
		{"share, allowed", "gke_filestore", shared(nil), map[string]any{"tier": "BASIC_SSD", "capacity_gb": 2560, "allow_data_loss": true}, "Data of the Filestore instance is lost", false},
		{"snapshot", "gke_disk_snapshot", backup(nil), map[string]any{"name": "another"}, "Snapshot is deleted and taken again", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			if test.kind == "gke_disk_snapshot" {
				w = withDisk(t)
			}
			it := w.make(thing{kind: test.kind}, w.conf(test.kind, test.before))
			given := maps.Clone(test.before)
			maps.Copy(given, test.change)
			pl := w.plan(it, w.conf(it.kind, given))
			switch {
			case test.summary == "" && len(pl.Diagnostics) > 0:
				t.Error(pl.Diagnostics)
			case test.summary != "" && (len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != test.summary || pl.Diagnostics.HasErrors() != test.fatal):
				t.Errorf("plans %v", pl.Diagnostics)
			}
		})
	}
}

// TestRequestIDs: each call that changes something has an id, a UUIDv5, which is the
// same for a call that is made again after its answer was lost, and no other call's.
func TestRequestIDs(t *testing.T) {
	for _, test := range objectCases() {
		if test.kind == "gke_filestore" {
			continue // its API knows none
		}
		w := test.world(t)
		given := maps.Clone(test.given)
		it := thing{kind: test.kind}
		for _, change := range append([]objectChange{{call: test.create}}, test.changes...) {
			w.google.Pass(4 * time.Hour)
			if change.attribute != "" {
				given[change.attribute] = change.value
			}
			w.google.Fail(gcptest.Fault{Method: change.call, When: gcptest.After})
			it = w.make(it, w.conf(it.kind, given))
		}
		w.google.Fail(gcptest.Fault{Method: test.remove, When: gcptest.Before})
		if r := w.destroy(it); r.Diagnostics.HasErrors() {
			t.Fatal(r.Diagnostics)
		}
		began, again := map[string]string{}, 0 // calls by id
		for _, c := range w.google.Calls() {
			if !c.Mutating || c.Method == "compute.snapshots.setLabels" { // which takes none
				continue
			}
			id := c.Query.Get("requestId")
			if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 5 {
				t.Errorf("%s has the id %q", c.Method, id)
			}
			if was, ok := began[id]; ok && was != c.Method+" "+c.Target {
				t.Errorf("%s and %s have the same id", was, c.Method)
			}
			if began[id] != "" {
				again++
			}
			began[id] = c.Method + " " + c.Target
		}
		if again == 0 {
			t.Errorf("%s: no call was made again by its id", test.path)
		}
		if n := 1 + len(test.changes) + 1; len(began) < 2 || len(began) > n {
			t.Errorf("%s: %d ids of %d calls", test.path, len(began), n)
		}
	}
}
