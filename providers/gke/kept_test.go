package gke

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestMaintenanceKept: what was set in the console stays, whatever is declared.
func TestMaintenanceKept(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
	err := w.google.Change(labPath, func(k *containerpb.Cluster) {
		k.MaintenancePolicy.Window = &containerpb.MaintenanceWindow{
			Policy:                &containerpb.MaintenanceWindow_DailyMaintenanceWindow{DailyMaintenanceWindow: &containerpb.DailyMaintenanceWindow{StartTime: "03:00"}},
			MaintenanceExclusions: map[string]*containerpb.TimeWindow{"console": {}},
		}
		k.MaintenancePolicy.DisruptionBudget = &containerpb.DisruptionBudget{}
	})
	if err != nil {
		t.Fatal(err)
	}
	it = w.empty(it, w.conf(it.kind, lab(nil)))
	exclusion := map[string]any{"start": "2026-12-01T00:00:00Z", "end": "2026-12-08T00:00:00Z"}
	it = w.make(it, w.conf(it.kind, lab(map[string]any{"maintenance_exclusions": map[string]any{"run": exclusion}})))
	look := func(daily, budget bool, names ...string) {
		t.Helper()
		for _, o := range w.google.Inventory() {
			k, ok := o.Value.(*containerpb.Cluster)
			if !ok {
				continue
			}
			p := k.GetMaintenancePolicy()
			var have []string
			for name := range p.GetWindow().GetMaintenanceExclusions() {
				have = append(have, name)
			}
			if slices.Sort(have); !slices.Equal(have, names) || (p.GetWindow().GetDailyMaintenanceWindow() != nil) != daily || (p.GetDisruptionBudget() != nil) != budget {
				t.Errorf("the policy is %v", p)
			}
		}
	}
	look(true, true, "console", "run")
	it = w.make(it, w.conf(it.kind, lab(nil)))
	look(true, true, "console")
	w.empty(it, w.conf(it.kind, lab(nil)))
	for _, wrong := range []map[string]any{
		{"maintenance_window": map[string]any{"start": "tomorrow", "end": "2026-01-03T08:00:00Z", "recurrence": "FREQ=DAILY"}},
		{"maintenance_window": map[string]any{"start": "2026-01-03T08:00:00Z", "end": "2026-01-03T02:00:00Z", "recurrence": "FREQ=DAILY"}},
		{"maintenance_window": map[string]any{"start": "2026-01-03T02:00:00Z", "end": "2026-01-03T08:00:00Z", "recurrence": "daily"}},
		{"maintenance_exclusions": map[string]any{"x": map[string]any{"start": "2026-12-01T00:00:00Z", "end": "2026-12-08T00:00:00Z", "scope": "ALL"}}},
	} {
		if pl := w.plan(it, w.conf(it.kind, lab(wrong))); !pl.Diagnostics.HasErrors() {
			t.Errorf("%v is planned", wrong)
		}
	}
}

// TestNetworksKept: limits of the console stay; taking declared ones out is warned of.
func TestNetworksKept(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
	limits := func() *containerpb.MasterAuthorizedNetworksConfig {
		return w.google.Inventory()[0].Value.(*containerpb.Cluster).GetControlPlaneEndpointsConfig().GetIpEndpointsConfig().GetAuthorizedNetworksConfig()
	}
	if err := w.google.Change(labPath, func(k *containerpb.Cluster) {
		k.ControlPlaneEndpointsConfig.IpEndpointsConfig.AuthorizedNetworksConfig = &containerpb.MasterAuthorizedNetworksConfig{Enabled: true}
	}); err != nil {
		t.Fatal(err)
	}
	it = w.empty(it, w.conf(it.kind, lab(nil)))
	it = w.make(it, w.conf(it.kind, lab(map[string]any{"endpoint": "dns"})))
	if !limits().GetEnabled() {
		t.Error("another change opened the cluster")
	}
	it = w.make(it, w.conf(it.kind, lab(map[string]any{"endpoint": "dns", "authorized_networks": []any{"10.0.0.0/8"}})))
	pl := w.plan(it, w.conf(it.kind, lab(map[string]any{"endpoint": "dns"})))
	if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != "All addresses will reach the API server" {
		t.Errorf("taking the limits out says %v", pl.Diagnostics)
	}
}

// TestChangedOnce: a change whose answer was lost after its effect is not made again.
func TestChangedOnce(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	lost := func(methods ...string) {
		for _, m := range methods {
			w.google.Fail(gcptest.Fault{Method: m, When: gcptest.After, Code: codes.DeadlineExceeded})
		}
	}
	k := w.importing("gke_cluster", labPath)
	lost("UpdateCluster", "SetLabels")
	k = w.make(k, w.conf(k.kind, lab(map[string]any{"shielded_nodes": false, "labels": map[string]any{"a": "b"}})))
	if n := len(w.google.Calls("UpdateCluster", "SetLabels")); n != 2 {
		t.Errorf("two changes of a cluster are %d calls", n)
	}
	w.empty(k, w.conf(k.kind, lab(map[string]any{"shielded_nodes": false, "labels": map[string]any{"a": "b"}})))
	p := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", gpu(nil)))
	lost("UpdateNodePool", "SetNodePoolSize")
	again := gpu(map[string]any{"node_count": 2, "kubelet": map[string]any{"pod_pids_limit": 2048}})
	p = w.make(p, w.conf(p.kind, again))
	if n := len(w.google.Calls("UpdateNodePool", "SetNodePoolSize")); n != 2 {
		t.Errorf("two changes of a pool are %d calls", n)
	}
	w.empty(p, w.conf(p.kind, again))
}

