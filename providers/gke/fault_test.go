package gke

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// faulty is a kind of object that faults are tried on, with the calls that make it,
// bring one change of it about and delete it.
type faulty struct {
	name, kind             string
	create, change, remove string
	path                   string
	given, altered         map[string]any
	more                   bool // with the tag e2e alone
}

func faulties() []faulty {
	plain := map[string]any{"name": "data", "type": "pd-balanced", "size_gb": 100}
	scratch := map[string]any{"name": "scratch", "location": "us-central1", "type": "pd-ssd", "replica_zones": []any{zone, "us-central1-c"}}
	const disks = "projects/stoke-test/"
	return []faulty{
		{"cluster", "gke_cluster", "CreateCluster", "SetLabels", "DeleteCluster", labPath,
			lab(map[string]any{"labels": map[string]any{"team": "a"}}), lab(map[string]any{"labels": map[string]any{"team": "b"}}), false},
		{"pool", "gke_node_pool", "CreateNodePool", "SetNodePoolSize", "DeleteNodePool", labPath + "/nodePools/gpu",
			gpu(nil), gpu(map[string]any{"node_count": 2}), false},
		{"pool's nodes", "gke_node_pool", "CreateNodePool", "UpdateNodePool", "DeleteNodePool", labPath + "/nodePools/gpu",
			gpu(map[string]any{"labels": map[string]any{"job": "a"}}), gpu(map[string]any{"labels": map[string]any{"job": "b"}}), true},
		{"disk", "gke_disk", "compute.disks.insert", "compute.disks.resize", "compute.disks.delete", disks + "zones/" + zone + "/disks/data",
			plain, with(plain, map[string]any{"size_gb": 200}), false},
		{"disk's speed", "gke_disk", "compute.disks.insert", "compute.disks.update", "compute.disks.delete", disks + "zones/" + zone + "/disks/data",
			data(map[string]any{"iops": 3000}), data(map[string]any{"iops": 4000}), true},
		{"regional disk", "gke_disk", "compute.regionDisks.insert", "compute.regionDisks.setLabels", "compute.regionDisks.delete", disks + "regions/us-central1/disks/scratch",
			with(scratch, map[string]any{"labels": map[string]any{"team": "a"}}), with(scratch, map[string]any{"labels": map[string]any{"team": "b"}}), true},
		{"firewall rule", "gke_firewall_rule", "compute.firewalls.insert", "compute.firewalls.patch", "compute.firewalls.delete", disks + "global/firewalls/ssh",
			ssh(nil), ssh(map[string]any{"priority": 900}), false},
		{"snapshot", "gke_disk_snapshot", "compute.snapshots.insert", "compute.snapshots.setLabels", "compute.snapshots.delete", backupPath,
			backup(map[string]any{"labels": map[string]any{"team": "a"}}), backup(map[string]any{"labels": map[string]any{"team": "b"}}), false},
		{"share", "gke_filestore", "file.projects.locations.instances.create", "file.projects.locations.instances.patch", "file.projects.locations.instances.delete", sharePath,
			shared(nil), shared(map[string]any{"capacity_gb": 2048}), false},
	}
}

func with(given, more map[string]any) map[string]any {
	all := maps.Clone(given)
	maps.Copy(all, more)
	return all
}

// trouble is what goes wrong with one call. What passes is not seen by whoever
// runs the command; of the rest they see one error with these words.
type trouble struct {
	name  string
	sow   func(w *world, method string)
	mend  func(w *world) // before the next apply; nil for nothing
	words []string       // nil for what passes
	limit string         // of time, "" for the usual one
	anew  bool           // a create that it met is made anew
}

