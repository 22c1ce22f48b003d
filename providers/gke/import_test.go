package gke

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/protobuf/proto"

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
			w.empty(w.importingAs(config, test.kind, test.id), config)
			if test.name == "case and order" { // the order is declared after the import
				w.empty(w.make(imported, config), config)
				return
			}
			w.adopted(imported, config)
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

// adopted checks that the first apply after an import makes no call.
func (w *world) adopted(imported thing, config cty.Value) {
	w.Helper()
	w.mutations()
	it := w.make(imported, config)
	if got := w.mutations(); len(got) > 0 {
		w.Errorf("changed by %v", got)
	}
	w.empty(it, config)
}

// recordedPools are settings of node pools as GKE 1.34 and 1.35 were recorded to fill them in, each with the arguments
// that such a pool was made with. Older pools keep the port of the kubelet open.
var recordedPools = []struct {
	name  string
	given map[string]any
	fill  func(*containerpb.NodePool)
}{
	{"nothing declared", nil, func(*containerpb.NodePool) {}},
	{"three pulls", nil, func(p *containerpb.NodePool) { p.Config.KubeletConfig.MaxParallelImagePulls = 3 }},
	{"an older pool", nil, func(p *containerpb.NodePool) {
		p.Config.KubeletConfig.InsecureKubeletReadonlyPortEnabled = proto.Bool(true)
	}},
	{"older still", nil, func(p *containerpb.NodePool) { p.Config.KubeletConfig = nil }},
	{"kubelet", map[string]any{"kubelet": map[string]any{"cpu_cfs_quota": true, "cpu_cfs_quota_period": "100ms", "cpu_manager_policy": "none", "pod_pids_limit": 2048}},
		func(p *containerpb.NodePool) {
			p.Config.KubeletConfig.ImageGcHighThresholdPercent, p.Config.KubeletConfig.ImageMaximumGcAge = 80, "2h0m0s"
		}},
	{"linux", map[string]any{"linux": map[string]any{"cgroup_mode": "CGROUP_MODE_V2"}}, func(*containerpb.NodePool) {}},
	{"local SSDs", map[string]any{"local_ssd_count": 2}, func(p *containerpb.NodePool) {
		p.Config.EphemeralStorageLocalSsdConfig.DataCacheCount = 2
	}},
	{"raw local SSDs", map[string]any{"raw_local_ssd_count": 2}, func(*containerpb.NodePool) {}},
}

// TestImportedAsRecorded: a pool that GKE has filled in is imported, and a plan of its configuration has no difference.
func TestImportedAsRecorded(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	w.empty(w.importing("gke_cluster", labPath), w.conf("gke_cluster", lab(nil)))
	timed := w.conf("gke_cluster", lab(map[string]any{"endpoint": "public", "deletion_protection": true, "timeouts": map[string]any{"update": "2h"}}))
	w.empty(w.importingAs(timed, "gke_cluster", labPath), timed)
	for n, test := range recordedPools {
		name := fmt.Sprint("p", n)
		given := with(cpu(map[string]any{"name": name}), test.given)
		config := w.conf("gke_node_pool", given)
		w.make(thing{kind: "gke_node_pool"}, config)
		if err := w.google.ChangePool(labPath+"/nodePools/"+name, test.fill); err != nil {
			t.Fatal(err)
		}
		w.Logf("%s", test.name)
		imported := w.empty(w.importing("gke_node_pool", labPath+"/nodePools/"+name), config)
		timed := w.conf("gke_node_pool", with(given, map[string]any{"allow_data_loss": true, "timeouts": map[string]any{"create": "2h"}}))
		w.empty(w.importingAs(timed, "gke_node_pool", labPath+"/nodePools/"+name), timed)
		if !imported.state.IsWhollyKnown() {
			t.Errorf("%s: the state is not known: %#v", test.name, imported.state)
		}
	}
}

// TestConversionsAreChecked: a conversion of the framework that fails is not taken for a value.
func TestConversionsAreChecked(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a conversion that fails is taken for a value")
		}
	}()
	object(kubeletSchema(), types.ObjectNull(typesOf(kubeletSchema())), kubeletModel{}, true) // its set has no type
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
