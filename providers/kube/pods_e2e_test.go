//go:build e2e && linux

package kube

import (
	"context"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/podtest"
)

// shop is a program that reads a file of a ConfigMap, and is asked over HTTP.
const shop = `
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {greeting: GREETING}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 5
      volumes: [{name: shop, configMap: {name: shop}}]
      containers:
      - name: shop
        image: IMAGE
        imagePullPolicy: Never
        args: [serve, ":8080"]
        env: [{name: GREETING, value: GREETING}]
        volumeMounts: [{name: shop, mountPath: /shop}]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`

// TestManifestRealPods: a Deployment lives its whole life on a real kubelet, and
// what keeps containers from running is told in the kubelet's words.
func TestManifestRealPods(t *testing.T) {
	c := podtest.Start(t, podtest.Options{})
	w := &world{t: t, cluster: c.Cluster, ns: c.Namespace(t), entry: Entry("test"), config: c.Kubeconfig()}
	config := func(greeting, image string, more ...map[string]cty.Value) cty.Value {
		return w.yaml(strings.NewReplacer("GREETING", greeting, "IMAGE", image).Replace(shop), more...)
	}
	hello := config("hello", podtest.Demo)
	it := w.make(thing{}, hello)
	if ready := w.field("deployment/shop", ".status.readyReplicas"); ready != "2" {
		t.Errorf("it was waited for, and %q replicas are ready", ready)
	}
	if log := w.kubectl("logs", "deployment/shop"); !strings.Contains(log, "serving on :8080") {
		t.Errorf("its log is %q", log)
	}
	if said := w.kubectl("exec", "deployment/shop", "--", "/demo", "read", "/shop/greeting"); said != "hello" {
		t.Errorf("the file in the container says %q", said)
	}
	it = w.empty(it, hello)

	// The new pods run before the old ones end.
	bye := config("bye", podtest.Demo)
	it = w.make(it, bye)
	if said := w.kubectl("exec", "deployment/shop", "--", "/demo", "read", "/shop/greeting"); said != "bye" {
		t.Errorf("after a change the file in the container says %q", said)
	}
	it = w.empty(it, bye)

	missing := w.plan(it, config("bye", "stoke.test/nobody:1", w.limit("40s")))
	if missing.Diagnostics.HasErrors() {
		t.Fatal(missing.Diagnostics)
	}
	now, r := w.apply(missing)
	if !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "ErrImageNeverPull") {
		t.Errorf("an image that no node has: %v", r.Diagnostics)
	}
	it = w.make(now, bye)

	w.destroy(it)
	c.Wait(t, "the pods have ended", func(ctx context.Context) (bool, error) {
		pods, err := c.Client.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
	if left := c.Nodes[0].Exec(t, "ctr", "--namespace", "k8s.io", "tasks", "list", "--quiet"); strings.TrimSpace(left) != "" {
		t.Errorf("containers are left on the node: %s", left)
	}
}
