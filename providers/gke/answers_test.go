package gke

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/catalogue"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// The tests of this file are about answers of Google that public reports and recorded logs have.

// TestScopesAdded: scopes that GKE adds to declared ones are neither a difference nor a reason for another pool, and a scope that
// is no longer declared is.
func TestScopesAdded(t *testing.T) {
	const base = "https://www.googleapis.com/auth/"
	for name, added := range map[string][]string{"double": nil, "own account": {"userinfo.email", "cloud-platform"}} {
		w := withLab(newWorld(t, "grpc", gcptest.Options{}))
		given := cpu(map[string]any{"oauth_scopes": []any{base + "devstorage.read_only", base + "trace.append"}})
		if added != nil {
			given["service_account"] = "nodes@stoke-test.iam.gserviceaccount.com"
		}
		config := w.conf("gke_node_pool", given)
		it := w.make(thing{kind: "gke_node_pool"}, config)
		if err := w.google.ChangePool(labPath+"/nodePools/cpu", func(p *containerpb.NodePool) {
			for _, s := range added {
				p.Config.OauthScopes = append(p.Config.OauthScopes, base+s)
			}
		}); err != nil {
			t.Fatal(err)
		}
		w.empty(it, config)
		if added == nil { // of an import nobody has declared a part yet
			w.empty(w.adoptedBy(config, "gke_node_pool", labPath+"/nodePools/cpu"), config)
		}
		given["oauth_scopes"] = []any{base + "devstorage.read_only"}
		if got := w.plan(w.refresh(it), w.conf(it.kind, given)).replaced(); !slices.Equal(got, []string{"oauth_scopes"}) {
			t.Errorf("%s: a scope that goes replaces by %v", name, got)
		}
	}
}

// adoptedBy is an imported object after its first apply.
func (w *world) adoptedBy(config cty.Value, kind, id string) thing {
	w.Helper()
	imported := w.importing(kind, id)
	if got := w.plan(imported, config).replaced(); len(got) > 0 {
		w.Fatalf("replaced because of %v", got)
	}
	return w.make(imported, config)
}

// TestPlannedTogether: a cluster and its pools are checked in the plan that makes them: the id of the cluster follows from the
// configuration. The id of a replaced cluster stays unknown, because its pools are replaced with it.
func TestPlannedTogether(t *testing.T) {
	a2 := map[string]any{"machine_type": "a2-highgpu-1g", "accelerator": map[string]any{"type": "nvidia-tesla-a100", "count": 1}}
	for _, test := range []struct {
		name    string
		cluster map[string]any
		pool    map[string]any
		quota   string
		want    string
	}{
		{"zone without the GPU", lab(map[string]any{"location": "europe-west1-b"}), gpu(a2), "", "Zone does not have this GPU"},
		{"quota of the GPU", lab(nil), gpu(a2), "NVIDIA_A100_GPUS", "Quota of the project does not suffice"},
		{"quota, regional", lab(map[string]any{"location": "us-central1"}), gpu(with(a2, map[string]any{"zones": []any{zone}})), "NVIDIA_A100_GPUS", "Quota of the project does not suffice"},
		{"quota, zones of the cluster", lab(map[string]any{"location": "us-central1", "node_locations": []any{zone}}), cpu(nil), "N2_CPUS", "Quota of the project does not suffice"},
		{"addresses", lab(map[string]any{"pods_cidr": "/23"}), cpu(map[string]any{"node_count": 4}), "", "Addresses of the pods do not suffice"},
		{"fine", lab(nil), gpu(nil), "", ""},
	} {
		w := newWorld(t, "grpc", gcptest.Options{})
		if test.quota != "" {
			w.google.SetQuota("us-central1", test.quota, 0)
		}
		k := w.plan(thing{kind: "gke_cluster"}, w.conf("gke_cluster", test.cluster))
		if k.Diagnostics.HasErrors() || !k.Planned.GetAttr("id").IsKnown() {
			t.Fatalf("%s: %v, the id is %#v", test.name, k.Diagnostics, k.Planned.GetAttr("id"))
		}
		given := with(test.pool, map[string]any{"cluster": k.Planned.GetAttr("id").AsString()})
		p := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given))
		said := p.Diagnostics
		if !said.HasErrors() {
			_, more := w.entry.Review(t.Context(), providers.Review{Configured: []providers.Provider{w.phase()}, Planned: []providers.PlannedInstance{
				{Address: "gke_cluster.lab", Type: "gke_cluster", Prior: cty.NullVal(k.Planned.Type()), Planned: k.Planned},
				{Address: "gke_node_pool.x", Type: "gke_node_pool", Prior: cty.NullVal(p.Planned.Type()), Planned: p.Planned},
			}})
			said = append(said, more...)
		}
		if test.want == "" && len(said) > 0 || test.want != "" && (len(said) == 0 || said[0].Summary != test.want) {
			t.Errorf("%s: %v", test.name, said)
		}
		if test.want == "" { // and what was planned holds
			made := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", test.cluster))
			w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given))
			if got := made.state.GetAttr("id"); !got.RawEquals(k.Planned.GetAttr("id")) {
				t.Errorf("the id is %#v", got)
			}
			again := w.plan(thing{kind: "gke_cluster", replaces: made.state}, w.conf("gke_cluster", test.cluster))
			if again.Planned.GetAttr("id").IsKnown() {
				t.Error("the id of a replaced cluster is known")
			}
		}
	}
}

