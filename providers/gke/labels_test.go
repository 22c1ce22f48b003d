package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestDefaultLabels: labels of the provider reach what is there already, each by its
// call, are seen where somebody takes them away, and go with their declaration.
func TestDefaultLabels(t *testing.T) {
	defaults := func(w *world, labels map[string]string) {
		all := map[string]cty.Value{}
		for k, v := range labels {
			all[k] = cty.StringVal(v)
		}
		w.provider = map[string]cty.Value{"default_labels": cty.MapVal(all)}
	}
	transports(t, gcptest.Options{}, func(w *world) {
		own := map[string]any{"team": "vision"}
		all := []struct {
			kind, call, path, name string
			given                  map[string]any
		}{
			{"gke_cluster", "SetLabels", labPath, "labels", lab(nil)},
			{"gke_node_pool", "UpdateNodePool", labPath + "/nodePools/gpu", "resource_labels", gpu(nil)},
			{"gke_disk", "compute.disks.setLabels", diskPath, "labels", data(nil)},
			{"gke_disk_snapshot", "compute.snapshots.setLabels", backupPath, "labels", backup(nil)},
			{"gke_filestore", "file.projects.locations.instances.patch", sharePath, "labels", shared(nil)},
		}
		things := make([]thing, len(all))
		for i, one := range all {
			one.given[one.name] = own
			things[i] = w.make(thing{kind: one.kind}, w.conf(one.kind, one.given))
		}
		for _, step := range []struct {
			name            string
			declared, there map[string]string
		}{
			{"added", map[string]string{"cost": "lab", "team": "other"}, map[string]string{"cost": "lab", "team": "vision"}},
			{"changed", map[string]string{"cost": "shop"}, map[string]string{"cost": "shop", "team": "vision"}},
			{"taken out", map[string]string{"env": "ci"}, map[string]string{"env": "ci", "team": "vision"}},
		} {
			defaults(w, step.declared)
			for i, one := range all {
				config := w.conf(one.kind, one.given)
				w.mutations()
				things[i] = w.make(things[i], config)
				if got := w.mutations(); !slices.Equal(got, []string{one.call}) {
					w.Errorf("%s, %s: the calls are %v", one.kind, step.name, got)
				}
				there := map[string]string{}
				for _, o := range w.google.Inventory() {
					if o.Path == one.path {
						maps.Copy(there, o.Labels)
					}
				}
				if there[cloud.Mark] == "" {
					w.Errorf("%s, %s: the mark is lost", one.kind, step.name)
				}
				maps.DeleteFunc(there, func(k, _ string) bool { return k == cloud.Mark || strings.HasPrefix(k, "goog-") })
				if !maps.Equal(there, step.there) {
					w.Errorf("%s, %s: it has %v", one.kind, step.name, there)
				}
				things[i] = w.empty(things[i], config)
			}
		}
	})
}
