package gke

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestWords: names and labels that Google would refuse are told before anything is made.
func TestWords(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	for _, test := range []struct {
		name, summary string // "" for what is fine
		given         map[string]any
	}{
		{"name", "Not a name", data(map[string]any{"name": "Data_1"})},
		{"end", "Not a name", data(map[string]any{"name": "data-"})},
		{"long", "Not a name", data(map[string]any{"name": strings.Repeat("a", 64)})},
		{"longest", "", data(map[string]any{"name": strings.Repeat("a", 63)})},
		{"label", "Not the name of a label", data(map[string]any{"labels": map[string]any{"Team": "x"}})},
		{"value", "Not the value of a label", data(map[string]any{"labels": map[string]any{"team": "x y"}})},
		{"good labels", "", data(map[string]any{"labels": map[string]any{"team": "", "größe_1": "grün-2"}})},
	} {
		pl := w.plan(thing{kind: "gke_disk"}, w.conf("gke_disk", test.given))
		if test.summary == "" && len(pl.Diagnostics) > 0 || test.summary != "" && (len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != test.summary) {
			t.Errorf("%s: %v", test.name, pl.Diagnostics)
		}
	}
}

// TestPlaces: where things are to be that name no place.
func TestPlaces(t *testing.T) {
	none, region := cty.NullVal(cty.String), cty.StringVal("us-central1")
	for _, test := range []struct {
		name, kind   string
		zone, region cty.Value
		given        map[string]any
		summary      string // "" for what is fine
		where        string
	}{
		{"disk nowhere", "gke_disk", none, none, data(nil), "No place", ""},
		{"share nowhere", "gke_filestore", none, none, shared(nil), "No place", ""},
		{"snapshot of a disk nowhere", "gke_disk_snapshot", none, none, backup(map[string]any{"disk": "data"}), "No place", ""},
		{"disk in the region", "gke_disk", none, region, data(nil), "Disk in a region needs two zones", ""},
		{"disk in the zone", "gke_disk", cty.StringVal(zone), region, data(nil), "", zone},
		{"regional disk", "gke_disk", none, region, data(map[string]any{"type": "pd-ssd", "replica_zones": []any{zone, "us-central1-c"}}), "", "us-central1"},
		{"rule", "gke_firewall_rule", none, none, ssh(nil), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			w.provider = map[string]cty.Value{"zone": test.zone, "region": test.region}
			pl := w.plan(thing{kind: test.kind}, w.conf(test.kind, test.given))
			switch {
			case test.summary != "" && (len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != test.summary):
				t.Errorf("plans %v", pl.Diagnostics)
			case test.summary == "" && len(pl.Diagnostics) > 0:
				t.Error(pl.Diagnostics)
			case test.where != "" && pl.Planned.GetAttr("location").AsString() != test.where:
				t.Errorf("planned in %#v", pl.Planned.GetAttr("location"))
			}
		})
	}
	// What is not known yet is not the provider's.
	w := newWorld(t, "grpc", gcptest.Options{})
	for kind, given := range map[string]map[string]any{"gke_disk": data(nil), "gke_filestore": shared(nil), "gke_firewall_rule": ssh(nil), "gke_disk_snapshot": backup(nil)} {
		for _, name := range []string{"project", "location"} {
			conf := w.conf(kind, given).AsValueMap()
			if _, ok := conf[name]; !ok {
				continue
			}
			conf[name] = cty.UnknownVal(cty.String)
			pl := w.plan(thing{kind: kind}, cty.ObjectVal(conf))
			if pl.Diagnostics.HasErrors() || pl.Planned.GetAttr(name).IsKnown() || pl.Planned.GetAttr("id").IsKnown() {
				t.Errorf("%s.%s: %v, planned %#v", kind, name, pl.Diagnostics, pl.Planned.GetAttr(name))
			}
		}
	}
}
