package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

func cpu(more map[string]any) map[string]any {
	all := map[string]any{"cluster": labPath, "name": "cpu", "machine_type": "n2-standard-4", "node_count": 2}
	maps.Copy(all, more)
	return all
}

func gpu(more map[string]any) map[string]any {
	all := map[string]any{"cluster": labPath, "name": "gpu", "machine_type": "g2-standard-8", "node_count": 1, "accelerator": map[string]any{"type": "nvidia-l4", "count": 1}}
	maps.Copy(all, more)
	return all
}

// withLab is a world that has a cluster.
func withLab(w *world) *world {
	w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
	w.mutations()
	return w
}

// TestPoolTaintsOfGoogle: a taint that GKE sets by itself is no difference, and stays
// where others are declared.
func TestPoolTaintsOfGoogle(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	arm := func(more map[string]any) cty.Value {
		return w.conf("gke_node_pool", with(map[string]any{"cluster": labPath, "name": "arm", "machine_type": "t2a-standard-4", "node_count": 1}, more))
	}
	it := w.empty(w.make(thing{kind: "gke_node_pool"}, arm(nil)), arm(nil))
	more := arm(map[string]any{"taints": []any{map[string]any{"key": "team", "value": "x", "effect": "NO_SCHEDULE"}}})
	w.empty(w.make(it, more), more)
	pool := w.object(labPath + "/nodePools/arm").Value.(*containerpb.NodePool)
	if got := pool.GetConfig().GetTaints(); len(got) != 2 || !slices.ContainsFunc(got, func(t *containerpb.NodeTaint) bool { return t.GetKey() == "kubernetes.io/arch" }) {
		t.Errorf("it has %v", got)
	}
}

// TestPoolOfFlexStart: the cluster's first pool stays beside one whose nodes go
// after days.
func TestPoolOfFlexStart(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	days := w.conf("gke_node_pool", map[string]any{"cluster": labPath, "name": "days", "machine_type": "n2-standard-4", "flex_start": true, "auto_repair": false,
		"autoscaling": map[string]any{"total_min": 0, "total_max": 2}})
	w.empty(w.make(thing{kind: "gke_node_pool"}, days), days)
	if w.object(labPath+"/nodePools/"+bootstrap) == nil {
		t.Error("the first pool is gone")
	}
}

func TestPoolLife(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		withLab(w)
		config := w.conf("gke_node_pool", gpu(map[string]any{"labels": map[string]any{"a": "b"}, "taints": []any{map[string]any{"key": "team", "value": "x", "effect": "NO_SCHEDULE"}}}))
		first := w.make(thing{kind: "gke_node_pool"}, config)
		if got := w.mutations(); !slices.Equal(got, []string{"CreateNodePool"}) {
			w.Errorf("a GPU pool is made by %v", got)
		}
		first = w.empty(first, config)
		if strings.Contains(first.state.GoString(), "stoke-operation") || strings.Contains(first.state.GoString(), "goog-gke") {
			w.Error("marks or Google's labels are in the state")
		}
		w.empty(w.importing("gke_node_pool", labPath+"/nodePools/gpu"), config)

		// A pool for any pod takes the first one away.
		second := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", cpu(nil)))
		if got := w.mutations(); !slices.Equal(got, []string{"CreateNodePool", "DeleteNodePool"}) {
			w.Errorf("a CPU pool is made by %v", got)
		}
		w.empty(second, w.conf("gke_node_pool", cpu(nil)))

		pl := w.plan(first, w.conf("gke_node_pool", gpu(map[string]any{"machine_type": "g2-standard-24", "accelerator": map[string]any{"type": "nvidia-l4", "count": 2}, "spot": true, "max_pods_per_node": 32})))
		for _, name := range []string{"accelerator.count", "spot", "max_pods_per_node"} {
			if !slices.Contains(pl.replaced(), name) {
				w.Errorf("%s does not replace: %v", name, pl.replaced())
			}
		}
		if r := w.destroy(first); r.Diagnostics.HasErrors() {
			w.Error(r.Diagnostics)
		}
		if now := w.refresh(first); !now.state.IsNull() {
			w.Error("it is still there")
		}
	})
}

