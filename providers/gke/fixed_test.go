package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"

	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// elsewhereProject is another project than the double's.
const elsewhereProject = "other-project"

// fixedValues are other values for what cannot be changed.
var fixedValues = map[string]map[string]any{
	"gke_cluster": {
		"name": "other", "location": "us-central1-b", "project": elsewhereProject, "network": "other", "subnetwork": "second", "network_project": "host",
		"pods_range": "pods", "services_range": "services", "pods_cidr": "10.64.0.0/14", "services_cidr": "10.68.0.0/20",
	},
	"gke_node_pool": {
		"cluster": "us-central1-b/lab", "name": "other", "project": elsewhereProject, "service_account": "nodes@stoke-test.iam.gserviceaccount.com",
		"oauth_scopes": []any{"https://www.googleapis.com/auth/devstorage.read_only"}, "max_pods_per_node": 32, "pod_range": "pods", "spot": true, "flex_start": true,
		"queued_provisioning": true, "reservation": "r", "compact_placement": true, "local_ssd_count": 1, "raw_local_ssd_count": 1,
		"secondary_boot_disks": []any{map[string]any{"disk_image": "projects/p/global/images/i", "mode": "CONTAINER_IMAGE_CACHE"}},
	},
}

// beside is what goes with such a value.
var beside = map[string]map[string]any{
	"gke_cluster.network_project":        {"network": "default", "subnetwork": "default"},
	"gke_node_pool.flex_start":           {"node_count": nil, "auto_repair": false, "autoscaling": map[string]any{"total_min": 0, "total_max": 4}},
	"gke_node_pool.queued_provisioning":  {"node_count": nil, "autoscaling": map[string]any{"total_min": 0, "total_max": 4}},
	"gke_node_pool.secondary_boot_disks": {"image_streaming": true},
	"gke_filestore.tier":                 {"capacity_gb": 2560},
	"gke_filestore.protocol":             {"tier": "ZONAL"},
	"gke_disk_snapshot.project":          {"disk": "projects/" + elsewhereProject + "/zones/" + zone + "/disks/data"},
	"gke_disk.location of wide":          {"replica_zones": []any{"europe-west4-a", "europe-west4-b"}},
	"gke_disk.replica_zones of data":     {"location": "us-central1", "type": "pd-ssd"},
}

// fixedCase is an argument that cannot be changed, with another value.
type fixedCase struct {
	kind, field   string // accelerator.count is one in a block
	given, change map[string]any
}

func (c fixedCase) name() string { return c.kind + "." + c.field }

// fixedCases are all there are, of every kind of resource.
func fixedCases() []fixedCase {
	var all []fixedCase
	add := func(kind string, given map[string]any, values map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			c := fixedCase{kind, name, maps.Clone(given), map[string]any{name: values[name]}}
			maps.Copy(c.change, beside[c.name()])
			maps.Copy(c.change, beside[c.name()+" of "+given["name"].(string)])
			if kind == "gke_disk" || kind == "gke_filestore" {
				c.given["allow_data_loss"] = true
			}
			all = append(all, c)
		}
	}
	add("gke_cluster", lab(map[string]any{"name": "fixed"}), fixedValues["gke_cluster"])
	add("gke_node_pool", gpu(map[string]any{"cluster": zone + "/lab"}), fixedValues["gke_node_pool"])
	for _, o := range objectCases() {
		add(o.kind, o.given, o.fixed)
	}
	gpus := func(field, machine, kind string, other map[string]any) {
		is := map[string]any{"type": kind, "count": 1}
		given := cpu(map[string]any{"machine_type": machine, "accelerator": maps.Clone(is), "zones": []any{zone}})
		if other != nil {
			maps.Copy(is, other)
			all = append(all, fixedCase{"gke_node_pool", field, given, map[string]any{"accelerator": is}})
			return
		}
		all = append(all, fixedCase{"gke_node_pool", field, given, map[string]any{"accelerator": nil}})
	}
	gpus("accelerator.type", "n1-standard-8", "nvidia-tesla-v100", map[string]any{"type": "nvidia-tesla-t4"})
	gpus("accelerator.count", "n1-standard-8", "nvidia-tesla-v100", map[string]any{"count": 2})
	gpus("accelerator.partition", "a2-highgpu-1g", "nvidia-tesla-a100", map[string]any{"partition": "1g.5gb"})
	gpus("accelerator", "n1-standard-8", "nvidia-tesla-v100", nil)
	return all
}

// fixedWorld is one in which an object can be made, and the other one, too.
func fixedWorld(t testing.TB, transport, project string, c fixedCase) *world {
	w := newWorld(t, transport, gcptest.Options{Project: project, Networks: []string{"other"}, HostProjects: []string{"host"}, Subnetworks: []*compute.Subnetwork{
		{Name: "default", Region: "us-central1", SecondaryIpRanges: []*compute.SubnetworkSecondaryRange{{RangeName: "pods", IpCidrRange: "10.64.0.0/14"}, {RangeName: "services", IpCidrRange: "10.68.0.0/20"}}},
		{Name: "second", Region: "us-central1"},
	}})
	w.google.SetCapacity(gcptest.Capacity{Provisioning: "reservation:r"}, 8)
	switch {
	case c.kind == "gke_node_pool":
		w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
		if c.field == "cluster" {
			w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"location": "us-central1-b"})))
		}
	case c.kind == "gke_disk_snapshot":
		w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
		w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(map[string]any{"name": "other"})))
	case c.name() == "gke_disk.snapshot":
		path := "projects/" + project + "/global/snapshots/s"
		w.google.Put(path, &compute.Snapshot{Name: "s", Status: "READY", DiskSizeGb: 10, SelfLink: "https://www.googleapis.com/compute/v1/" + path})
	}
	w.google.Forget()
	return w
}

