package gke

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	compute "google.golang.org/api/compute/v1"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// reviewed plans things and has the plan reviewed as a whole.
func (w *world) reviewed(things map[string]map[string]any) (summaries, notes string) {
	w.Helper()
	var all providers.Review
	for address, given := range things {
		kind, _, _ := strings.Cut(address, ".")
		pl := w.plan(thing{kind: kind}, w.conf(kind, given))
		if pl.Diagnostics.HasErrors() {
			w.Fatal(pl.Diagnostics)
		}
		all.Planned = append(all.Planned, providers.PlannedInstance{Address: address, Type: kind, Prior: cty.NullVal(pl.Planned.Type()), Planned: pl.Planned})
	}
	all.Configured = []providers.Provider{w.phase()}
	said, diags := w.entry.Review(w.Context(), all)
	var text []string
	for _, d := range diags {
		text = append(text, map[providers.Severity]string{providers.Error: "error: ", providers.Warning: "warning: "}[d.Severity]+d.Summary+": "+d.Detail)
	}
	for _, n := range said {
		notes += n.Text + "\n"
	}
	return strings.Join(text, "\n"), notes
}

// TestReview: what clusters and pools need together is looked at before money is spent.
func TestReview(t *testing.T) {
	subnetworks := []*compute.Subnetwork{{Name: "small", Region: "us-central1", Network: "default", IpCidrRange: "10.0.0.0/28",
		SecondaryIpRanges: []*compute.SubnetworkSecondaryRange{{RangeName: "pods", IpCidrRange: "10.1.0.0/22"}}}}
	for _, test := range []struct {
		name          string
		cluster, pool map[string]any
		want          string // "" for nothing
	}{
		{"fine", lab(nil), cpu(nil), ""},
		{"a channel and no upgrades", lab(nil), cpu(map[string]any{"auto_upgrade": false}), "error: Release channel without upgrades"},
		{"a channel and no repairs", lab(nil), cpu(map[string]any{"auto_repair": false}), "error: Release channel without repairs"},
		{"flex-start goes without repairs", lab(nil), gpu(map[string]any{"auto_repair": false, "flex_start": true, "node_count": nil, "autoscaling": map[string]any{"total_min": 0, "total_max": 2}}), ""},
		{"no channel and no upgrades", lab(map[string]any{"release_channel": "NONE"}), cpu(map[string]any{"auto_upgrade": false}), ""},
		{"pods fit", lab(map[string]any{"subnetwork": "small", "pods_range": "pods"}), cpu(map[string]any{"node_count": 4}), ""},
		{"too many pods", lab(map[string]any{"subnetwork": "small", "pods_range": "pods"}), cpu(map[string]any{"node_count": 5}), "error: Addresses of the pods do not suffice"},
		{"fewer pods on a node", lab(map[string]any{"subnetwork": "small", "pods_range": "pods"}), cpu(map[string]any{"node_count": 5, "max_pods_per_node": 32}), ""},
		{"pods by size", lab(map[string]any{"pods_cidr": "/23"}), cpu(map[string]any{"node_count": 3}), "error: Addresses of the pods do not suffice"},
		{"too many nodes", lab(map[string]any{"subnetwork": "small", "pods_cidr": "/14"}), cpu(map[string]any{"node_count": 13}), "error: Addresses of the nodes do not suffice"},
		{"autoscaling", lab(map[string]any{"pods_cidr": "/23"}), cpu(map[string]any{"node_count": nil, "autoscaling": map[string]any{"min": 1, "max": 9}}), "warning: Addresses limit the autoscaling"},
		{"quota", lab(nil), gpu(map[string]any{"node_count": 3}), "error: Quota of the project does not suffice"},
		{"quota with a fallback", lab(nil), gpu(map[string]any{"node_count": 3, "fallback": []any{map[string]any{"spot": true}}}), "warning: Quota of the project does not suffice"},
		{"enough quota", lab(nil), gpu(map[string]any{"node_count": 2}), ""},
	} {
		w := newWorld(t, "grpc", gcptest.Options{Subnetworks: subnetworks, Quota: map[string]map[string]float64{"us-central1": {"NVIDIA_L4_GPUS": 2}}})
		got, notes := w.reviewed(map[string]map[string]any{"gke_cluster.lab": test.cluster, "gke_node_pool.x": test.pool})
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) || notes != "" {
			t.Errorf("%s: %q %q, want %q", test.name, got, notes, test.want)
		}
	}
}

// TestAdvice: what may not be asked is a note, is asked once for all pools, and keeps
// nothing from being planned.
func TestAdvice(t *testing.T) {
	for _, code := range []codes.Code{codes.PermissionDenied, codes.NotFound, codes.Unimplemented} {
		w := withLab(newWorld(t, "grpc", gcptest.Options{}))
		w.google.Fail(gcptest.Fault{Method: "compute.acceleratorTypes.list", Code: code, Times: -1})
		pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", gpu(nil)))
		if len(pl.Diagnostics) > 0 || !strings.Contains(strings.Join(pl.notes, "\n"), "Not checked: whether "+zone+" has the GPUs") {
			t.Errorf("%v: %v %v", code, pl.Diagnostics, pl.notes)
		}
		w.google.Fail(gcptest.Fault{Method: "compute.regions.get", Code: code, Times: -1})
		if got, notes := w.reviewed(map[string]map[string]any{"gke_node_pool.x": gpu(map[string]any{"name": "more"})}); got != "" || !strings.Contains(notes, "Not checked: the quotas of us-central1") {
			t.Errorf("%v: %q %q", code, got, notes)
		}
	}
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	p := w.phase()
	schema, _ := p.Schema(t.Context())
	for range 5 {
		conf := w.conf("gke_node_pool", gpu(nil))
		null := cty.NullVal(conf.Type())
		p.Plan(t.Context(), providers.PlanRequest{Type: "gke_node_pool", Prior: null, Config: conf, Proposed: proposed(schema.Resources["gke_node_pool"].Block.Attributes, null, conf)})
	}
	if n := len(w.google.Calls("compute.acceleratorTypes.list")); n != 1 {
		t.Errorf("the GPUs of a zone are listed %d times in a run", n)
	}
	for _, test := range []struct {
		given map[string]any
		want  string
	}{
		{gpu(map[string]any{"zones": []any{"us-central1-b"}, "machine_type": "a3-highgpu-8g", "accelerator": map[string]any{"type": "nvidia-h100-80gb", "count": 8}}), "Zone does not have this GPU"},
		{gpu(map[string]any{"zones": []any{zone}, "machine_type": "a3-highgpu-8g", "accelerator": map[string]any{"type": "nvidia-h100-80gb", "count": 8}, "fallback": []any{map[string]any{"zones": []any{"us-central1-b"}}}}), "Zone does not have this GPU"},
	} {
		pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", test.given))
		if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != test.want {
			t.Errorf("%v", pl.Diagnostics)
		}
	}
}

