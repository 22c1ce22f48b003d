package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	autoscaling "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// What somebody else made under a name is never changed or deleted, and is no
// part of a refresh.
func TestObjectsOfOthers(t *testing.T) {
	w := newWorld(t)
	config := w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"1\"}")
	it := w.make(thing{}, config)
	w.kubectl("delete", "configmap", "a")
	w.kubectl("create", "configmap", "a", "--from-literal=a=theirs")
	if now := w.refresh(it); !now.state.IsNull() {
		t.Errorf("a refresh takes another's object over: %#v", now.state)
	}
	says(t, w.plan(thing{}, config).said(), "Object exists already", "stoke import")
	if _, r := w.apply(w.plan(it, w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}"))); r.Diagnostics.HasErrors() {
		t.Error(r.Diagnostics)
	}
	w.destroy(it)
	if got := w.kubectl("get", "configmap", "a", "-o", "jsonpath={.data.a}"); got != "theirs" {
		t.Errorf("another's object is %q", got)
	}
}

// Fields that another manager has had all along are refused, and taken by force
// alone; one that was ours is taken back.
func TestConflicts(t *testing.T) {
	w := newWorld(t)
	of := func(b string, more ...map[string]cty.Value) cty.Value {
		return w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"1\""+b+"}", more...)
	}
	it := w.make(thing{}, of(""))
	w.kubectl("patch", "configmap", "a", "--type=merge", "--field-manager=them", "-p", `{"data":{"b":"theirs"}}`)
	it = w.refresh(it)
	says(t, w.plan(it, of(`, b: "2"`)).Diagnostics, "Fields belong to another manager", `"them"`)
	forced := of(`, b: "2"`, map[string]cty.Value{"force_conflicts": cty.True})
	it = w.make(it, forced)
	it = w.empty(it, forced)
	w.kubectl("patch", "configmap", "a", "--type=merge", "--field-manager=them", "-p", `{"data":{"a":"5"}}`)
	config := of(`, b: "2"`)
	pl := w.plan(w.refresh(it), config)
	if pl.Diagnostics.HasErrors() || !strings.Contains(strings.Join(pl.notes, " "), `.data.a is taken back from "them"`) {
		t.Errorf("%v %v", pl.notes, pl.Diagnostics)
	}
	it = w.make(w.refresh(it), config)
	w.empty(it, config)
}

// What an autoscaler sets is left to it.
func TestReplicasOfAnAutoscaler(t *testing.T) {
	w := newWorld(t)
	config := w.yaml(strings.Split(web, "---")[0])
	it := w.make(thing{}, config)
	w.kubectl("autoscale", "deployment", "web", "--min=5", "--max=7", "--cpu=80%")
	deployments := w.cluster.Client.AppsV1().Deployments(w.ns)
	_, err := deployments.UpdateScale(t.Context(), "web", &autoscaling.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: w.ns}, Spec: autoscaling.ScaleSpec{Replicas: 5},
	}, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		now := w.refresh(it)
		pl := w.plan(now, config)
		if pl.Diagnostics.HasErrors() {
			t.Fatal(pl.Diagnostics)
		}
		it = w.make(now, config)
	}
	it = w.empty(it, config)
	other := w.yaml(strings.Replace(strings.Split(web, "---")[0], "nginx:1", "nginx:2", 1))
	it = w.make(it, other)
	w.empty(it, other)
	replicas := func() string { return w.kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") }
	if got := replicas(); got != "5" {
		t.Errorf("%s replicas", got)
	}
	// Once it is gone, they are what is declared again.
	w.kubectl("delete", "horizontalpodautoscaler", "web")
	it = w.make(w.refresh(it), other)
	w.empty(it, other)
	if got := replicas(); got != "2" {
		t.Errorf("%s replicas without an autoscaler", got)
	}
}

// What would take data along is not pruned unless that is asked for.
func TestPruningData(t *testing.T) {
	w := newWorld(t)
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}\n---\n"
	rest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	no := map[string]cty.Value{"wait": cty.False}
	it := w.make(thing{}, w.yaml(claim+rest, no))
	it = w.empty(it, w.yaml(claim+rest, no))
	says(t, w.plan(it, w.yaml(rest, no)).said(), "Data would be deleted", "prune_data = true")
	config := w.yaml(rest, map[string]cty.Value{"wait": cty.False, "prune_data": cty.True})
	it = w.make(it, config)
	w.empty(it, config)
	if got := w.kubectl("get", "pvc", "-o", "name"); got != "" {
		t.Errorf("there is %s still", got)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "quota", "few", "--hard=count/configmaps=1") // kube-root-ca.crt is one
	config := w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}")
	w.cluster.Eventually(t, "the quota is counted", quotaCounts(w))
	says(t, w.plan(thing{}, config).Diagnostics, "Quota of the namespace exceeded", "few")

	w = newWorld(t)
	w.config = w.cluster.KubeconfigFor(t, kubetest.Login{User: "nobody"})
	config = w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}")
	says(t, w.plan(thing{}, config).Diagnostics, "Not allowed by the cluster", "nobody")
}

// A plan of a thousand objects with nothing to do asks for pages of 500, one more
// for the kind, and for nothing of each object.
func TestRequestsOfAnEmptyPlan(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{APIOnly: true})
	w := &world{t: t, cluster: c, ns: "default", entry: Entry("test"), config: c.Kubeconfig()}
	const n = 1000
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: \"%d\"}\n", i, i)
	}
	config := w.yaml(text.String())
	it := w.make(thing{}, config)
	p := w.phase()
	before := c.Requests(t)
	r := w.refreshIn(p, it)
	pl := w.planIn(p, r, config)
	if pl.Diagnostics.HasErrors() || !pl.noop() {
		t.Fatal(pl.Diagnostics)
	}
	asked := c.Requests(t).Since(before)
	if lists, patches, gets := asked.Of("LIST", "configmaps"), asked.Of("APPLY", "")+asked.Of("PATCH", ""), asked.Of("GET", "configmaps"); lists > n/500+1 || patches != 0 || gets != 0 {
		t.Errorf("%d lists, %d applies, %d gets: %v", lists, patches, gets, asked)
	}
	if others := asked.Of("", "") - asked.Of("LIST", "configmaps"); others > 12 {
		t.Errorf("%d other requests: %v", others, asked)
	}
	var small []thing
	for i := range 20 {
		of := w.make(thing{name: fmt.Sprint("small", i)}, w.yaml(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: s%d}}", i)))
		small = append(small, of)
	}
	for few, most := range map[int]int{1: 1, 3: 3, len(small): 8 + n/500 + 1} { // with the objects of all only where there are many resources
		p := w.phase()
		before := c.Requests(t)
		for _, of := range small[:few] {
			w.refreshIn(p, of)
		}
		if asked := c.Requests(t).Since(before); asked.Of("LIST", "configmaps") > most || asked.Of("GET", "configmaps") != 0 {
			t.Errorf("a refresh of %d resources beside a large one asks for %v", few, asked)
		}
	}
}
