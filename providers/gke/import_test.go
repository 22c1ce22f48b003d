package gke

import (
	"maps"
	"slices"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestImported: what is imported and then declared, in whatever words, is neither
// replaced nor changed.
func TestImported(t *testing.T) {
	taints := []any{map[string]any{"key": "b", "value": "x", "effect": "NO_SCHEDULE"}, map[string]any{"key": "a", "value": "y", "effect": "NO_EXECUTE"}}
	for _, test := range []struct {
		name, kind, id string
		given          map[string]any
	}{
		{"names", "gke_cluster", labPath, lab(map[string]any{"network": "other", "subnetwork": "other", "pods_cidr": "/17", "services_cidr": "34.118.224.0/20", "location": zone})},
		{"paths", "gke_cluster", labPath, lab(map[string]any{"network": "projects/stoke-test/global/networks/other", "subnetwork": "projects/stoke-test/regions/us-central1/subnetworks/other"})},
		{"URLs", "gke_cluster", labPath, lab(map[string]any{"network": "https://www.googleapis.com/compute/v1/projects/stoke-test/global/networks/other", "subnetwork": "other"})},
		{"all that changes", "gke_cluster", labPath, lab(maps.Clone(clusterValues))},
		{"place of the cluster", "gke_node_pool", labPath + "/nodePools/cpu", cpu(map[string]any{"cluster": zone + "/lab"})},
		{"case and order", "gke_node_pool", labPath + "/nodePools/cpu", cpu(map[string]any{"image_type": "ubuntu_containerd", "taints": taints})},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{Networks: []string{"other"}})
			if test.kind == "gke_node_pool" {
				withLab(w)
			}
			config := w.conf(test.kind, test.given)
			it := w.make(thing{kind: test.kind}, config)
			if test.name == "case and order" { // of Google's choice
				if err := w.google.ChangePool(test.id, func(p *containerpb.NodePool) { slices.Reverse(p.Config.Taints) }); err != nil {
					t.Fatal(err)
				}
			}
			w.empty(it, config)
			w.mutations()
			imported := w.importing(test.kind, test.id)
			if pl := w.plan(imported, config); len(pl.Replace) > 0 {
				t.Fatalf("replaced because of %v", pl.replaced())
			}
			it = w.make(imported, config)
			if got := w.mutations(); len(got) > 0 && test.name != "case and order" { // the order is declared after the import
				t.Errorf("changed by %v", got)
			}
			w.empty(it, config)
		})
	}
	w := newWorld(t, "grpc", gcptest.Options{HostProjects: []string{"host"}})
	it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
	if pl := w.plan(it, w.conf(it.kind, lab(map[string]any{"network": "projects/host/global/networks/default"}))); !pl.Diagnostics.HasErrors() && !slices.Contains(pl.replaced(), "network") {
		t.Errorf("a network of another project is taken for this one: %v", pl.Diagnostics)
	}
	for a, b := range map[string]string{"projects/a/global/networks/n": "projects/b/global/networks/n", "us-central1-a/lab": "us-central1-b/lab", "projects/b/global/networks/n": "n"} {
		if samePlace(naming{a, "a"}, naming{b, "a"}) {
			t.Errorf("%s and %s are one", a, b)
		}
	}
}

// TestImportForms: the identifiers that Terraform takes.
func TestImportForms(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", cpu(nil)))
	for kind, ids := range map[string][]string{
		"gke_cluster":   {labPath, "stoke-test/" + zone + "/lab", zone + "/lab", "lab"},
		"gke_node_pool": {labPath + "/nodePools/cpu", "stoke-test/" + zone + "/lab/cpu", zone + "/lab/cpu", "lab/cpu"},
	} {
		for _, id := range ids {
			if it := w.importing(kind, id); it.state.IsNull() {
				t.Errorf("%s %s: nothing is there", kind, id)
			}
		}
		for _, id := range []string{"", "a/b/c/d/e/f/g", labPath + "/nodePools/stoke-bootstrap"} {
			r := w.phase().Import(t.Context(), providers.ImportRequest{Type: kind, ID: id})
			if !r.Diagnostics.HasErrors() {
				t.Errorf("%s: %q is imported", kind, id)
			}
		}
	}
}
