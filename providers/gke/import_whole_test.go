package gke

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// importCase is an object with a value of each argument that can change or that Google does not know, and what it has in its
// place in another configuration.
type importCase struct {
	kind, path   string
	given, other map[string]any
	own          []string // which Google does not know
	world        func(t *testing.T) *world
}

func importCases() []importCase {
	limits := map[string]any{"create": "2h", "delete": "90m"}
	inLab := func(t *testing.T) *world {
		w := newWorld(t, "grpc", gcptest.Options{})
		w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"release_channel": "NONE", "version": gcptest.Versions[0]})))
		return w
	}
	alone := func(t *testing.T) *world { return newWorld(t, "grpc", gcptest.Options{}) }
	cluster := with(lab(clusterValues), map[string]any{"timeouts": limits, "deletion_protection": true, "node_service_account": "nodes@stoke-test.iam.gserviceaccount.com",
		"destroy_cloud_objects": []any{"volumes"}})
	pool := with(gpu(poolValues), map[string]any{"timeouts": limits, "allow_data_loss": true, "zones": []any{zone}, "node_count": nil, "initial_node_count": 1,
		"autoscaling": map[string]any{"min": 1, "max": 3, "location_policy": "ANY"}, "fallback": []any{map[string]any{"spot": true}}})
	return []importCase{
		{"gke_cluster", labPath, cluster, map[string]any{
			"version": "1.99", "authorized_networks": []any{"10.1.0.0/16"}, "labels": map[string]any{"team": "x"}, "maintenance_exclusions": nil,
			"maintenance_window": map[string]any{"start": "2026-01-03T02:00:00Z", "end": "2026-01-03T09:00:00Z", "recurrence": "FREQ=DAILY"},
		}, []string{"endpoint", "deletion_protection", "node_service_account", "destroy_cloud_objects"}, alone},
		{"gke_node_pool", labPath + "/nodePools/gpu", pool, map[string]any{
			"version": "1.99", "labels": map[string]any{"a": "d"}, "taints": nil, "tags": []any{"x"}, "resource_labels": nil,
			"kubelet": map[string]any{"insecure_readonly_port": false, "max_parallel_image_pulls": 4}, "linux": nil, "drain": nil,
			"autoscaling": map[string]any{"min": 1, "max": 3, "location_policy": "BALANCED"},
		}, []string{"allow_data_loss", "initial_node_count", "fallback"}, inLab},
		{"gke_disk", diskPath, data(map[string]any{"timeouts": limits, "snapshot_before_destroy": true, "allow_data_loss": true, "labels": map[string]any{"a": "b"}}),
			map[string]any{"labels": nil}, []string{"snapshot_before_destroy", "allow_data_loss"}, alone},
		{"gke_filestore", sharePath, shared(map[string]any{"timeouts": limits, "allow_data_loss": true, "labels": map[string]any{"a": "b"},
			"export": []any{map[string]any{"ip_ranges": []any{"10.0.0.0/8"}, "access_mode": "READ_ONLY"}}}),
			map[string]any{"labels": nil, "export": []any{map[string]any{"ip_ranges": []any{"10.0.0.0/8"}}}}, []string{"allow_data_loss"}, alone},
		{"gke_firewall_rule", "projects/stoke-test/global/firewalls/ssh", ssh(map[string]any{"timeouts": limits, "allow": []any{map[string]any{"protocol": "TCP", "ports": []any{"443", "22"}}}}),
			map[string]any{"allow": []any{map[string]any{"protocol": "tcp", "ports": []any{"22"}}}, "source_ranges": []any{"10.1.0.0/16"}}, nil, alone},
	}
}

