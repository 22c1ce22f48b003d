package gke

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// TestEndedBadly: a create that ended badly while stoke was dead passes for no good
// one: a cluster is made anew by the next plan, protected or not.
func TestEndedBadly(t *testing.T) {
	for name, seen := range map[string]bool{"seen while it is made": true, "seen when it has ended": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "grpc", gcptest.Options{})
			conf := w.conf("gke_cluster", lab(map[string]any{"deletion_protection": true}))
			pl := w.plan(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"deletion_protection": true, "timeouts": map[string]any{"create": "1s"}})))
			w.google.Slow("CreateCluster", -1, 1)
			w.google.Fail(gcptest.Fault{Method: "CreateCluster", When: gcptest.Halfway, Code: codes.Internal})
			w.apply("op-1", pl) // which is killed
			if !seen {
				w.google.Settle()
			}
			it := w.settle("op-1", pl)
			if seen {
				update := w.plan(it, conf)
				w.google.Settle()
				_, r := w.apply("", update)
				if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "could not be made") {
					t.Fatalf("a cluster in error passes for a good one: %v", r.Diagnostics)
				}
				it = thing{kind: it.kind, state: r.State, private: r.Private}
			}
			again := w.plan(w.refresh(it), conf)
			if got := again.replaced(); !slices.Equal(got, []string{"status"}) || again.Diagnostics.HasErrors() {
				t.Fatalf("it is replaced because of %v: %v", got, again.Diagnostics)
			}
			if r := w.destroy(it); r.Diagnostics.HasErrors() {
				t.Fatalf("what never was whole is protected: %v", r.Diagnostics)
			}
			w.empty(w.make(thing{kind: it.kind}, conf), conf)
		})
	}
}

// TestPoolEndedBadly: a pool's create that ended badly is done again by the next apply,
// without a fallback and whatever the reason was.
func TestPoolEndedBadly(t *testing.T) {
	for name, fault := range map[string]func(*gcptest.Cloud){
		"stock-out": func(c *gcptest.Cloud) { c.SetCapacity(gcptest.Capacity{Zone: zone}, 0) },
		"failure": func(c *gcptest.Cloud) {
			c.Fail(gcptest.Fault{Method: "CreateNodePool", When: gcptest.Halfway, Code: codes.Internal})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withLab(newWorld(t, "grpc", gcptest.Options{}))
			pl := w.plan(thing{kind: "gke_node_pool"}, w.conf("gke_node_pool", gpu(map[string]any{"timeouts": map[string]any{"create": "1s"}})))
			w.google.Slow("CreateNodePool", -1, 1)
			fault(w.google)
			w.apply("op-1", pl)
			w.google.Settle()
			it := w.settle("op-1", pl)
			w.google.SetCapacity(gcptest.Capacity{Zone: zone}, 1)
			if err := w.google.ChangePool(labPath+"/nodePools/gpu", func(p *containerpb.NodePool) { p.Status = containerpb.NodePool_ERROR }); err != nil {
				t.Fatal(err) // the machines that have come since are none of its own doing
			}
			w.mutations()
			config := w.conf("gke_node_pool", gpu(nil))
			it = w.make(it, config)
			if got := w.mutations(); !slices.Equal(got, []string{"DeleteNodePool", "CreateNodePool"}) {
				t.Errorf("it is made by %v", got)
			}
			w.empty(it, config)
		})
	}
}

