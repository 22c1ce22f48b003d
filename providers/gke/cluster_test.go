package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

const labPath = "projects/stoke-test/locations/" + zone + "/clusters/lab"

func lab(more map[string]any) map[string]any {
	all := map[string]any{"name": "lab"}
	maps.Copy(all, more)
	return all
}

func TestClusterLife(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		it := thing{kind: "gke_cluster"}
		given := lab(map[string]any{"labels": map[string]any{"team": "vision"}})
		it = w.make(it, w.conf(it.kind, given))
		if got := w.mutations(); !slices.Equal(got, []string{"CreateCluster"}) {
			w.Errorf("made by %v", got)
		}
		if s := it.state.GetAttr("status").AsString(); s != "RUNNING" {
			w.Errorf("status %s", s)
		}
		if strings.Contains(it.state.GoString(), "stoke-operation") {
			w.Error("the mark is in the state")
		}
		it = w.empty(it, w.conf(it.kind, given))
		if !it.state.GetAttr("bootstrap_pool").True() {
			w.Error("the first pool is not shown")
		}

		imported := w.importing("gke_cluster", labPath)
		w.empty(imported, w.conf(it.kind, given))

		pl := w.plan(it, w.conf(it.kind, lab(map[string]any{"name": "other", "network": "other"})))
		if got := pl.replaced(); !slices.Contains(got, "name") || !slices.Contains(got, "network") {
			w.Errorf("replaced because of %v", got)
		}

		protected := w.make(it, w.conf(it.kind, lab(map[string]any{"labels": given["labels"], "deletion_protection": true})))
		if r := w.destroy(protected); !r.Diagnostics.HasErrors() {
			w.Error("a protected cluster is destroyed")
		}
		if got := w.mutations(); len(got) > 0 {
			w.Errorf("protection is of the state alone, and made %v", got)
		}
		if r := w.destroy(it); r.Diagnostics.HasErrors() {
			w.Error(r.Diagnostics)
		}
		if now := w.refresh(it); !now.state.IsNull() {
			w.Error("it is still there")
		}
	})
}

// clusterValues are other values for what can be changed.
var clusterValues = map[string]any{
	"release_channel": "EXTENDED", "version": gcptest.Versions[0], "node_locations": []any{zone, "us-central1-b"}, "private_nodes": true, "endpoint": "dns",
	"authorized_networks": []any{"10.0.0.0/8"}, "authorized_google_cloud": false, "public_endpoint": false, "ip_endpoints": false, "workload_identity": true, "filestore_csi": true, "gcs_fuse_csi": true, "disk_csi": false,
	"shielded_nodes": false, "logging": []any{"SYSTEM_COMPONENTS"}, "monitoring": []any{"SYSTEM_COMPONENTS", "DCGM"},
	"maintenance_window":     map[string]any{"start": "2026-01-03T02:00:00Z", "end": "2026-01-03T08:00:00Z", "recurrence": "FREQ=DAILY"},
	"maintenance_exclusions": map[string]any{"run": map[string]any{"start": "2026-12-01T00:00:00Z", "end": "2026-12-08T00:00:00Z"}},
	"labels":                 map[string]any{"team": "speech"},
}

// TestEndpointsClosed: each endpoint can be closed and opened again, except the one that the connection leads to, and another
// endpoint for the connection closes none.
func TestEndpointsClosed(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		config := func(more map[string]any) cty.Value { return w.conf("gke_cluster", lab(more)) }
		it := w.make(thing{kind: "gke_cluster"}, config(map[string]any{"public_endpoint": false, "endpoint": "dns"}))
		look := func(dns, public, ip bool) {
			w.Helper()
			e := w.google.Inventory()[0].Value.(*containerpb.Cluster).GetControlPlaneEndpointsConfig()
			if e.GetDnsEndpointConfig().GetAllowExternalTraffic() != dns || e.GetIpEndpointsConfig().GetEnablePublicEndpoint() != public || e.GetIpEndpointsConfig().GetEnabled() != ip {
				w.Errorf("endpoints are %v", e)
			}
		}
		look(true, false, true)
		for _, step := range []struct {
			more            map[string]any
			dns, public, ip bool
		}{
			{map[string]any{"endpoint": "dns", "ip_endpoints": false}, true, false, false},
			{map[string]any{"endpoint": "dns", "ip_endpoints": true, "public_endpoint": true}, true, true, true},
			{map[string]any{"endpoint": "public"}, true, true, true},
			{map[string]any{"endpoint": "public", "dns_endpoint": false}, false, true, true},
			{map[string]any{"endpoint": "dns"}, true, true, true},
		} {
			it = w.empty(w.make(it, config(step.more)), config(step.more))
			look(step.dns, step.public, step.ip)
		}
		for _, wrong := range []map[string]any{
			{"endpoint": "dns", "dns_endpoint": false}, {"public_endpoint": false}, {"ip_endpoints": false}, {"endpoint": "private", "ip_endpoints": false},
			{"authorized_google_cloud": false},
		} {
			if pl := w.plan(it, config(wrong)); !pl.Diagnostics.HasErrors() {
				w.Errorf("%v is planned", wrong)
			}
		}
	})
}