// differing are the names of the arguments that a plan changes, sorted.
func (p planned) differing() []string {
	var all []string
	for name, v := range p.Planned.AsValueMap() {
		was := p.prior.state.GetAttr(name)
		if declared := !p.config.GetAttr(name).IsNull() || v.IsKnown() && v.IsNull(); declared && !v.RawEquals(was) && name != "effective_labels" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// written is the configuration that stoke writes for an imported object.
func (w *world) written(of thing) cty.Value {
	schema, _ := w.phase().Schema(w.Context())
	all := of.state.AsValueMap()
	for name, a := range schema.Resources[of.kind].Block.Attributes {
		if !a.Optional && !a.Required {
			all[name] = cty.NullVal(all[name].Type())
		}
	}
	return cty.ObjectVal(all)
}

// TestImportedWhole: the plan after an import is empty where the configuration says what Google has, also of arguments that Google
// does not know, and with the configuration that stoke writes; and each argument that says something else is a difference.
func TestImportedWhole(t *testing.T) {
	for _, test := range importCases() {
		t.Run(test.kind, func(t *testing.T) {
			w := test.world(t)
			config := w.conf(test.kind, test.given)
			w.make(thing{kind: test.kind}, config)
			w.mutations()
			w.empty(w.importingAs(config, test.kind, test.path), config)

			bare := map[string]any{} // without the arguments that Google does not know
			for name, v := range test.given {
				if name == "endpoint" { // the others are closed
					bare[name] = v
				}
				if name != "timeouts" && !slices.Contains(test.own, name) {
					bare[name] = v
				}
			}
			w.empty(w.importingAs(w.conf(test.kind, bare), test.kind, test.path), w.conf(test.kind, bare))

			written := w.written(w.importing(test.kind, test.path))
			w.empty(w.importingAs(written, test.kind, test.path), written)

			other := w.conf(test.kind, with(test.given, test.other))
			pl := w.plan(w.importingAs(other, test.kind, test.path), other)
			var want []string
			for name := range test.other {
				want = append(want, name)
			}
			slices.Sort(want)
			if got := pl.differing(); !slices.Equal(got, want) {
				t.Errorf("differences of %v, want %v (%v)", got, want, pl.Diagnostics)
			}
			if got := w.mutations(); len(got) > 0 {
				t.Errorf("imports change something: %v", got)
			}
		})
	}
}

// TestImportOfAnother: an import reads the object that its id names, whatever the configuration calls it.
func TestImportOfAnother(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	for _, name := range []string{"a", "b"} {
		w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", cpu(map[string]any{"name": name})))
	}
	config := w.conf("gke_node_pool", cpu(map[string]any{"name": "a"}))
	it := w.importingAs(config, "gke_node_pool", labPath+"/nodePools/b")
	if got := it.state.GetAttr("name").AsString(); got != "b" {
		t.Errorf("%s is imported", got)
	}
	if got := w.plan(it, config).replaced(); !slices.Equal(got, []string{"name"}) {
		t.Errorf("replaced because of %v", got)
	}
}

// TestImportUnread: what Google does not tell now is not imported.
func TestImportUnread(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	config := w.conf("gke_cluster", lab(nil))
	r := w.phase().Import(t.Context(), providers.ImportRequest{Type: "gke_cluster", ID: labPath, Config: config})
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	w.google.Fail(gcptest.Fault{Method: "GetCluster", Code: codes.Internal, Times: -1}) // which Google's client does not repeat
	read := w.phase().Read(t.Context(), providers.ReadRequest{Type: "gke_cluster", State: r.Objects[0].State, Private: r.Objects[0].Private})
	if said := fmt.Sprint(read.Diagnostics); !read.Diagnostics.HasErrors() || !strings.Contains(said, "cannot be imported") {
		t.Errorf("said is %v", said)
	}
}

// TestImportByStep: a pool that a step of its fallback has made is imported with its configuration as it is without one.
func TestImportByStep(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	w.google.SetCapacity(gcptest.Capacity{Provisioning: "spot"}, 0)
	config := w.conf("gke_node_pool", gpu(map[string]any{"spot": true, "fallback": []any{map[string]any{"spot": false}}}))
	made := w.make(thing{kind: "gke_node_pool"}, config)
	if made.step() != 1 {
		t.Fatalf("made by step %d", made.step())
	}
	pl := w.plan(w.importingAs(config, made.kind, labPath+"/nodePools/gpu"), config)
	if pl.Diagnostics.HasErrors() || len(pl.Replace) > 0 {
		t.Fatalf("%v, replaced because of %v", pl.Diagnostics, pl.replaced())
	}
	without := w.plan(w.importing(made.kind, labPath+"/nodePools/gpu"), config)
	if !pl.Planned.RawEquals(without.Planned) {
		t.Errorf("planned is %#v, and without the configuration %#v", pl.Planned, without.Planned)
	}
}