// TestNAT: private nodes without Cloud NAT are warned of.
func TestNAT(t *testing.T) {
	for _, test := range []struct {
		routers []*compute.Router
		warned  bool
	}{
		{nil, true},
		{[]*compute.Router{{Name: "r", Region: "us-central1", Network: "default"}}, true},
		{[]*compute.Router{{Name: "r", Region: "us-central1", Network: "default", Nats: []*compute.RouterNat{{Name: "n"}}}}, false},
	} {
		w := newWorld(t, "grpc", gcptest.Options{Routers: test.routers})
		pl := w.plan(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"private_nodes": true})))
		if warned := len(pl.Diagnostics) == 1 && pl.Diagnostics[0].Summary == "Private nodes without Cloud NAT"; warned != test.warned || pl.Diagnostics.HasErrors() {
			t.Errorf("%v: %v", test.routers, pl.Diagnostics)
		}
	}
}

// TestSharedNetwork: a host project alone says of none of its networks that it is meant,
// and the cluster would be made in the default one of its own project.
func TestSharedNetwork(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{HostProjects: []string{"host"}})
	for _, given := range []map[string]any{{}, {"network": "default"}, {"subnetwork": "default"}, {"network": "default", "subnetwork": "default"}} {
		config := w.conf("gke_cluster", lab(with(given, map[string]any{"network_project": "host"})))
		pl := w.plan(thing{kind: "gke_cluster"}, config)
		if len(given) < 2 {
			if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != "Shared VPC without a network" {
				t.Errorf("%v: %v", given, pl.Diagnostics)
			}
			continue
		}
		w.empty(w.make(thing{kind: "gke_cluster"}, config), config)
	}
}

// TestRuns: nodes are not taken from under running experiments, unless that is allowed.
func TestRuns(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	k := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
	pool := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", gpu(nil)))
	run := func(status string, endpoint cty.Value) cty.Value {
		access := k.state.GetAttr("access").AsValueMap()
		access["endpoint"] = endpoint
		return cty.ObjectVal(map[string]cty.Value{"status": cty.StringVal(status), "cluster": cty.ObjectVal(access)})
	}
	here, elsewhere := k.state.GetAttr("access").GetAttr("endpoint"), cty.StringVal("https://192.0.2.1")
	for _, test := range []struct {
		name    string
		run     cty.Value
		ends    bool
		given   map[string]any // nil for a pool that is destroyed
		replace bool
		want    string
	}{
		{"replaced", run("running", here), false, gpu(map[string]any{"spot": true}), true, "error: Experiments run in this cluster: The pool is replaced, while train_experiment.x"},
		{"destroyed", run("running", here), false, nil, false, "error: Experiments run in this cluster: The pool is destroyed"},
		{"nodes anew", run("running", here), false, gpu(map[string]any{"image_type": "UBUNTU_CONTAINERD"}), false, "error: Experiments run in this cluster: The change of image_type"},
		{"allowed", run("running", here), false, gpu(map[string]any{"image_type": "UBUNTU_CONTAINERD", "allow_data_loss": true}), false, "warning: Experiments run in this cluster"},
		{"grows", run("running", here), false, gpu(map[string]any{"node_count": 2, "labels": map[string]any{"a": "b"}}), false, ""},
		{"finished", run("succeeded", here), false, nil, false, ""},
		{"ends with it", run("running", here), true, nil, false, ""},
		{"elsewhere", run("running", elsewhere), false, nil, false, ""},
	} {
		null := cty.NullVal(pool.state.Type())
		planned := null
		if test.given != nil {
			prior := pool
			if test.replace {
				prior = thing{kind: pool.kind}
			}
			planned = w.plan(prior, w.conf(pool.kind, test.given)).Planned
		}
		after := test.run
		if test.ends {
			after = cty.NullVal(after.Type())
		}
		_, diags := w.entry.Review(t.Context(), providers.Review{Configured: []providers.Provider{w.phase()}, Planned: []providers.PlannedInstance{
			{Address: "gke_cluster.lab", Type: "gke_cluster", Prior: k.state, Planned: k.state},
			{Address: "gke_node_pool.gpu", Type: "gke_node_pool", Prior: pool.state, Planned: planned},
			{Address: "train_experiment.x", Type: "train_experiment", Prior: test.run, Planned: after},
		}})
		got := ""
		for _, d := range diags {
			got += map[providers.Severity]string{providers.Error: "error: ", providers.Warning: "warning: "}[d.Severity] + d.Summary + ": " + d.Detail
		}
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