// TestBeginning: a pool with autoscaling is made with as many nodes as it has at least, and a fallback of a pool that begins
// without nodes is refused: it would never act.
func TestBeginning(t *testing.T) {
	for _, test := range []struct {
		name    string
		scaling map[string]any
		initial any
		nodes   int // in two zones
		acts    bool
	}{
		{"from one", map[string]any{"min": 1, "max": 3}, nil, 2, true},
		{"from none", map[string]any{"min": 0, "max": 3}, nil, 0, false},
		{"begins with one", map[string]any{"min": 0, "max": 3}, 1, 2, true},
		{"three in all", map[string]any{"total_min": 3, "total_max": 6}, nil, 4, true},
		{"three at most", map[string]any{"total_min": 3, "total_max": 3}, nil, 2, true},
		{"none in all", map[string]any{"total_min": 0, "total_max": 3}, nil, 0, false},
	} {
		w := newWorld(t, "grpc", gcptest.Options{})
		w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": []any{zone, "us-central1-c"}})))
		given := cpu(map[string]any{"node_count": nil, "autoscaling": test.scaling, "initial_node_count": test.initial, "spot": true})
		config := w.conf("gke_node_pool", given)
		w.empty(w.make(thing{kind: "gke_node_pool"}, config), config)
		if got := w.object(labPath + "/nodePools/cpu").Nodes; got != test.nodes {
			t.Errorf("%s: begins with %d nodes, not %d", test.name, got, test.nodes)
		}
		w.google.SetCapacity(gcptest.Capacity{Provisioning: "spot"}, 0)
		given["name"], given["fallback"] = "second", []any{map[string]any{"spot": false}}
		pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given))
		if acts := !pl.Diagnostics.HasErrors(); acts != test.acts || !acts && !strings.Contains(pl.Diagnostics[0].Detail, "ComputeClass") {
			t.Errorf("%s: %v", test.name, pl.Diagnostics)
		}
		if test.acts {
			if it := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given)); it.step() != 1 {
				t.Errorf("%s: step %d", test.name, it.step())
			}
		}
	}
}

// TestFilestoreQuota: the quota of Filestore is reported at once.
func TestFilestoreQuota(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	const create = "file.projects.locations.instances.create"
	w.google.Fail(gcptest.Fault{Method: create, Times: -1, Code: codes.ResourceExhausted, Message: "Quota limit 'EnterpriseStorageGibPerRegion' has been exceeded. Limit: 3072 in region us-central1."})
	_, r := w.apply("op", w.plan(thing{kind: "gke_filestore"}, w.conf("gke_filestore", shared(nil))))
	if n := len(w.google.Calls(create)); n != 1 || len(r.Diagnostics) != 1 || !strings.Contains(r.Diagnostics[0].Summary, "quota") || !strings.Contains(r.Diagnostics[0].Detail, "iam-admin/quotas") {
		t.Errorf("%d calls: %v", n, r.Diagnostics)
	}
}