// poolValues are other values for what can be changed.
var poolValues = map[string]any{
	"auto_repair": false, "auto_upgrade": false, "machine_type": "g2-standard-12", "disk_type": "pd-ssd", "disk_size_gb": 200, "image_type": "UBUNTU_CONTAINERD",
	"labels": map[string]any{"a": "c"}, "taints": []any{map[string]any{"key": "k", "value": "v", "effect": "NO_EXECUTE"}}, "tags": []any{"web"},
	"resource_labels": map[string]any{"cost": "lab"}, "workload_metadata": "GCE_METADATA", "image_streaming": true, "gvnic": true, "fast_socket": true,
	"accelerator": map[string]any{"type": "nvidia-l4", "count": 1, "sharing": "TIME_SHARING", "shared_clients": 4, "driver_version": "LATEST"},
	"max_surge":   2, "max_unavailable": 1, "zones": []any{zone, "us-central1-c"}, "node_count": 2, "version": gcptest.Versions[0], "max_run_duration": "100h",
	"blue_green": map[string]any{"batch_percentage": 0.25, "batch_soak": "5m", "pool_soak": "1h"}, "exclude_upgrades_until_end_of_support": true,
	"kubelet": map[string]any{"cpu_manager_policy": "static", "topology_manager_policy": "single-numa-node", "memory_manager_policy": "static", "pod_pids_limit": 4096, "cpu_cfs_quota": false, "cpu_cfs_quota_period": "50ms",
		"container_log_max_size": "20Mi", "container_log_max_files": 4, "allowed_unsafe_sysctls": []any{"kernel.shm*"}, "insecure_readonly_port": true, "max_parallel_image_pulls": 5, "single_process_oom_kill": true},
	"linux": map[string]any{"sysctls": map[string]any{"net.core.rmem_max": "16777216"}, "cgroup_mode": "CGROUP_MODE_V2", "hugepages_2m": 512, "hugepages_1g": 1, "transparent_hugepage": "TRANSPARENT_HUGEPAGE_ENABLED_MADVISE"},
	"drain": map[string]any{"pdb_timeout": "2h", "grace_termination": "1m30s", "respect_pdb_on_deletion": true},
}

// outdated makes a pool of which everything can be changed: nodes follow the control
// plane, which has a newer version.
func (w *world) outdated() (it thing, given map[string]any) {
	w.Helper()
	old := lab(map[string]any{"release_channel": "NONE", "node_locations": []any{zone, "us-central1-c"}, "version": gcptest.Versions[2]})
	cluster := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", old))
	given = gpu(map[string]any{"zones": []any{zone}})
	it = w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given))
	old["version"] = gcptest.Versions[0]
	w.make(cluster, w.conf("gke_cluster", old)) // the master before its pools
	w.mutations()
	return it, given
}

// TestPoolInPlace: each attribute that can be changed is, by the one call that the
// table says, and all of a group together are one call.
func TestPoolInPlace(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		it, given := w.outdated()
		for _, row := range poolTable {
			value, ok := poolValues[row.attribute]
			if row.attribute == "autoscaling" {
				continue // below
			}
			if !ok {
				w.Errorf("no value for %s", row.attribute)
				continue
			}
			given[row.attribute] = value
			it = w.make(it, w.conf(it.kind, given))
			w.brought(row.attribute, row.call, row.field)
			it = w.empty(it, w.conf(it.kind, given))
		}
		delete(given, "version") // it is of the configuration alone
		delete(given, "max_surge")
		delete(given, "max_unavailable")
		w.adopted(w.importing("gke_node_pool", labPath+"/nodePools/gpu"), w.conf(it.kind, given))
		for _, name := range []string{"blue_green", "kubelet", "linux", "drain"} {
			delete(given, name)
		}
		it = w.make(it, w.conf(it.kind, given)) // back to Google's choice, in one call
		if got := w.mutations(); !slices.Equal(got, []string{"UpdateNodePool"}) {
			w.Errorf("settings are taken away by %v", got)
		}
		it = w.empty(it, w.conf(it.kind, given))
		delete(given, "node_count")
		given["autoscaling"] = map[string]any{"min": 1, "max": 3}
		it = w.make(it, w.conf(it.kind, given))
		if got := w.mutations(); !slices.Equal(got, []string{"SetNodePoolAutoscaling"}) {
			w.Errorf("autoscaling is changed by %v", got)
		}
		it = w.empty(it, w.conf(it.kind, given))

		before := w.google.Recreations(labPath + "/nodePools/gpu")
		maps.Copy(given, map[string]any{"machine_type": "g2-standard-8", "disk_size_gb": 300, "image_type": "COS_CONTAINERD", "gvnic": true, "labels": map[string]any{"z": "z"}})
		it = w.make(it, w.conf(it.kind, given))
		if got := w.mutations(); !slices.Equal(got, []string{"UpdateNodePool"}) {
			w.Errorf("what makes nodes anew is changed by %v", got)
		}
		if n := w.google.Recreations(labPath+"/nodePools/gpu") - before; n != 1 {
			w.Errorf("nodes are made anew %d times", n)
		}
		w.empty(it, w.conf(it.kind, given))
	})
}