// TestClusterInPlace: each attribute that can be changed is, by the one call that
// the table says, and the next plan is empty.
func TestClusterInPlace(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(nil)))
		given := lab(nil)
		w.mutations()
		for _, row := range clusterTable {
			value, ok := clusterValues[row.attribute]
			if row.attribute == "dns_endpoint" {
				continue // endpoint has opened it: TestEndpointsClosed
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
		w.mutations()

		// All at once: one operation for each field.
		fields := map[string]bool{}
		back := lab(map[string]any{"release_channel": "REGULAR", "workload_identity": false, "filestore_csi": false, "gcs_fuse_csi": false, "shielded_nodes": true, "labels": map[string]any{"team": "x"}, "private_nodes": false, "endpoint": "dns"})
		for _, row := range clusterTable {
			if _, ok := back[row.attribute]; ok && row.attribute != "endpoint" || slices.Contains([]string{"authorized_networks", "maintenance_window"}, row.attribute) {
				fields[row.field] = true
			}
		}
		it = w.make(it, w.conf(it.kind, back))
		if got := w.mutations(); len(got) != len(fields) {
			w.Errorf("%d operations %v for %d fields", len(got), got, len(fields))
		}
		w.empty(it, w.conf(it.kind, back))
	})
}

// TestClusterWithoutDisks: Google makes a cluster with the driver of persistent disks,
// whatever the create says: it is switched off by the same apply, or by the next one.
func TestClusterWithoutDisks(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		given := lab(map[string]any{"disk_csi": false, "filestore_csi": true})
		config := w.conf("gke_cluster", given)
		w.google.Fail(gcptest.Fault{Method: "UpdateCluster", Code: codes.PermissionDenied, Message: "Required \"container.clusters.update\" permission(s)"})
		it, r := w.apply("op-1", w.plan(thing{kind: "gke_cluster"}, config))
		if !r.Diagnostics.HasErrors() || it.state.IsNull() || !r.Keep {
			w.Fatalf("an update that is refused: %v", r.Diagnostics)
		}
		w.mutations()
		it = w.empty(w.make(w.refresh(it), config), config)
		if got := w.mutations(); !slices.Equal(got, []string{"UpdateCluster"}) {
			w.Errorf("finished by %v", got)
		}
		w.empty(w.importing("gke_cluster", labPath), config)
		if r := w.destroy(it); r.Diagnostics.HasErrors() {
			w.Fatal(r.Diagnostics)
		}
		w.mutations()
		it = w.empty(w.make(thing{kind: "gke_cluster"}, config), config)
		if got := w.mutations(); !slices.Equal(got, []string{"CreateCluster", "UpdateCluster"}) {
			w.Errorf("made by %v", got)
		}
		given["disk_csi"] = true
		w.empty(w.make(it, w.conf(it.kind, given)), w.conf(it.kind, given))
	})
}

func TestClusterDrift(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		config := w.conf("gke_cluster", lab(map[string]any{"shielded_nodes": true, "labels": map[string]any{"a": "b"}}))
		it := w.make(thing{kind: "gke_cluster"}, config)
		if err := w.google.Change(labPath, func(k *containerpb.Cluster) {
			k.ShieldedNodes.Enabled = false
			k.ResourceLabels["a"] = "c"
		}); err != nil {
			w.Fatal(err)
		}
		w.mutations()
		it = w.make(w.refresh(it), config)
		if got := w.mutations(); !slices.Equal(got, []string{"UpdateCluster", "SetLabels"}) {
			w.Errorf("drift is mended by %v", got)
		}
		w.remade(w.empty(it, config), config, labPath)
	})
}

// TestClusterVersion: a version is a least one.
func TestClusterVersion(t *testing.T) {
	for _, test := range []struct {
		is, least string
		older     bool
	}{
		{"1.35.2-gke.1000", "1.35", false}, {"1.35.2-gke.1000", "1.35.2-gke.2000", true}, {"1.35.2-gke.1000", "1.36", true},
		{"1.36.0-gke.1", "1.35.9-gke.9", false}, {"1.9.1", "1.10", true}, {"1.35.10-gke.1", "1.35.9", false}, {"1.35", "1.35.1", true},
	} {
		if got := older(test.is, test.least); got != test.older {
			t.Errorf("%s older than %s: %v", test.is, test.least, got)
		}
	}
	w := newWorld(t, "grpc", gcptest.Options{})
	versions := slices.Clone(gcptest.Versions)
	slices.SortFunc(versions, func(a, b string) int {
		if older(a, b) {
			return -1
		}
		return 1
	})
	old, latest := versions[0], versions[len(versions)-1]
	it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"version": old})))
	pl := w.plan(it, w.conf(it.kind, lab(map[string]any{"version": latest})))
	if len(pl.Diagnostics) != 1 || pl.Diagnostics[0].Summary != "Control plane would skip a version" || !strings.Contains(pl.Diagnostics[0].Detail, "Declare 1.35, apply") {
		t.Errorf("two minor versions at once: %v", pl.Diagnostics)
	}
	it = w.make(it, w.conf(it.kind, lab(map[string]any{"version": "1.35"})))
	w.mutations()
	it = w.make(it, w.conf(it.kind, lab(map[string]any{"version": latest})))
	if got := w.mutations(); !slices.Equal(got, []string{"UpdateCluster"}) || it.state.GetAttr("master_version").AsString() != latest {
		t.Errorf("upgraded by %v to %s", got, it.state.GetAttr("master_version").AsString())
	}
	it = w.make(it, w.conf(it.kind, lab(map[string]any{"version": old})))
	if got := w.mutations(); len(got) > 0 {
		t.Errorf("a lower least version makes %v", got)
	}
}

