package gke

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// alone are arguments whose change makes no call: they are of stoke itself, or of
// the create alone.
var alone = map[string][]string{
	"gke_cluster":   {"deletion_protection", "node_service_account", "destroy_cloud_objects"},
	"gke_node_pool": {"allow_data_loss", "fallback"},
}

// arguments are the names of what a configuration may say, with whether another
// value makes another object.
func arguments(s schema.Schema) map[string]bool {
	all := map[string]bool{}
	for name, a := range s.Attributes {
		if a.IsRequired() || a.IsOptional() {
			all[name] = replaces(a)
		}
	}
	for name := range s.Blocks {
		if name != "timeouts" {
			all[name] = false
		}
	}
	return all
}

// replaces tells whether an attribute has a modifier that replaces.
func replaces(a schema.Attribute) bool {
	var all []string
	switch a := a.(type) {
	case schema.StringAttribute:
		for _, m := range a.PlanModifiers {
			all = append(all, m.Description(context.Background()))
		}
	case schema.BoolAttribute:
		for _, m := range a.PlanModifiers {
			all = append(all, m.Description(context.Background()))
		}
	case schema.Int64Attribute:
		for _, m := range a.PlanModifiers {
			all = append(all, m.Description(context.Background()))
		}
	case schema.SetAttribute:
		for _, m := range a.PlanModifiers {
			all = append(all, m.Description(context.Background()))
		}
	case schema.ListNestedAttribute:
		for _, m := range a.PlanModifiers {
			all = append(all, m.Description(context.Background()))
		}
	}
	return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "destroy and recreate") })
}

func schemaOf(t *testing.T, r resource.Resource) map[string]bool {
	t.Helper()
	var resp resource.SchemaResponse
	r.Schema(t.Context(), resource.SchemaRequest{}, &resp)
	return arguments(resp.Schema)
}