// TestStepKept: another fallback moves no pool that runs by a step of the old one.
func TestStepKept(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": []any{zone, "us-central1-c"}})))
	w.google.SetCapacity(gcptest.Capacity{Zone: zone}, 0)
	given := func(steps ...any) map[string]any { return gpu(map[string]any{"zones": []any{zone}, "fallback": steps}) }
	it := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given(map[string]any{"zones": []any{"us-central1-c"}, "machine_type": "g2-standard-16"})))
	w.mutations()
	c, err := connect.CapacityFromValue(it.state.GetAttr("capacity"))
	if err != nil || c.Groups[0].CPU < 15000 {
		t.Errorf("the capacity is not the step's: %+v %v", c, err)
	}
	for _, steps := range [][]any{{map[string]any{"spot": true}}, nil} {
		conf := w.conf(it.kind, given(steps...))
		it = w.make(it, conf)
		if got := w.mutations(); len(got) > 0 {
			t.Errorf("the fallback %v is changed by %v", steps, got)
		}
		it = w.empty(it, conf)
	}
}

// TestStopping: what somebody deletes is waited for, and then made anew.
func TestStopping(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	conf := w.conf("gke_node_pool", gpu(nil))
	it := w.make(thing{kind: "gke_node_pool"}, conf)
	w.google.Slow("DeleteNodePool", 400, 1)
	pl := w.plan(it, w.conf(it.kind, gpu(map[string]any{"timeouts": map[string]any{"delete": "1s"}})))
	short, _ := w.apply("", pl)
	w.destroy(short)
	now := w.refresh(it)
	if now.state.IsNull() || now.state.GetAttr("status").AsString() != "STOPPING" {
		t.Fatalf("it is %v", now.state)
	}
	if again := w.plan(now, conf); !slices.Contains(again.replaced(), "status") {
		t.Errorf("a pool that goes is replaced because of %v", again.replaced())
	}
	made := w.make(thing{kind: it.kind}, conf)
	w.empty(made, conf)
}

// TestLocalSSDs: data on local SSDs is lost only where that is allowed.
func TestLocalSSDs(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	given := func(more map[string]any) cty.Value {
		all := map[string]any{"local_ssd_count": 1}
		for k, v := range more {
			all[k] = v
		}
		return w.conf("gke_node_pool", gpu(all))
	}
	it := w.make(thing{kind: "gke_node_pool"}, given(nil))
	for _, change := range []map[string]any{{"spot": true}, {"image_type": "UBUNTU_CONTAINERD"}} {
		pl := w.plan(it, given(change))
		if !pl.Diagnostics.HasErrors() || !strings.Contains(pl.Diagnostics[0].Summary, "would be lost") {
			t.Errorf("%v: %v", change, pl.Diagnostics)
		}
		change["allow_data_loss"] = true
		if pl = w.plan(it, given(change)); pl.Diagnostics.HasErrors() || len(pl.Diagnostics) != 1 {
			t.Errorf("%v: %v", change, pl.Diagnostics)
		}
	}
	if pl := w.plan(it, given(map[string]any{"labels": map[string]any{"a": "b"}})); len(pl.Diagnostics) > 0 {
		t.Errorf("labels lose data: %v", pl.Diagnostics)
	}
	for n, want := range map[int]string{2: "Machine cannot have so many local SSDs"} {
		if pl := w.plan(thing{kind: it.kind}, given(map[string]any{"local_ssd_count": n})); !pl.Diagnostics.HasErrors() || pl.Diagnostics[0].Summary != want {
			t.Errorf("%d: %v", n, pl.Diagnostics)
		}
	}
}

// TestUnknownParts: what is not known yet is planned as such, wherever it stands.
func TestUnknownParts(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	for kind, names := range map[string][]string{
		"gke_node_pool": {"taints", "kubelet", "linux", "drain", "blue_green", "secondary_boot_disks"},
		"gke_cluster":   {"maintenance_window", "maintenance_exclusions"},
	} {
		for _, name := range names {
			given := cpu(nil)
			if kind == "gke_cluster" {
				given = lab(map[string]any{"name": "other"})
			}
			conf := w.conf(kind, given).AsValueMap()
			conf[name] = cty.UnknownVal(conf[name].Type())
			if pl := w.plan(thing{kind: kind}, cty.ObjectVal(conf)); pl.Diagnostics.HasErrors() || pl.Planned.GetAttr(name).IsKnown() {
				t.Errorf("%s.%s: %v", kind, name, pl.Diagnostics)
			}
		}
	}
}
