package addons

import (
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// workload is a DaemonSet or Deployment of pods that run, or wait for an image. Nodes
// of control planes take those that tolerate them.
func workload(kind, namespace, name string, replicas int, runs, tolerates bool) string {
	var count, waiting, tolerations string
	if kind == "Deployment" {
		count = fmt.Sprintf("replicas: %d\n  ", replicas)
	}
	if !runs {
		waiting = ", annotations: {kubetest/waiting: ImagePullBackOff}"
	}
	if tolerates {
		tolerations = "tolerations: [{operator: Exists}], "
	}
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: %s
metadata: {name: %[3]s, namespace: %[2]s}
spec:
  %[4]sselector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {labels: {app: %[3]s}%[5]s}
    spec: {%[6]scontainers: [{name: one, image: example.org/one:1}]}
`, kind, namespace, name, count, waiting, tolerations)
}

// TestAwait: what a manifest runs is waited for on a real control plane: its
// DaemonSets before CoreDNS and its Deployments after that, but for pods that no node
// takes before another joins.
func TestAwait(t *testing.T) {
	cluster := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{{Name: "head", Taints: []core.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: core.TaintEffectNoSchedule}}}}})
	pool := &kubernetes.Pool{}
	t.Cleanup(pool.Close)
	client, err := pool.Get(t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: cluster.Kubeconfig()}}})
	if err != nil {
		t.Fatal(err)
	}
	c := live.New(client)
	// What the kubelet and kubeadm bring.
	brought := workload("DaemonSet", "kube-system", "kube-proxy", 0, true, true) + workload("Deployment", "kube-system", "coredns", 2, true, true)
	for _, k := range Static("head") {
		brought += fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: kube-system}\nspec: {nodeName: head, containers: [{name: one, image: example.org/one:1}]}\n", k.Name)
	}
	cluster.Kubectl(t, brought, "apply", "-f", "-")
	const enough, notLong, settled = 5 * time.Minute, 4 * time.Second, settle + 8*time.Second
	if err := Await(t.Context(), c, Spec{}.System("head"), enough); err != nil {
		t.Fatal(err)
	}
	net := func(agent, controllers bool) Spec {
		return Spec{Owner: "o", From: "cni_manifest", Manifest: "apiVersion: v1\nkind: Namespace\nmetadata: {name: net}\n" +
			workload("Deployment", "net", "controllers", 1, controllers, true) + workload("DaemonSet", "net", "agent", 0, agent, true) +
			workload("Deployment", "net", "operator", 2, true, false)}
	}
	apply := func(s Spec) []object.Key {
		t.Helper()
		objects, err := s.Objects()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Apply(t.Context(), c, objects, nil); err != nil {
			t.Fatal(err)
		}
		return s.System("head")
	}
	refused := func(all []object.Key, patience time.Duration, want string) {
		t.Helper()
		// Those before it may take a moment.
		for end := time.Now().Add(enough); ; {
			err := Await(t.Context(), c, all, patience)
			if err != nil && strings.Contains(err.Error(), want) {
				return
			}
			if err == nil || time.Now().After(end) {
				t.Fatalf("it does not wait for %s: %v", want, err)
			}
		}
	}
	refused(apply(net(false, false)), notLong, "DaemonSet net/agent is not ready")
	refused(apply(net(true, false)), settled, "Deployment net/controllers is not ready")
	all := apply(net(true, true))
	refused(all, notLong, "Deployment net/operator is not ready") // for as long as the scheduler may try it again
	if err := Await(t.Context(), c, all, enough); err != nil {
		t.Error(err)
	}
	// Once there is a node that takes them, they are waited for.
	cluster.AddNodes(t, kubetest.Node{Name: "worker"})
	if err := Await(t.Context(), c, all, enough); err != nil {
		t.Error(err)
	}
	if ready := cluster.Kubectl(t, "", "--namespace", "net", "get", "deployment", "operator", "--output", "jsonpath={.status.readyReplicas}"); strings.TrimSpace(ready) != "2" {
		t.Errorf("of the operator's two pods %q are ready", ready)
	}
	// A machine that is off has its pods of DaemonSets for as long as it has its node.
	cluster.Kubectl(t, "apiVersion: v1\nkind: Node\nmetadata: {name: silent}\nstatus: {capacity: {cpu: 8, memory: 32Gi, pods: 110}, allocatable: {cpu: 8, memory: 32Gi, pods: 110}}\n", "create", "-f", "-")
	t.Cleanup(func() { cluster.Kubectl(t, "", "delete", "node", "silent") })
	if err := Await(t.Context(), c, all, enough); err != nil {
		t.Error(err)
	}
	if reports := cluster.Kubectl(t, "", "get", "node", "silent", "--output", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); strings.TrimSpace(reports) != "Unknown" {
		t.Errorf("the node that is off was not waited for: it is %q", reports)
	}
	if scheduled := cluster.Kubectl(t, "", "--namespace", "net", "get", "daemonset", "agent", "--output", "jsonpath={.status.desiredNumberScheduled} {.status.numberReady}"); scheduled != "3 2" {
		t.Errorf("pods of the DaemonSet: %q, want 3 and 2 of them ready", scheduled)
	}
	refused(apply(net(false, true)), notLong, "DaemonSet net/agent is not ready")
}