// TestClusterCreateUnsure: whatever comes of the call, one cluster is made, and
// one without our mark is never taken.
func TestClusterCreateUnsure(t *testing.T) {
	config := lab(nil)
	for _, when := range []gcptest.When{gcptest.Before, gcptest.After} {
		for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal} {
			w := newWorld(t, "grpc", gcptest.Options{})
			w.google.Fail(gcptest.Fault{Method: "CreateCluster", When: when, Code: code})
			it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", config))
			if n := len(w.google.Calls("CreateCluster")); n > 2 {
				t.Errorf("%v %v: %d calls", when, code, n)
			}
			w.empty(it, w.conf(it.kind, config))
		}
	}
	w := newWorld(t, "grpc", gcptest.Options{})
	w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", config))
	w.mutations()
	_, r := w.apply("another", w.plan(thing{kind: "gke_cluster"}, w.conf("gke_cluster", config)))
	if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "Import it") || !r.State.IsNull() {
		t.Errorf("somebody else's cluster: %v", r.Diagnostics)
	}
	if got := w.mutations(); len(got) > 0 {
		t.Errorf("it was touched: %v", got)
	}
}

// TestClusterCreateLate: a create that was cut off, and that Google carries out after
// everybody has looked, is the same configuration's at the next apply.
func TestClusterCreateLate(t *testing.T) {
	t.Parallel()
	transports(t, gcptest.Options{}, func(w *world) {
		cut, landed := make(chan struct{}), make(chan struct{})
		w.google.OnCommit(func(e gcptest.Event) error {
			if e.Call.Method == "CreateCluster" {
				<-cut
			}
			return nil
		})
		w.google.OnReply(func(e gcptest.Event) error {
			if e.Call.Method == "CreateCluster" {
				close(landed)
			}
			return nil
		})
		it, r := w.apply("op-1", w.plan(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"timeouts": map[string]any{"create": "5s"}}))))
		if !r.Diagnostics.HasErrors() || !r.Keep || it.state.IsNull() {
			w.Fatalf("kept %v: %v", r.Keep, r.Diagnostics)
		}
		close(cut)
		<-landed
		w.google.Settle()
		config := w.conf("gke_cluster", lab(nil))
		w.empty(w.make(w.refresh(it), config), config)
		if n := len(w.google.Calls("CreateCluster")); n != 1 {
			w.Errorf("%d creates", n)
		}
	})
}

// TestClusterRunning: what outlives the time limit is kept, and the next apply
// goes on waiting and makes nothing anew.
func TestClusterRunning(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.google.Slow("CreateCluster", 1<<20, 1)
	slow := lab(map[string]any{"timeouts": map[string]any{"create": "1s"}})
	pl := w.plan(thing{kind: "gke_cluster"}, w.conf("gke_cluster", slow))
	it, r := w.apply("op-1", pl)
	if !r.Keep || !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Summary, "still running") {
		t.Fatalf("kept %v: %v", r.Keep, r.Diagnostics)
	}
	if n := len(w.steps); n == 0 {
		t.Error("no progress was told")
	}
	w.google.Settle()
	it = w.make(w.refresh(it), w.conf(it.kind, slow))
	w.empty(it, w.conf(it.kind, slow))
	if n := len(w.google.Calls("CreateCluster")); n != 1 {
		t.Errorf("%d creates", n)
	}

	// The same after a kill, of which the engine knows the operation alone.
	w = newWorld(t, "grpc", gcptest.Options{})
	pl = w.plan(thing{kind: "gke_cluster"}, w.conf("gke_cluster", slow))
	w.google.Slow("CreateCluster", 1<<20, 1)
	w.apply("op-1", pl)
	if other := w.settle("op-2", pl); !other.state.IsNull() {
		t.Error("another operation's cluster was taken over")
	}
	found := w.settle("op-1", pl)
	if found.state.IsNull() {
		t.Fatal("it was not found again")
	}
	update := w.plan(found, w.conf(found.kind, slow))
	if update.noop() || len(update.Replace) > 0 {
		t.Errorf("an unfinished cluster plans %v", update.Replace)
	}
	w.google.Settle()
	it, r = w.apply("", update)
	if r.Diagnostics.HasErrors() || it.state.GetAttr("status").AsString() != "RUNNING" {
		t.Errorf("not finished: %v", r.Diagnostics)
	}
}