func TestPoolDrift(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		withLab(w)
		config := w.conf("gke_node_pool", gpu(map[string]any{"labels": map[string]any{"a": "b"}}))
		it := w.make(thing{kind: "gke_node_pool"}, config)
		if err := w.google.ChangePool(labPath+"/nodePools/gpu", func(p *containerpb.NodePool) { p.Config.Labels["a"] = "other" }); err != nil {
			w.Fatal(err)
		}
		if err := w.google.Resize(labPath+"/nodePools/gpu", zone, 3); err != nil {
			w.Fatal(err)
		}
		w.mutations()
		it = w.make(w.refresh(it), config)
		if got := w.mutations(); !slices.Equal(got, []string{"UpdateNodePool", "SetNodePoolSize"}) {
			w.Errorf("drift is mended by %v", got)
		}
		w.remade(w.empty(it, config), config, labPath+"/nodePools/gpu")
	})
}

// TestPoolFallback: a stock-out and a missing quota lead to the next step, and
// nothing is left of the one before.
func TestPoolFallback(t *testing.T) {
	steps := []any{map[string]any{"spot": true}, map[string]any{"zones": []any{"us-central1-c"}}}
	given := gpu(map[string]any{"zones": []any{zone}, "fallback": steps})
	for _, test := range []struct {
		name string
		set  func(*gcptest.Cloud)
		step int64
		want []string
	}{
		{"capacity", func(*gcptest.Cloud) {}, 0, []string{"CreateNodePool"}},
		{"no on-demand", func(c *gcptest.Cloud) { c.SetCapacity(gcptest.Capacity{Zone: zone, Provisioning: "on-demand"}, 0) }, 1, []string{"CreateNodePool", "DeleteNodePool", "CreateNodePool"}},
		{"no zone", func(c *gcptest.Cloud) { c.SetCapacity(gcptest.Capacity{Zone: zone}, 0) }, 2, []string{"CreateNodePool", "DeleteNodePool", "CreateNodePool", "DeleteNodePool", "CreateNodePool"}},
		{"no quota", func(c *gcptest.Cloud) { c.SetQuota("us-central1", "NVIDIA_L4_GPUS", 0) }, 1, []string{"CreateNodePool"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": []any{zone, "us-central1-c"}})))
			w.mutations()
			test.set(w.google)
			config := w.conf("gke_node_pool", given)
			it := w.make(thing{kind: "gke_node_pool"}, config)
			if got, _ := it.state.GetAttr("step").AsBigFloat().Int64(); got != test.step {
				t.Errorf("step %d, want %d", got, test.step)
			}
			if got := w.mutations(); !slices.Equal(got, test.want) {
				t.Errorf("calls %v", got)
			}
			it = w.empty(it, config)
			notes := strings.Join(w.plan(it, config).notes, "\n")
			if back := strings.Contains(notes, "-replace="); back != (test.step > 0) {
				t.Errorf("the way back: %q", notes)
			}
		})
	}
}

// TestPoolWords: what a plan cannot tell from what is there is refused as it is
// declared; an empty map is as good as none.
func TestPoolWords(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	for _, given := range []map[string]any{
		cpu(map[string]any{"autoscaling": map[string]any{"min": 1, "max": 2}}),
		cpu(map[string]any{"name": "stoke-bootstrap"}),
	} {
		if pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given)); !pl.Diagnostics.HasErrors() {
			t.Errorf("%v is planned", given)
		}
	}
	config := w.conf("gke_node_pool", cpu(map[string]any{"labels": map[string]any{}, "resource_labels": map[string]any{}}))
	w.empty(w.make(thing{kind: "gke_node_pool"}, config), config)
}