// TestPreconditions: a precondition that fails because of another operation is waited for, whatever its text, and another one is
// not; both over gRPC and over HTTP, where its code is that of a wrong argument.
func TestPreconditions(t *testing.T) {
	texts := []string{"Master version is currently being upgraded.", "Node pool \"gpu\" is currently being updated by operation operation-1. Please wait.", "The cluster is in RECONCILING."}
	transports(t, gcptest.Options{}, func(w *world) {
		withLab(w)
		it := w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", gpu(nil)))
		for n, text := range texts {
			if err := w.google.ChangePool(labPath+"/nodePools/gpu", func(p *containerpb.NodePool) { p.Status = containerpb.NodePool_RECONCILING }); err != nil {
				w.Fatal(err)
			}
			w.google.Fail(gcptest.Fault{Method: "SetNodePoolSize", Code: codes.FailedPrecondition, Times: 6, Message: text})
			it = w.make(it, w.conf(it.kind, gpu(map[string]any{"node_count": 2 + n})))
			if got := len(w.google.Calls("SetNodePoolSize")); got != 7 {
				w.Errorf("%q: %d calls", text, got)
			}
			w.google.Forget()
		}
		w.google.Fail(gcptest.Fault{Method: "SetNodePoolSize", Code: codes.FailedPrecondition, Times: -1, Message: "The moon is in the wrong house."})
		_, r := w.apply("op", w.plan(it, w.conf(it.kind, gpu(map[string]any{"node_count": 7}))))
		if got := len(w.google.Calls("SetNodePoolSize")); got != 2 || !r.Diagnostics.HasErrors() {
			w.Errorf("one that stays: %d calls, %v", got, r.Diagnostics)
		}
	})
	w := newWorld(t, "grpc", gcptest.Options{})
	share := w.make(thing{kind: "gke_filestore"}, w.conf("gke_filestore", shared(nil)))
	w.google.Fail(gcptest.Fault{Method: "file.projects.locations.instances.patch", Code: codes.FailedPrecondition, Times: 1, Message: "The instance has another operation."})
	w.make(share, w.conf(share.kind, shared(map[string]any{"capacity_gb": 2048}))) // it ended a moment ago
}

// TestNamesInPlan: names, labels, tags and taints that Google or Kubernetes refuse are errors of the plan.
func TestNamesInPlan(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	long := strings.Repeat("a", 41)
	for _, test := range []struct {
		kind  string
		given map[string]any
	}{
		{"gke_cluster", lab(map[string]any{"name": "GPU_Lab"})}, {"gke_cluster", lab(map[string]any{"name": long})},
		{"gke_cluster", lab(map[string]any{"labels": map[string]any{"Team": "x"}})}, {"gke_cluster", lab(map[string]any{"labels": map[string]any{"team": "Vision Lab"}})},
		{"gke_node_pool", cpu(map[string]any{"name": "GPU_Pool"})}, {"gke_node_pool", cpu(map[string]any{"name": long})},
		{"gke_node_pool", cpu(map[string]any{"resource_labels": map[string]any{"Team": "Vision Lab"}})},
		{"gke_node_pool", cpu(map[string]any{"labels": map[string]any{"a b": "x"}})}, {"gke_node_pool", cpu(map[string]any{"labels": map[string]any{"a": "x/y"}})},
		{"gke_node_pool", cpu(map[string]any{"tags": []any{"Web_1"}})}, {"gke_firewall_rule", ssh(map[string]any{"target_tags": []any{"Web_1"}})},
		{"gke_node_pool", cpu(map[string]any{"taints": []any{map[string]any{"key": "a b", "value": "x", "effect": "NO_SCHEDULE"}}})},
	} {
		if pl := w.plan(thing{kind: test.kind}, w.conf(test.kind, test.given)); !pl.Diagnostics.HasErrors() {
			t.Errorf("%v is planned", test.given)
		}
	}
	for kind, given := range map[string]map[string]any{
		"gke_cluster":   lab(map[string]any{"name": long[:40], "labels": map[string]any{"team": "größe_1"}}),
		"gke_node_pool": cpu(map[string]any{"labels": map[string]any{"example.org/Team": "Vision.1"}, "tags": []any{"web-1"}}),
	} {
		if pl := w.plan(thing{kind: kind}, w.conf(kind, given)); pl.Diagnostics.HasErrors() {
			t.Errorf("%v: %v", given, pl.Diagnostics)
		}
	}
	w.provider = map[string]cty.Value{"default_labels": cty.MapVal(map[string]cty.Value{"Team": cty.StringVal("x")})}
	if _, diags := w.open(); !diags.HasErrors() {
		t.Error("wrong default labels are taken")
	}
}