// TestTables: each argument is in the table of changes, or makes another object, or
// is none of Google's: a new one fails this until it is decided which.
func TestTables(t *testing.T) {
	rows := map[string][]string{}
	for _, r := range clusterTable {
		rows["gke_cluster"] = append(rows["gke_cluster"], r.attribute)
	}
	for _, r := range poolTable {
		rows["gke_node_pool"] = append(rows["gke_node_pool"], r.attribute)
	}
	schemas := map[string]map[string]bool{
		"gke_cluster":   schemaOf(t, &life[clusterModel, *clusterModel]{}),
		"gke_node_pool": schemaOf(t, &life[poolModel, *poolModel]{}),
	}
	for kind, all := range schemas {
		for name, fixed := range all {
			n := 0
			for _, is := range []bool{fixed, slices.Contains(rows[kind], name), slices.Contains(alone[kind], name)} {
				if is {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s.%s: it replaces (%v), is in the table (%v), or is of stoke alone (%v): exactly one has to be true", kind, name, fixed, slices.Contains(rows[kind], name), slices.Contains(alone[kind], name))
			}
			if _, ok := fixedValues[kind][name]; fixed != ok {
				t.Errorf("%s.%s replaces: %v, and TestFixed tries it: %v", kind, name, fixed, ok)
			}
		}
		for _, name := range rows[kind] {
			if _, ok := all[name]; !ok {
				t.Errorf("%s: the table has %s, which is no argument", kind, name)
			}
		}
	}
	for name := range poolFixed {
		if !schemas["gke_node_pool"][name] {
			t.Errorf("poolFixed has %s, which does not replace", name)
		}
	}
	for name, fixed := range schemas["gke_node_pool"] {
		if _, ok := poolFixed[name]; fixed && !ok {
			t.Errorf("poolFixed lacks %s, by which data may be lost", name)
		}
	}
}

// fixedValues are other values for what cannot be changed.
var fixedValues = map[string]map[string]any{
	"gke_cluster": {
		"name": "other", "location": "us-central1-b", "project": "other-project", "network": "other", "subnetwork": "other", "network_project": "host",
		"pods_range": "pods", "services_range": "services", "pods_cidr": "10.64.0.0/14", "services_cidr": "10.68.0.0/20",
	},
	"gke_node_pool": {
		"cluster": "us-central1-b/lab", "name": "other", "project": "other-project", "service_account": "nodes@stoke-test.iam.gserviceaccount.com",
		"oauth_scopes": []any{"https://www.googleapis.com/auth/devstorage.read_only"}, "max_pods_per_node": 32, "pod_range": "pods", "spot": true, "flex_start": true,
		"queued_provisioning": true, "reservation": "r", "compact_placement": true, "local_ssd_count": 1, "raw_local_ssd_count": 1,
		"secondary_boot_disks": []any{map[string]any{"disk_image": "projects/p/global/images/i", "mode": "CONTAINER_IMAGE_CACHE"}},
	},
}

// beside is what goes with such a value.
var beside = map[string]map[string]any{
	"network_project":      {"subnetwork": "default"},
	"flex_start":           {"node_count": nil, "auto_repair": false, "autoscaling": map[string]any{"total_min": 0, "total_max": 4}},
	"queued_provisioning":  {"node_count": nil, "autoscaling": map[string]any{"total_min": 0, "total_max": 4}},
	"secondary_boot_disks": {"image_streaming": true},
}

// TestFixed: each argument that cannot be changed replaces, and the plan names it and
// nothing else as the reason. A change in place beside it replaces nothing.
func TestFixed(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{Networks: []string{"other"}, HostProjects: []string{"host"}}))
	given := map[string]map[string]any{"gke_cluster": lab(map[string]any{"name": "fixed"}), "gke_node_pool": gpu(map[string]any{"cluster": zone + "/lab"})}
	for _, kind := range []string{"gke_cluster", "gke_node_pool"} {
		it := w.make(thing{kind: kind}, w.conf(kind, given[kind]))
		for _, name := range slices.Sorted(maps.Keys(fixedValues[kind])) {
			conf := maps.Clone(given[kind])
			conf[name] = fixedValues[kind][name]
			maps.Copy(conf, beside[name])
			pl := w.plan(it, w.conf(kind, conf))
			if got := slices.DeleteFunc(pl.replaced(), func(s string) bool { _, also := beside[name][s]; return also }); !slices.Equal(got, []string{name}) || pl.Diagnostics.HasErrors() {
				t.Errorf("%s.%s: replaced because of %v: %v", kind, name, got, pl.Diagnostics)
			}
		}
		conf := maps.Clone(given[kind])
		conf["labels"] = map[string]any{"x": "y"}
		if pl := w.plan(it, w.conf(kind, conf)); len(pl.Replace) > 0 || pl.noop() {
			t.Errorf("%s: other labels replace because of %v", kind, pl.replaced())
		}
	}
	for name, value := range map[string]any{"type": "nvidia-tesla-t4", "count": 2, "partition": "1g.5gb"} {
		it := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", cpu(map[string]any{"name": "n1-" + name, "machine_type": "n1-standard-8", "accelerator": map[string]any{"type": "nvidia-tesla-v100", "count": 1}})))
		a := map[string]any{"type": "nvidia-tesla-v100", "count": 1}
		a[name] = value
		pl := w.plan(it, w.conf(it.kind, cpu(map[string]any{"name": "n1-" + name, "machine_type": "n1-standard-8", "accelerator": a})))
		if got := pl.replaced(); !slices.Equal(got, []string{"accelerator." + name}) {
			t.Errorf("accelerator.%s: replaced because of %v", name, got)
		}
	}
}

// sent are the fields of an UpdateCluster or UpdateNodePool, as they were sent.
func sent(t testing.TB, calls []gcptest.Call) []string {
	t.Helper()
	var all []string
	for _, call := range calls {
		var body map[string]json.RawMessage
		if err := json.Unmarshal(call.Body, &body); err != nil {
			t.Fatal(err)
		}
		if update, ok := body["update"]; ok {
			body = nil
			if err := json.Unmarshal(update, &body); err != nil {
				t.Fatal(err)
			}
		}
		for name := range body {
			if name != "name" {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// camel is a field's name in JSON.
func camel(field string) string {
	parts := strings.Split(field, "_")
	for i, p := range parts[1:] {
		parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
	}
	return strings.Join(parts, "")
}