func troubles() (all []trouble) {
	fault := func(f gcptest.Fault) func(*world, string) {
		return func(w *world, method string) {
			f.Method = method
			w.google.Fail(f)
		}
	}
	for _, when := range []gcptest.When{gcptest.Before, gcptest.After} {
		for _, code := range []codes.Code{codes.Internal, codes.Unavailable, codes.DeadlineExceeded} {
			all = append(all, trouble{name: fmt.Sprintf("%v %s the effect", code, map[gcptest.When]string{gcptest.Before: "before", gcptest.After: "after"}[when]), sow: fault(gcptest.Fault{When: when, Code: code})})
		}
	}
	return append(all,
		trouble{name: "429", sow: fault(gcptest.Fault{Code: codes.ResourceExhausted, Times: 3})},
		trouble{name: "429 for long", limit: "100ms", sow: fault(gcptest.Fault{Code: codes.ResourceExhausted, Times: -1}),
			words: []string{"too many calls", "quota metric 'Write requests'", "RATE_LIMIT_EXCEEDED", "apply again"}, mend: func(w *world) { w.google.Heal() }},
		trouble{name: "away for long", sow: fault(gcptest.Fault{Code: codes.Unavailable, Times: 8}),
			words: []string{"did not answer", "currently unavailable", "apply again"}},
		trouble{name: "denied", sow: fault(gcptest.Fault{Code: codes.PermissionDenied}),
			words: []string{"permission denied", "Required permission is missing", "IAM_PERMISSION_DENIED", "Grant the account"}},
		trouble{name: "slow", sow: func(w *world, method string) { w.google.Slow(method, 12, 1) }},
		trouble{name: "too slow", limit: "150ms", sow: func(w *world, method string) { w.google.Slow(method, -1, 1) },
			words: []string{"still running", "operation", "apply again"}, mend: func(w *world) { w.google.Heal(); w.google.Settle() }},
		trouble{name: "failed half-way", sow: fault(gcptest.Fault{When: gcptest.Halfway, Code: codes.Internal}),
			words: []string{"An internal error has occurred", "operation-"}, anew: true},
	)
}

// TestFaults: each fault meets the create, a change and the deletion of each kind of
// object, over both transports of the container API. The next apply converges, and no object is made
// while there is one.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, of := range faulties() {
		if of.more && !all {
			continue
		}
		for _, tr := range troubles() {
			t.Run(of.name+"/"+tr.name, func(t *testing.T) {
				t.Parallel()
				if strings.HasPrefix(of.create, "Create") {
					transports(t, gcptest.Options{}, func(w *world) { w.suffer(of, tr) })
					return
				}
				newWorld(t, cloud.GRPC, gcptest.Options{}).suffer(of, tr) // the compute API has one
			})
		}
	}
}

// suffer is one life with the same trouble three times.
func (w *world) suffer(of faulty, tr trouble) {
	switch of.kind {
	case "gke_node_pool":
		withLab(w)
	case "gke_disk_snapshot":
		w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil)))
	}
	timed := func(given map[string]any) map[string]any {
		if tr.limit == "" {
			return given
		}
		return with(given, map[string]any{"timeouts": map[string]any{"create": tr.limit, "update": tr.limit, "delete": tr.limit}})
	}
	it := thing{kind: of.kind}
	for n, given := range []map[string]any{of.given, of.altered} {
		method := []string{of.create, of.change}[n]
		tr.sow(w, method)
		config, calm := w.conf(of.kind, timed(given)), w.conf(of.kind, given)
		pl := w.plan(it, config)
		if pl.Diagnostics.HasErrors() {
			w.Fatalf("%s: plan: %v", method, pl.Diagnostics)
		}
		w.version = fmt.Sprint("troubled-", n)
		got, r := w.apply(fmt.Sprint("op-", n), pl)
		w.bury()
		w.said(of, tr, method, r.Diagnostics)
		if tr.mend != nil {
			tr.mend(w)
		}
		it = w.next(it, got, r, calm)
		it = w.empty(it, calm)
		w.one(of, n == 0 && tr.anew)
	}
	usual := it.state
	if tr.limit != "" { // the limit is the state's
		it.state = withAttribute(usual, "timeouts", w.conf(of.kind, timed(of.altered)).GetAttr("timeouts"))
	}
	tr.sow(w, of.remove)
	w.version = "troubled-2"
	r := w.destroy(it)
	w.bury()
	w.said(of, tr, of.remove, r.Diagnostics)
	if tr.mend != nil {
		tr.mend(w)
	}
	if r.Diagnostics.HasErrors() {
		if now := w.refresh(it); !now.state.IsNull() {
			now.state = withAttribute(now.state, "timeouts", usual.GetAttr("timeouts")) // a busy machine needs more
			if r = w.destroy(now); r.Diagnostics.HasErrors() {
				w.Errorf("the next destroy says %v", r.Diagnostics)
			}
		}
	}
	if now := w.refresh(it); !now.state.IsNull() {
		w.Error("it is still there")
	}
}

