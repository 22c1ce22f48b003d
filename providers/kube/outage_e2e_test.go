//go:build e2e

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// TestOutage: the API server is killed in the middle of an apply, of a wait and
// of a refresh, and comes back after half a minute: each goes on.
func TestOutage(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{{Name: "node-1"}}})
	w := &world{t: t, cluster: c, ns: "default", entry: Entry("test"), config: c.Kubeconfig()}
	const n, outage = 600, 30 * time.Second
	gone := func(when func(context.Context) (bool, error), meanwhile ...func()) {
		t.Helper()
		c.Eventually(t, "the moment of the outage", when)
		c.KillAPI(t)
		for _, do := range meanwhile {
			go do()
		}
		time.Sleep(outage)
		c.StartAPI(t)
	}
	other := w.make(thing{}, w.yaml("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: one}"))
	quota := w.make(thing{}, w.yaml("apiVersion: v1\nkind: LimitRange\nmetadata: {name: one}\nspec: {limits: [{type: Container, default: {cpu: 1000m}}]}"))
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	text.WriteString(`---
apiVersion: batch/v1
kind: Job
metadata: {name: long}
spec:
  template:
    metadata: {annotations: {kubetest/run-for: 40s}}
    spec: {restartPolicy: Never, containers: [{name: long, image: long}]}
`)
	config := w.yaml(text.String(), map[string]cty.Value{"wait_for_jobs": cty.True})
	pl := w.plan(thing{}, config)
	if pl.Diagnostics.HasErrors() {
		t.Fatal(pl.Diagnostics)
	}
	type result struct {
		thing
		providers.ApplyResponse
	}
	applied := make(chan result, 1)
	go func() {
		it, r := w.apply(pl)
		applied <- result{it, r}
	}()
	made := func(least int) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			list, err := c.Client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) > least, err
		}
	}
	gone(made(n / 10))
	// The second time it waits for the Job, and another resource is refreshed
	// meanwhile by a connection that is there.
	p := w.phase()
	w.refreshIn(p, other)
	read := make(chan providers.ReadResponse, 1)
	gone(func(ctx context.Context) (bool, error) {
		jobs, err := c.Client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(jobs.Items) == 1, err
	}, func() {
		read <- p.Read(providers.WithCall(t.Context(), &providers.Call{Address: "kube_manifest.x"}), providers.ReadRequest{Type: "kube_manifest", State: quota.state, Private: quota.private})
	})
	r := <-applied
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	got := <-read
	if len(got.Diagnostics) > 0 || !got.State.RawEquals(quota.state) {
		t.Errorf("the refresh says %v", got.Diagnostics)
	}
	w.empty(r.thing, config)
}