// TestUnseen: that somebody may not look at what is being made is no reason to make it
// anew: the next apply goes on with it.
func TestUnseen(t *testing.T) {
	for kind, given := range map[string]map[string]any{"gke_cluster": lab(map[string]any{"name": "unseen"}), "gke_node_pool": gpu(nil)} {
		create := map[string]string{"gke_cluster": "CreateCluster", "gke_node_pool": "CreateNodePool"}[kind]
		read := map[string]string{"gke_cluster": "GetCluster", "gke_node_pool": "GetNodePool"}[kind]
		for method, skip := range map[string]int{"GetOperation": 0, read: 1} { // the first read is before the create
			w := withLab(newWorld(t, "grpc", gcptest.Options{}))
			w.google.Fail(gcptest.Fault{Method: method, Code: codes.PermissionDenied, Times: -1, Skip: skip})
			config := w.conf(kind, given)
			it, r := w.apply("op-1", w.plan(thing{kind: kind}, config))
			if !r.Diagnostics.HasErrors() || !r.Keep || it.state.IsNull() {
				t.Fatalf("%s, without %s: kept %v: %v", kind, method, r.Keep, r.Diagnostics)
			}
			w.google.Heal()
			it = w.refresh(it)
			if pl := w.plan(it, config); len(pl.Replace) > 0 {
				t.Errorf("%s, without %s: replaced because of %v", kind, method, pl.replaced())
			}
			w.empty(w.make(it, config), config)
			if n := len(w.google.Calls(create)); n != 1 {
				t.Errorf("%s, without %s: %d creates", kind, method, n)
			}
		}
	}
}

// TestLostForLong: a create whose answer was lost, and that nobody could look at after
// that, is not forgotten; what somebody else has made meanwhile is not taken for it.
func TestLostForLong(t *testing.T) {
	for _, when := range []gcptest.When{gcptest.Before, gcptest.After} {
		w := withLab(newWorld(t, "grpc", gcptest.Options{}))
		config := w.conf("gke_node_pool", gpu(nil))
		w.google.Fail(gcptest.Fault{Method: "CreateNodePool", When: when, Code: codes.Unavailable})
		w.google.Fail(gcptest.Fault{Method: "GetNodePool", Code: codes.PermissionDenied, Times: -1, Skip: 1})
		it, r := w.apply("op-1", w.plan(thing{kind: "gke_node_pool"}, config))
		if !r.Diagnostics.HasErrors() || !r.Keep || it.state.IsNull() {
			t.Fatalf("kept %v: %v", r.Keep, r.Diagnostics)
		}
		w.google.Heal()
		now := w.refresh(it)
		if made := when == gcptest.After; now.state.IsNull() == made {
			t.Fatalf("made %v, and the next plan sees %v", made, now.state)
		}
		if when == gcptest.Before {
			stranger := w.make(thing{kind: it.kind}, config)
			if now = w.refresh(it); !now.state.IsNull() || stranger.state.IsNull() {
				t.Error("somebody else's pool was taken over")
			}
			continue
		}
		w.empty(w.make(now, config), config)
		if n := len(w.google.Calls("CreateNodePool")); n != 1 {
			t.Errorf("%d creates", n)
		}
	}
}

// TestListingDenied: where operations may not be listed, the object's status tells when
// what was begun is done.
func TestListingDenied(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.google.Fail(gcptest.Fault{Method: "ListOperations", Code: codes.PermissionDenied, Times: -1})
	for kind, given := range map[string]map[string]any{"gke_cluster": lab(nil), "gke_node_pool": cpu(nil)} {
		if kind == "gke_node_pool" {
			withLab(w)
		}
		slow := with(given, map[string]any{"timeouts": map[string]any{"create": "1s"}})
		w.google.Slow("Create*", 300, 1)
		pl := w.plan(thing{kind: kind}, w.conf(kind, slow))
		w.apply("op-1", pl)
		it := w.settle("op-1", pl)
		if s := it.state.GetAttr("status").AsString(); s != "PROVISIONING" {
			t.Fatalf("%s is %s", kind, s)
		}
		it = w.make(it, w.conf(kind, given))
		if s := it.state.GetAttr("status").AsString(); s != "RUNNING" {
			t.Errorf("%s is %s after it was finished", kind, s)
		}
		w.google.Remove(labPath)
	}
}