// TestEveryDay: a rule that means the same in other words is not a difference.
func TestEveryDay(t *testing.T) {
	for rule, shown := range map[string]string{"FREQ=DAILY": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU", "FREQ=WEEKLY;BYDAY=SA,SU": "FREQ=WEEKLY;INTERVAL=1;BYDAY=SU,SA"} {
		w := newWorld(t, "grpc", gcptest.Options{})
		config := w.conf("gke_cluster", lab(map[string]any{"maintenance_window": map[string]any{"start": "2026-01-03T02:00:00Z", "end": "2026-01-03T06:00:00Z", "recurrence": rule}}))
		it := w.make(thing{kind: "gke_cluster"}, config)
		if err := w.google.Change(labPath, func(k *containerpb.Cluster) { k.MaintenancePolicy.Window.GetRecurringWindow().Recurrence = shown }); err != nil {
			t.Fatal(err)
		}
		w.empty(it, config)
	}
	if slices.Equal(ruleParts("FREQ=WEEKLY;BYDAY=SA"), ruleParts("FREQ=WEEKLY;BYDAY=SU")) {
		t.Error("Saturday is Sunday")
	}
}

// TestLostNode: a zone with fewer nodes, or with more, than the others is a difference.
func TestLostNode(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		w := newWorld(t, "grpc", gcptest.Options{})
		w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": []any{zone, "us-central1-c"}})))
		config := w.conf("gke_node_pool", cpu(nil))
		it := w.make(thing{kind: "gke_node_pool"}, config)
		if err := w.google.Resize(labPath+"/nodePools/cpu", "us-central1-c", nodes); err != nil {
			t.Fatal(err)
		}
		w.mutations()
		it = w.make(w.refresh(it), config)
		if got := w.mutations(); !slices.Equal(got, []string{"SetNodePoolSize"}) {
			t.Errorf("%d nodes are mended by %v", nodes, got)
		}
		w.empty(it, config)
	}
}

// TestNoLocations: an answer without the zones of a pool is read by what it has.
func TestNoLocations(t *testing.T) {
	w := withLab(newWorld(t, "grpc", gcptest.Options{}))
	config := w.conf("gke_node_pool", cpu(nil))
	it := w.make(thing{kind: "gke_node_pool"}, config)
	if err := w.google.ChangePool(labPath+"/nodePools/cpu", func(p *containerpb.NodePool) { p.Locations = nil }); err != nil {
		t.Fatal(err)
	}
	now := w.refresh(it)
	if !now.state.IsWhollyKnown() || !now.state.GetAttr("zones").RawEquals(it.state.GetAttr("zones")) {
		t.Errorf("it is read as %#v", now.state)
	}
}

// TestAIZones: the node of a new cluster is in a zone that has machines of any kind.
func TestAIZones(t *testing.T) {
	for want, zones := range map[string][]string{"us-south1-b": {"us-south1-ai1b", "us-south1-b"}, "us-south1-ai1b": {"us-south1-ai1b"}} {
		if got := anyMachineZone(zones); got[0] != want {
			t.Errorf("of %v it is %v", zones, got)
		}
	}
}