// TestFixed: each argument that cannot be changed replaces, and the plan names it and
// nothing else as the reason. The replacement is carried out: the old object goes,
// there is one new one, and the next plan is empty. What has an API over REST alone is
// the same with either transport.
func TestFixed(t *testing.T) {
	for _, transport := range []string{cloud.GRPC, cloud.REST} {
		for _, c := range fixedCases() {
			if overREST := c.kind != "gke_cluster" && c.kind != "gke_node_pool"; overREST && transport == cloud.GRPC {
				continue
			}
			t.Run(transport+"/"+c.name(), func(t *testing.T) {
				w := fixedWorld(t, transport, "stoke-test", c)
				w.replace(w.make(thing{kind: c.kind}, w.conf(c.kind, c.given)), c)
			})
		}
	}
}

// TestFixedBeside: a change in place replaces nothing.
func TestFixedBeside(t *testing.T) {
	for _, c := range fixedCases() {
		if c.field != "name" {
			continue
		}
		w := fixedWorld(t, cloud.GRPC, "stoke-test", c)
		it := w.make(thing{kind: c.kind}, w.conf(c.kind, c.given))
		change := map[string]any{"labels": map[string]any{"x": "y"}}
		if c.kind == "gke_firewall_rule" { // which has none
			change = map[string]any{"description": "x"}
		}
		if pl := w.plan(it, w.conf(c.kind, with(c.given, change))); len(pl.Replace) > 0 || pl.noop() {
			t.Errorf("%s: %v replaces because of %v", c.kind, change, pl.replaced())
		}
	}
}

// replace carries a replacement out as the engine does: what was there is deleted, and
// then another one made.
func (w *world) replace(was thing, c fixedCase) {
	w.Helper()
	given := maps.Clone(c.given)
	maps.Copy(given, c.change)
	config := w.conf(c.kind, given)
	pl := w.plan(was, config)
	got := slices.DeleteFunc(pl.replaced(), func(s string) bool { _, also := c.change[s]; return also && s != c.field })
	if !slices.Equal(got, []string{c.field}) || pl.Diagnostics.HasErrors() {
		w.Fatalf("replaced because of %v: %v", got, pl.Diagnostics)
	}
	old := textIn(was.state, "id")
	mark := markOn(w.object(old))
	w.google.Forget()
	if r := w.destroy(was); r.Diagnostics.HasErrors() {
		w.Fatal(r.Diagnostics)
	}
	calls, left := w.google.Calls(), w.objects()
	w.google.Forget()
	if slices.Contains(left, old) {
		w.Fatal("the old object is still there")
	}
	if c.field == "project" { // which another double has
		w.google = fixedWorld(w.TB, w.transport, elsewhereProject, c).google
		left = w.objects()
	}
	it := w.make(thing{kind: c.kind, replaces: was.state}, config)
	path := textIn(it.state, "id")
	w.swapped(append(calls, w.google.Calls()...), old, path)
	if o := w.object(path); !marked(o) || markOn(o) == mark {
		w.Errorf("there is no new object at %s", path)
	}
	if now, want := w.objects(), slices.Sorted(slices.Values(append(left, path))); !slices.Equal(now, want) {
		w.Errorf("there is %v, and not %v", now, want)
	}
	w.empty(it, config)
}

// TestFixedWhole: each argument of an object that replaces is tried.
func TestFixedWhole(t *testing.T) {
	for kind, schema := range map[string]map[string]bool{
		"gke_disk": schemaOf(t, &life[diskModel, *diskModel]{}), "gke_disk_snapshot": schemaOf(t, &life[snapshotModel, *snapshotModel]{}),
		"gke_firewall_rule": schemaOf(t, &life[firewallModel, *firewallModel]{}), "gke_filestore": schemaOf(t, &life[filestoreModel, *filestoreModel]{}),
	} {
		var tried, fixed []string
		for _, c := range fixedCases() {
			if c.kind == kind && !slices.Contains(tried, c.field) {
				tried = append(tried, c.field)
			}
		}
		for name, replaces := range schema {
			if replaces {
				fixed = append(fixed, name)
			}
		}
		slices.Sort(tried)
		slices.Sort(fixed)
		if !slices.Equal(tried, fixed) {
			t.Errorf("%s: %v replace, and %v are tried", kind, fixed, tried)
		}
	}
}

// swapped checks by the double's log that one object was deleted, and then another one
// made, and nothing else; the cluster's first pool may go.
func (w *world) swapped(calls []gcptest.Call, old, path string) {
	w.Helper()
	var got []string
	for _, c := range calls {
		if !c.Mutating || c.Code != 0 || strings.HasSuffix(c.Target, "/"+bootstrap) {
			continue
		}
		verb := "changes"
		for _, v := range []string{"delete", "insert", "create"} {
			if strings.Contains(strings.ToLower(c.Method), v) {
				verb = v
			}
		}
		got = append(got, verb+" "+c.Target)
	}
	if len(got) != 2 || got[0] != "delete "+old || !slices.Contains([]string{"insert " + path, "create " + path}, got[1]) {
		w.Errorf("%s was replaced by %v", old, got)
	}
}

// objects are the paths of all there is, but for the clusters' first pools.
func (w *world) objects() []string {
	return slices.DeleteFunc(w.google.Paths(), func(path string) bool { return strings.HasSuffix(path, "/"+bootstrap) })
}

// markOn is the mark of an object.
func markOn(o *gcptest.Object) string {
	if o == nil {
		return ""
	}
	if m := o.Labels["stoke-operation"]; m != "" {
		return m
	}
	_, m, _ := strings.Cut(o.Description, "stoke-operation: ")
	return m
}