// TestPoolOutgrown: a pool that was whole keeps what it got where it cannot grow, and
// is never deleted for that, whatever its fallback says.
func TestPoolOutgrown(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	given := func(n int) map[string]any {
		return gpu(map[string]any{"node_count": n, "fallback": []any{map[string]any{"spot": true}}})
	}
	it := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given(1)))
	w.google.SetCapacity(gcptest.Capacity{Zone: zone}, 0)
	for _, status := range []containerpb.NodePool_Status{containerpb.NodePool_RUNNING_WITH_ERROR, containerpb.NodePool_ERROR} {
		grown, r := w.apply("", w.plan(it, w.conf("gke_node_pool", given(3))))
		if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "does not have enough resources") {
			t.Fatalf("a resize without capacity says %v", r.Diagnostics)
		}
		if err := w.google.ChangePool(labPath+"/nodePools/gpu", func(p *containerpb.NodePool) { p.Status = status }); err != nil {
			t.Fatal(err)
		}
		grown = w.empty(grown, w.conf("gke_node_pool", given(3)))
		if notes := strings.Join(w.plan(grown, w.conf("gke_node_pool", given(3))).notes, "\n"); !strings.Contains(notes, "stoke apply -replace=") {
			t.Errorf("the plan offers no replacement: %q", notes)
		}
		w.mutations()
		it = w.make(grown, w.conf("gke_node_pool", given(1)))
		if got := w.mutations(); !slices.Equal(got, []string{"SetNodePoolSize"}) {
			t.Errorf("a pool that is %s is made smaller by %v", status, got)
		}
	}
}

// TestPoolWithoutFallback: a stock-out and a missing quota are told apart, and end
// the create at once.
func TestPoolWithoutFallback(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	config := w.conf("gke_node_pool", gpu(nil))
	w.google.SetCapacity(gcptest.Capacity{Zone: zone}, 0)
	it, r := w.apply("op-1", w.plan(thing{kind: "gke_node_pool"}, config))
	if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Summary, "the zone has none left") || r.Keep || it.state.IsNull() {
		t.Errorf("a stock-out says %v", r.Diagnostics)
	}
	w.destroy(it)
	w.google.SetQuota("us-central1", "NVIDIA_L4_GPUS", 0)
	_, r = w.apply("op-2", w.plan(thing{kind: "gke_node_pool"}, config))
	if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Summary, "quota") || !strings.Contains(r.Diagnostics[0].Detail, "No role helps") || !r.State.IsNull() {
		t.Errorf("a missing quota says %v", r.Diagnostics)
	}
}

// TestPoolUnsure: lost answers and other operations in the way lead to one pool.
func TestPoolUnsure(t *testing.T) {
	for _, when := range []gcptest.When{gcptest.Before, gcptest.After} {
		w := withLab(newWorld(t, "grpc", gcptest.Options{}))
		for _, method := range []string{"CreateNodePool", "GetOperation", "GetNodePool", "DeleteNodePool"} {
			w.google.Fail(gcptest.Fault{Method: method, When: when})
			w.google.Fail(gcptest.Fault{Method: method, When: gcptest.Before, Code: codes.ResourceExhausted, Message: "Too many operations: cluster \"lab\" hits the concurrent operations quota 5, please try again later.", Skip: 1})
		}
		config := w.conf("gke_node_pool", cpu(nil))
		it := w.make(thing{kind: "gke_node_pool"}, config)
		w.empty(it, config)
		if r := w.destroy(it); r.Diagnostics.HasErrors() {
			t.Error(r.Diagnostics)
		}
	}
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	config := w.conf("gke_node_pool", cpu(nil))
	w.make(thing{kind: "gke_node_pool"}, config)
	if _, r := w.apply("another", w.plan(thing{kind: "gke_node_pool"}, config)); !r.Diagnostics.HasErrors() || !r.State.IsNull() {
		t.Errorf("somebody else's pool: %v", r.Diagnostics)
	}
}

// TestPoolKilled: a create that was killed while it ran is found by its mark, and
// goes on with the fallback where it ended in a stock-out.
func TestPoolKilled(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	w.google.SetCapacity(gcptest.Capacity{Zone: zone, Provisioning: "on-demand"}, 0)
	given := gpu(map[string]any{"fallback": []any{map[string]any{"spot": true}}, "timeouts": map[string]any{"create": "1s"}})
	w.google.Slow("CreateNodePool", 1<<20, 1)
	pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given))
	w.apply("op-1", pl)
	w.google.Settle()
	found := w.settle("op-1", pl)
	if found.state.IsNull() {
		t.Fatal("it was not found again")
	}
	w.mutations()
	update := w.plan(found, w.conf("gke_node_pool", given))
	it, r := w.apply("", update)
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	if got := w.mutations(); !slices.Equal(got, []string{"DeleteNodePool", "CreateNodePool"}) {
		t.Errorf("finished by %v", got)
	}
	w.empty(it, w.conf("gke_node_pool", given))
}