// silence is the URL of a server that accepts connections and never answers.
func silence(t *testing.T) cty.Value {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return cty.StringVal("http://" + l.Addr().String() + "/")
}

// TestSilentServices: a service that accepts calls and never answers is one error of a plan, whatever the number of objects, after
// the time of one call.
func TestSilentServices(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"compute_endpoint": "gke_disk", "file_endpoint": "gke_filestore", "service_usage_endpoint": "gke_disk"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "grpc", gcptest.Options{})
			given := map[string]map[string]any{"gke_disk": data(nil), "gke_filestore": shared(nil)}[kind]
			config := w.conf(kind, given)
			it := w.make(thing{kind: kind}, config)
			w.pace.Call = 300 * time.Millisecond
			w.provider = map[string]cty.Value{name: silence(t)}
			p := w.phase()
			schema, _ := p.Schema(t.Context())
			var said providers.Diagnostics
			calls := time.Now()
			for n := range 40 {
				if name != "service_usage_endpoint" {
					r := p.Read(t.Context(), providers.ReadRequest{Type: kind, State: it.state, Private: it.private})
					if said = append(said, r.Diagnostics...); !r.State.RawEquals(it.state) {
						t.Error("it is gone")
					}
					continue
				}
				null := cty.NullVal(config.Type())
				conf := w.conf(kind, with(given, map[string]any{"name": fmt.Sprint("d", n)}))
				r := p.Plan(t.Context(), providers.PlanRequest{Type: kind, Prior: null, Config: conf, Proposed: proposed(schema.Resources[kind].Block.Attributes, null, conf)})
				said = append(said, r.Diagnostics...)
			}
			if len(said) != 1 || !said.HasErrors() || !strings.Contains(said[0].Detail, name) {
				t.Errorf("after %v: %v", time.Since(calls), said)
			}
		})
	}
}

// TestStoppedRead: the first Ctrl-C ends a read that gets no answer.
func TestStoppedRead(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
	w.provider = map[string]cty.Value{"compute_endpoint": silence(t)}
	w.pace.Call = time.Hour // so that nothing else ends the call
	p := w.phase()
	ended := make(chan providers.ReadResponse)
	go func() {
		ctx := providers.WithCall(t.Context(), &providers.Call{Stopping: stop})
		ended <- p.Read(ctx, providers.ReadRequest{Type: it.kind, State: it.state, Private: it.private})
	}()
	close(stop) // the first Ctrl-C
	if r := <-ended; r.Diagnostics.HasErrors() && !strings.Contains(fmt.Sprint(r.Diagnostics), "Ctrl-C") {
		t.Errorf("said is %v", r.Diagnostics)
	}
}