// TestProtected: who destroys a protected cluster, or has it made anew, is refused by
// the plan, while its pools are still there.
func TestProtected(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	it := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"deletion_protection": true})))
	null := cty.NullVal(it.state.Type())
	r := w.phase().Plan(t.Context(), providers.PlanRequest{Type: it.kind, Prior: it.state, Proposed: null, Config: null, Private: it.private})
	if !r.Diagnostics.HasErrors() || r.Diagnostics[0].Summary != "Cluster is protected" {
		t.Errorf("a plan that destroys it says %v", r.Diagnostics)
	}
	for _, conf := range []map[string]any{lab(nil), lab(map[string]any{"network": "other"})} {
		config := w.conf(it.kind, conf)
		ctx := providers.WithCall(t.Context(), &providers.Call{Address: "gke_cluster.x", Replaces: it.state})
		p := w.phase()
		schema, _ := p.Schema(ctx)
		r := p.Plan(ctx, providers.PlanRequest{Type: it.kind, Prior: null, Config: config, Proposed: proposed(schema.Resources[it.kind].Block.Attributes, null, config)})
		if !r.Diagnostics.HasErrors() || r.Diagnostics[0].Summary != "Cluster is protected" {
			t.Errorf("a plan that makes it anew says %v", r.Diagnostics)
		}
	}
}

// TestUpgrading: what Google does to a cluster and its pools by itself is no difference.
func TestUpgrading(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	cluster, pool := w.conf("gke_cluster", lab(map[string]any{"version": "1.35"})), w.conf("gke_node_pool", gpu(map[string]any{"version": "1.35"}))
	k := w.make(thing{kind: "gke_cluster"}, cluster)
	p := w.make(thing{kind: "gke_node_pool"}, pool)
	if err := w.google.Upgrade(labPath, gcptest.Versions[0]); err != nil {
		t.Fatal(err)
	}
	for _, status := range []string{"RECONCILING", "RUNNING"} {
		if err := w.google.Change(labPath, func(k *containerpb.Cluster) {
			k.Status = containerpb.Cluster_Status(containerpb.Cluster_Status_value[status])
		}); err != nil {
			t.Fatal(err)
		}
		if err := w.google.ChangePool(labPath+"/nodePools/gpu", func(p *containerpb.NodePool) {
			p.Status = containerpb.NodePool_Status(containerpb.NodePool_Status_value[status])
		}); err != nil {
			t.Fatal(err)
		}
		k, p = w.empty(k, cluster), w.empty(p, pool)
		for _, notes := range [][]string{w.plan(k, cluster).notes, w.plan(p, pool).notes} {
			if !strings.Contains(strings.Join(notes, "\n"), "has been upgraded to "+gcptest.Versions[0]) && !strings.Contains(strings.Join(notes, "\n"), "have been upgraded to "+gcptest.Versions[0]) {
				t.Errorf("%s: no note says that Google has upgraded: %v", status, notes)
			}
		}
	}
}

// TestNotReachableYet: who depends on a cluster that is being made waits for its address.
func TestNotReachableYet(t *testing.T) {
	w := newWorld(t, "grpc", gcptest.Options{})
	w.google.Slow("CreateCluster", -1, 1)
	slow := w.conf("gke_cluster", lab(map[string]any{"timeouts": map[string]any{"create": "1s"}}))
	it, _ := w.apply("op-1", w.plan(thing{kind: "gke_cluster"}, slow))
	pl := w.plan(it, slow)
	if pl.Planned.GetAttr("access").IsKnown() || pl.Planned.GetAttr("kubeconfig").IsKnown() {
		t.Errorf("the access of a cluster that is being made is planned as %#v", pl.Planned.GetAttr("access"))
	}
	w.google.Settle()
	done, r := w.apply("", pl)
	if r.Diagnostics.HasErrors() || !strings.HasPrefix(done.state.GetAttr("access").GetAttr("endpoint").AsString(), "https://34.") {
		t.Errorf("in the end it is %#v: %v", done.state.GetAttr("access"), r.Diagnostics)
	}
}