// TestPoolRules: what would be refused after minutes, the plan refuses.
func TestPoolRules(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	scaled := map[string]any{"total_min": 0, "total_max": 4}
	for _, test := range []struct {
		name  string
		given map[string]any
		want  string // "" for what is fine
	}{
		{"spot and flex-start", gpu(map[string]any{"spot": true, "flex_start": true, "node_count": nil, "autoscaling": scaled}), "Spot and flex-start at once"},
		{"flex-start without autoscaling", gpu(map[string]any{"flex_start": true}), "Flex-start without autoscaling"},
		{"flex-start", gpu(map[string]any{"flex_start": true, "node_count": nil, "autoscaling": scaled}), ""},
		{"flex-start with upgrades", gpu(map[string]any{"flex_start": true, "node_count": nil, "autoscaling": scaled, "max_surge": 1}), "Upgrades are not for such nodes"},
		{"queued", gpu(map[string]any{"queued_provisioning": true, "node_count": nil, "autoscaling": scaled}), ""},
		{"queued, not from 0", gpu(map[string]any{"queued_provisioning": true, "node_count": nil, "autoscaling": map[string]any{"total_min": 1, "total_max": 4}}), "Queued without autoscaling from 0"},
		{"reserved spot", gpu(map[string]any{"spot": true, "reservation": "r"}), "Reservation of such machines"},
		{"fallback from a reservation to spot", gpu(map[string]any{"reservation": "r", "fallback": []any{map[string]any{"spot": true}}}), "Reservation of such machines"},
		{"compact in two zones", gpu(map[string]any{"compact_placement": true, "zones": []any{zone, "us-central1-c"}}), "Compact placement in several zones"},
		{"wrong GPU", gpu(map[string]any{"accelerator": map[string]any{"type": "nvidia-tesla-t4", "count": 1}}), "Machine has other GPUs"},
		{"GPU that is not declared", gpu(map[string]any{"accelerator": nil}), "GPUs are not declared"},
		{"no GPU possible", cpu(map[string]any{"accelerator": map[string]any{"type": "nvidia-tesla-t4", "count": 1}}), "Machine cannot have GPUs"},
		{"GPU on n1", cpu(map[string]any{"machine_type": "n1-standard-4", "accelerator": map[string]any{"type": "nvidia-tesla-t4", "count": 1}}), ""},
		{"GPU that n1 has none of", cpu(map[string]any{"machine_type": "n1-standard-4", "accelerator": map[string]any{"type": "nvidia-l4", "count": 1}}), "Machine cannot have these GPUs"},
		{"three GPUs on n1", cpu(map[string]any{"machine_type": "n1-standard-4", "accelerator": map[string]any{"type": "nvidia-tesla-t4", "count": 3}}), "Machine cannot have these GPUs"},
		{"too many CPUs for a GPU", cpu(map[string]any{"machine_type": "n1-standard-16", "accelerator": map[string]any{"type": "nvidia-tesla-v100", "count": 1}}), "Machine cannot have these GPUs"},
		{"few pods", cpu(map[string]any{"max_pods_per_node": 7}), "No node has so many pods"},
		{"many pods", cpu(map[string]any{"max_pods_per_node": 257}), "No node has so many pods"},
		{"as many pods as can be", cpu(map[string]any{"max_pods_per_node": 256}), ""},
		{"size twice", cpu(map[string]any{"autoscaling": map[string]any{"max": 3}}), "Size and autoscaling at once"},
		{"regional GPUs without zones", gpu(map[string]any{"cluster": "us-central1/big"}), "Zones of the GPUs are missing"},
		{"upgrades without a node", cpu(map[string]any{"max_surge": 0, "max_unavailable": 0}), "Upgrades without a node"},
		{"unknown effect", cpu(map[string]any{"taints": []any{map[string]any{"key": "a", "value": "b", "effect": "NoSchedule"}}}), "Unknown value"},
	} {
		pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", test.given))
		var got []string
		for _, d := range pl.Diagnostics {
			got = append(got, d.Summary)
		}
		if test.want == "" && len(got) > 0 || test.want != "" && !slices.Contains(got, test.want) {
			t.Errorf("%s: %v, want %q", test.name, got, test.want)
		}
	}
	if got := w.mutations(); len(got) > 0 {
		t.Errorf("plans made %v", got)
	}
}

// TestPoolCapacity: a plan knows nodes that are not there yet.
func TestPoolCapacity(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", gpu(map[string]any{"zones": []any{zone}, "node_count": 3})))
	c, err := connect.CapacityFromValue(pl.Planned.GetAttr("capacity"))
	if err != nil || len(c.Groups) != 1 {
		t.Fatal(c, err)
	}
	g := c.Groups[0]
	if g.Min != 3 || g.Max != 3 || g.Extended["nvidia.com/gpu"] != 1 || g.CPU != 7910 || g.Memory >= 32<<30 || g.Memory < 27<<30 {
		t.Errorf("%+v", g)
	}
}
