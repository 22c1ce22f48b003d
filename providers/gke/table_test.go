package gke

import (
	"context"
	"encoding/json"
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
	"gke_node_pool": {"allow_data_loss", "fallback", "initial_node_count"},
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