// bury ends the provider of an apply: a call that its time limit has cut off may reach Google later, after the fault was taken back
// and what is there was read, and would make a second object or change a finished one.
func (w *world) bury() {
	w.google.Bury("stoke/" + w.version)
	w.version = "test"
}

// withAttribute is an object's value with another value of one attribute.
func withAttribute(object cty.Value, name string, v cty.Value) cty.Value {
	all := object.AsValueMap()
	all[name] = v
	return cty.ObjectVal(all)
}

// next is the apply after one: what that has not made is made, what it has made in
// part is made anew, and what it says to keep is gone on with.
func (w *world) next(was, got thing, r providers.ApplyResponse, config cty.Value) thing {
	w.Helper()
	switch created := was.state == cty.NilVal || was.state.IsNull(); {
	case got.state.IsNull():
		return w.make(was, config)
	case created && r.Diagnostics.HasErrors() && !r.Keep:
		now := w.refresh(got)
		if !now.state.IsNull() {
			if gone := w.destroy(now); gone.Diagnostics.HasErrors() {
				w.Fatalf("delete what was made in part: %v", gone.Diagnostics)
			}
		}
		return w.make(thing{kind: got.kind}, config)
	}
	now := w.refresh(got)
	if now.state.IsNull() {
		return w.make(thing{kind: got.kind}, config)
	}
	return w.make(now, config)
}

// said checks what whoever runs the command is told.
func (w *world) said(of faulty, tr trouble, method string, diags providers.Diagnostics) {
	w.Helper()
	diags = slices.DeleteFunc(slices.Clone(diags), func(d providers.Diagnostic) bool { return d.Severity != providers.Error })
	if len(tr.words) == 0 || len(diags) == 0 && tr.name == "away for long" && strings.HasPrefix(method, "Delete") { // which Google's client makes again by itself
		if diags.HasErrors() {
			w.Errorf("%s: %v", method, diags)
		}
		return
	}
	if tr.limit != "" && !w.met(method) {
		return // the time was over before the trouble began
	}
	if len(diags) != 1 || !diags.HasErrors() {
		w.Errorf("%s: said is %v, want one error", method, diags)
		return
	}
	text := diags[0].Summary + ". " + diags[0].Detail
	for _, words := range tr.words {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(words)) {
			w.Errorf("%s: said is %q, without %q", method, text, words)
		}
	}
	if container := !strings.Contains(method, "."); container && !strings.Contains(text, "0x") && !strings.Contains(text, "operation-") {
		w.Errorf("%s: said is %q, without the request's id", method, text)
	}
	if head, _, _ := strings.Cut(diags[0].Summary, ":"); len(strings.Fields(head)) > 8 {
		w.Errorf("the summary %q is long", head)
	}
}

// met tells whether the provider has seen a call of this method refused for now, or
// its operation under way: it has asked again, or asked for the operation.
func (w *world) met(method string) bool {
	refused, accepted := 0, ""
	for _, c := range w.google.Calls() {
		switch {
		case c.Method == method && c.Code == codes.ResourceExhausted:
			refused++
		case c.Method == method && c.Operation != "":
			accepted = c.Operation
		case accepted != "" && c.Operation == accepted:
			return true
		}
	}
	return refused > 1
}

// one checks that there is one object, made once unless it was to be made anew.
func (w *world) one(of faulty, anew bool) {
	w.Helper()
	made, gone, there := 0, 0, 0
	for _, c := range w.google.Calls() {
		switch {
		case c.Target != of.path || c.Operation == "" || !c.Mutating:
		case c.Method == of.create:
			made++
		case c.Method == of.remove:
			gone++
		}
	}
	for _, path := range w.google.Paths() {
		if path == of.path {
			there++
		}
	}
	if there != 1 || made > 1 && !anew || made > 2 {
		w.Errorf("%d objects, %d creates accepted, %d deleted", there, made, gone)
	}
	w.google.Forget()
}
