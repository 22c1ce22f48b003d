//go:build e2e && linux

package drain

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// TestDeadNodeRealPods: a node with real pods loses power. Its pods, which the
// cluster has noticed nothing of for a while, are named when they do not end;
// with force they go, and run elsewhere.
func TestDeadNodeRealPods(t *testing.T) {
	p := podtest.Start(t, podtest.Options{Nodes: 2})
	c := newReal(t, p.Cluster)
	client := c.dial("drainer", needed(true))
	p.Kubectl(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      terminationGracePeriodSeconds: 2
      containers: [{name: train, image: stoke.test/demo:1, args: [say, trains]}]
`, "apply", "-n", c.ns, "-f", "-")
	var on string
	p.Wait(t, "the pod runs", func(ctx context.Context) (bool, error) {
		pods := c.pods(ctx, "train")
		if len(pods) != 1 || !isReady(&pods[0]) {
			return false, nil
		}
		on = pods[0].Spec.NodeName
		return true, nil
	})
	var dead, other *podtest.Node
	for _, n := range p.Nodes {
		if n.Name == on {
			dead = n
		} else {
			other = n
		}
	}
	dead.Stop(t)
	p.Wait(t, "the cluster has noticed", func(ctx context.Context) (bool, error) {
		n, err := p.Client.CoreV1().Nodes().Get(ctx, on, metav1.GetOptions{})
		return err == nil && !kubernetes.Ready(n), err
	})
	var r Roll
	policy := patient
	policy.Limits.Overdue = time.Second
	leave := func() (worked bool, err error) {
		err = r.Leave(t.Context(), c.look(&r, client, on), "the node leaves", policy, func(context.Context) error { worked = true; return nil })
		return worked, err
	}
	var overdue *OverdueError
	if worked, err := leave(); worked || !errors.As(err, &overdue) || len(overdue.Pods) != 1 {
		t.Fatalf("without force: %v", err)
	}
	policy.Force = true
	if worked, err := leave(); !worked || err != nil {
		t.Fatalf("with force: %v", err)
	}
	p.Wait(t, "it runs elsewhere", func(ctx context.Context) (bool, error) {
		pods := c.pods(ctx, "train")
		return len(pods) == 1 && isReady(&pods[0]) && pods[0].Spec.NodeName == other.Name, nil
	})

	// The machine was not off for good: it comes back, and ends what it still has.
	dead.Start(t)
	if n := c.look(&r, client, on); !n.Ready || len(n.Busy()) != 0 {
		t.Errorf("after its return the node is %+v", n)
	}
}
