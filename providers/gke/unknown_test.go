package gke

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestUnknownInside: while a part of an argument is not known, nothing is planned from
// it and nothing is refused for it; what is planned later contradicts nothing.
func TestUnknownInside(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"location": "us-central1"})))
	regional := map[string]any{"cluster": "us-central1/lab", "zones": []any{zone}}
	later := map[string]any{
		"labels": map[string]any{"a": "b"}, "taints": []any{map[string]any{"key": "k", "value": "v", "effect": "NO_SCHEDULE"}}, "zones": []any{zone},
		"machine_type": "g2-standard-12", "disk_size_gb": 200, "node_count": 3, "max_pods_per_node": 32, "image_streaming": true,
		"accelerator": map[string]any{"type": "nvidia-l4", "count": 1, "sharing": "TIME_SHARING", "shared_clients": 4},
	}
	for name, value := range later {
		given := with(gpu(regional), map[string]any{name: value, "local_ssd_count": 1})
		if name == "image_streaming" {
			given["secondary_boot_disks"] = []any{map[string]any{"disk_image": "projects/p/global/images/i"}}
		}
		known := w.conf("gke_node_pool", given)
		open := known.AsValueMap()
		switch name {
		case "labels":
			open[name] = cty.MapVal(map[string]cty.Value{"a": cty.UnknownVal(cty.String)})
		case "taints":
			taint := open[name].AsValueSlice()[0].AsValueMap()
			taint["value"] = cty.UnknownVal(cty.String)
			open[name] = cty.ListVal([]cty.Value{cty.ObjectVal(taint)})
		case "accelerator":
			a := open[name].AsValueMap()
			a["shared_clients"] = cty.UnknownVal(cty.Number)
			open[name] = cty.ObjectVal(a)
		default:
			open[name] = cty.UnknownVal(open[name].Type())
		}
		first := w.plan(thing{kind: "gke_node_pool"}, cty.ObjectVal(open))
		if first.Diagnostics.HasErrors() {
			t.Errorf("%s: %v", name, first.Diagnostics)
			continue
		}
		second := w.plan(thing{kind: "gke_node_pool"}, known)
		for attribute, v := range first.Planned.AsValueMap() {
			if is := second.Planned.GetAttr(attribute); v.IsWhollyKnown() && !v.RawEquals(is) {
				t.Errorf("%s: %s is %#v, planned was %#v", name, attribute, is, v)
			}
		}
	}
}

// TestUnknownBlocks: a block whose dynamic for_each is not known yet is wholly unknown.
// A plan refuses nothing for it, and what is planned later contradicts nothing; of a pool
// that is there only the GPUs can make another one.
func TestUnknownBlocks(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	spot := []any{map[string]any{"spot": true}}
	for name, given := range map[string]map[string]any{
		"fallback": gpu(map[string]any{"fallback": spot}), "accelerator": gpu(map[string]any{"fallback": spot}),
		"autoscaling": gpu(map[string]any{"node_count": nil, "fallback": []any{map[string]any{"flex_start": true}}, "autoscaling": map[string]any{"total_min": 1, "total_max": 2}}),
	} {
		known := w.conf("gke_node_pool", given)
		open := known.AsValueMap()
		open[name] = cty.UnknownVal(open[name].Type())
		first := w.plan(thing{kind: "gke_node_pool"}, cty.ObjectVal(open))
		if first.Diagnostics.HasErrors() || first.Planned.GetAttr(name).IsKnown() || first.Planned.GetAttr("capacity").IsKnown() {
			t.Errorf("%s: %v, planned as %#v with %#v", name, first.Diagnostics, first.Planned.GetAttr(name), first.Planned.GetAttr("capacity"))
			continue
		}
		if _, diags := w.entry.Review(t.Context(), providers.Review{Configured: []providers.Provider{w.phase()}, Planned: []providers.PlannedInstance{
			{Address: "gke_node_pool.x", Type: "gke_node_pool", Prior: cty.NullVal(known.Type()), Planned: first.Planned}}}); diags.HasErrors() {
			t.Errorf("%s: %v", name, diags)
		}
		second := w.plan(thing{kind: "gke_node_pool"}, known)
		for attribute, v := range first.Planned.AsValueMap() {
			if is := second.Planned.GetAttr(attribute); v.IsWhollyKnown() && !v.RawEquals(is) {
				t.Errorf("%s: %s is %#v, planned was %#v", name, attribute, is, v)
			}
		}
		it := w.make(thing{kind: "gke_node_pool"}, known)
		pl := w.plan(it, cty.ObjectVal(open))
		if again := slices.Equal(pl.replaced(), []string{"accelerator"}); pl.Diagnostics.HasErrors() || again != (name == "accelerator") || !again && len(pl.Replace) > 0 {
			t.Errorf("%s of a pool that is there: %v, replaced because of %v", name, pl.Diagnostics, pl.replaced())
		}
		if r := w.destroy(it); r.Diagnostics.HasErrors() {
			t.Error(r.Diagnostics)
		}
	}
}

// TestZonesOfCluster: a pool that names no zones is in those of its cluster, and the
// plan says how many nodes that makes.
func TestZonesOfCluster(t *testing.T) {
	for _, where := range []string{zone, "us-central1"} {
		w := newWorld(t, "grpc", gcptest.Options{})
		w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"location": where, "node_locations": []any{zone, "us-central1-c"}})))
		config := w.conf("gke_node_pool", cpu(map[string]any{"cluster": where + "/lab"}))
		pl := w.plan(thing{kind: "gke_node_pool"}, config)
		if c, err := connect.CapacityFromValue(pl.Planned.GetAttr("capacity")); err != nil || c.Groups[0].Min != 4 || !strings.Contains(strings.Join(pl.notes, "\n"), "2 zones × 2 = 4 nodes") {
			t.Errorf("%s: %+v %v %v", where, c, err, pl.notes)
		}
		w.empty(w.make(thing{kind: "gke_node_pool"}, config), config)
	}
}

// TestDriverUntold: of older pools the API does not tell the driver: another change
// makes their nodes not anew for it.
func TestDriverUntold(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	it := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", gpu(nil)))
	if err := w.google.ChangePool(labPath+"/nodePools/gpu", func(p *containerpb.NodePool) {
		p.Config.Accelerators[0].GpuDriverInstallationConfig = nil
	}); err != nil {
		t.Fatal(err)
	}
	it = w.empty(it, w.conf(it.kind, gpu(nil)))
	w.google.Forget()
	w.make(it, w.conf(it.kind, gpu(map[string]any{"labels": map[string]any{"a": "b"}})))
	if got := sent(t, w.google.Calls("UpdateNodePool")); !slices.Equal(got, []string{"labels"}) {
		t.Errorf("other labels send %v", got)
	}
}

// TestPoolVersionAtCreate: nodes are made with the control plane's version, which has
// to be the declared one at least.
func TestPoolVersionAtCreate(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"version": gcptest.Versions[1]})))
	config := w.conf("gke_node_pool", cpu(map[string]any{"version": "1.35"}))
	it := w.make(thing{kind: "gke_node_pool"}, config)
	if got := it.state.GetAttr("node_version").AsString(); got != gcptest.Versions[1] {
		t.Errorf("nodes have %s", got)
	}
	w.empty(it, config)
	w.mutations()
	_, r := w.apply("op-2", w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", cpu(map[string]any{"name": "new", "version": gcptest.Versions[0]}))))
	if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "before the control plane") {
		t.Errorf("nodes ahead of the control plane: %v", r.Diagnostics)
	}
	if got := w.mutations(); len(got) > 0 {
		t.Errorf("it made %v", got)
	}
}