// TestOfferDecides: the machine types that a zone offers go before the tables, which know those of A4, A4X, G4, C4, C3D, C4D and N4A, too.
func TestOfferDecides(t *testing.T) {
	zones := gcptest.DefaultZones()
	zones[zone] = gcptest.Zone{Accelerators: append(zones[zone].Accelerators, "nvidia-b200", "nvidia-gb200", "nvidia-rtx-pro-6000", "nvidia-r100")}
	zones["us-central1-c"] = gcptest.Zone{MachineTypes: []string{"e2-medium", "n2-standard-4"}}
	w := withLab(newWorld(t, "grpc", gcptest.Options{Zones: zones, Machines: []catalogue.Machine{{Name: "a9-highgpu-2g", CPUs: 64, MemoryMiB: 512 << 10, GPU: "nvidia-r100", GPUs: 2}}}))
	accelerated := func(machine, kind string, n int) map[string]any {
		return map[string]any{"machine_type": machine, "accelerator": map[string]any{"type": kind, "count": n}}
	}
	plain := func(machine string) map[string]any { return map[string]any{"machine_type": machine} }
	for n, test := range []struct {
		given map[string]any
		want  string
	}{
		{accelerated("a4-highgpu-8g", "nvidia-b200", 8), ""}, {accelerated("a4x-highgpu-4g", "nvidia-gb200", 4), ""}, {accelerated("g4-standard-48", "nvidia-rtx-pro-6000", 1), ""},
		{plain("c4-standard-4"), ""}, {plain("c3d-standard-4"), ""}, {plain("c4d-standard-4"), ""}, {plain("n4a-standard-4"), ""},
		{accelerated("a4-highgpu-8g", "nvidia-b200", 4), "Machine has other GPUs"}, {accelerated("g4-standard-48", "nvidia-l4", 1), "Machine has other GPUs"},
		{with(plain("c4-standard-4"), map[string]any{"local_ssd_count": 1}), "Machine cannot have local SSDs"},
		{accelerated("a9-highgpu-2g", "nvidia-r100", 2), ""}, {accelerated("a9-highgpu-2g", "nvidia-r100", 4), "Machine has other GPUs"}, {plain("a9-highgpu-2g"), "GPUs are not declared"},
		{plain("n2-standard-6"), "Zone does not have this machine type"},
		{with(plain("c3-standard-4"), map[string]any{"zones": []any{zone, "us-central1-c"}}), "Zone does not have this machine type"},
		{with(plain("n2-standard-4"), map[string]any{"fallback": []any{map[string]any{"machine_type": "n2-standard-6"}}}), "Zone does not have this machine type"},
	} {
		given := with(cpu(map[string]any{"name": fmt.Sprint("p", n)}), test.given)
		pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given))
		if test.want == "" {
			w.empty(w.make(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", given)), w.conf("gke_node_pool", given))
		} else if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != test.want {
			t.Errorf("%v: %v", test.given, pl.Diagnostics)
		}
	}
	w.google.Fail(gcptest.Fault{Method: "compute.machineTypes.get", Code: codes.PermissionDenied, Times: -1}) // then the tables judge
	pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", with(cpu(map[string]any{"name": "told"}), accelerated("a4-highgpu-8g", "nvidia-b200", 4))))
	if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != "Machine has other GPUs" || !strings.Contains(strings.Join(pl.notes, "\n"), "machine type a4-highgpu-8g") {
		t.Errorf("%v %v", pl.Diagnostics, pl.notes)
	}
}

// TestQuotasOfAll: the quota of all GPUs, and those of spot machines, count; a project without a quota for spot machines uses the others.
func TestQuotasOfAll(t *testing.T) {
	h200 := map[string]any{"machine_type": "a3-ultragpu-8g", "accelerator": map[string]any{"type": "nvidia-h200-141gb", "count": 8}}
	for _, test := range []struct {
		region, metric string
		limit          float64
		given          map[string]any
		short          bool
	}{
		{"", "GPUS_ALL_REGIONS", 0, gpu(nil), true}, {"", "GPUS_ALL_REGIONS", 1, gpu(nil), false}, {"", "GPUS_ALL_REGIONS", 0, cpu(nil), false},
		{"us-central1", "PREEMPTIBLE_NVIDIA_L4_GPUS", 1, gpu(map[string]any{"spot": true, "node_count": 2}), true},
		{"us-central1", "PREEMPTIBLE_NVIDIA_L4_GPUS", 0, gpu(map[string]any{"spot": true}), false},
		{"us-central1", "NVIDIA_H200_GPUS", 4, gpu(h200), true}, {"us-central1", "NVIDIA_H200_GPUS", 8, gpu(h200), false},
	} {
		w := newWorld(t, "grpc", gcptest.Options{})
		w.google.SetQuota(test.region, test.metric, test.limit)
		got, _ := w.reviewed(map[string]map[string]any{"gke_cluster.lab": lab(nil), "gke_node_pool.x": test.given})
		if short := strings.HasPrefix(got, "error: Quota of the project does not suffice") && strings.Contains(got, test.metric); short != test.short || !short && got != "" {
			t.Errorf("%s %v: %q", test.metric, test.limit, got)
		}
	}
}
