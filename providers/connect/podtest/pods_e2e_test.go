//go:build e2e && linux

package podtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// web is a Deployment with one pod on each node, and the headless Service that
// names them.
const web = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: web
        image: stoke.test/demo:1
        args: [serve, ":8080"]
        resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`

// running waits until the pods of a label are ready, and returns them by their
// nodes.
func running(t *testing.T, c *Cluster, namespace, label string, count int) map[string]core.Pod {
	t.Helper()
	var byNode map[string]core.Pod
	c.Wait(t, "the pods of "+label+" are ready", func(ctx context.Context) (bool, error) {
		pods, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return false, err
		}
		byNode = map[string]core.Pod{}
		for _, p := range pods.Items {
			for _, condition := range p.Status.Conditions {
				if condition.Type == core.PodReady && condition.Status == core.ConditionTrue && p.DeletionTimestamp == nil {
					byNode[p.Spec.NodeName] = p
				}
			}
		}
		return len(byNode) == count, nil
	})
	return byNode
}

// Pods on two nodes reach each other by the name of their Service and the API
// server by its own; exec, logs and port-forward go through the API server.
func TestTwoNodesRealPods(t *testing.T) {
	c := Start(t, Options{Nodes: 2})
	ns := c.Namespace(t)
	c.Kubectl(t, web, "apply", "-n", ns, "-f", "-")
	pods := running(t, c, ns, "app=web", 2)
	one, two := pods["node-1"], pods["node-2"]
	exec := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(c.Kubectl(t, "", append([]string{"exec", "-n", ns, one.Name, "--", "/demo"}, args...)...))
	}
	c.Wait(t, "both pods are in the Service's name", func(context.Context) (bool, error) {
		return len(strings.Fields(exec("lookup", "web"))) == 2, nil
	})
	for _, address := range []string{one.Status.PodIP, two.Status.PodIP} {
		if names := exec("lookup", "web."+ns+".svc.cluster.local"); !strings.Contains(names, address) {
			t.Errorf("the name of the Service has %q, not %s", names, address)
		}
	}
	if said := exec("get", "http://"+two.Status.PodIP+":8080"); said != two.Name {
		t.Errorf("the pod on the other node answers %q, want %q", said, two.Name)
	}
	if said := exec("get", "https://kubernetes.default/version"); !strings.Contains(said, c.Version) {
		t.Errorf("the API server answers a pod %q", said)
	}
	// Whichever pod kube-proxy takes; its rules follow the pods by a moment.
	c.Wait(t, "the address of a Service leads to both pods", func(context.Context) (bool, error) {
		said := map[string]bool{}
		for range 20 {
			out, err := c.TryKubectl(t, c.Kubeconfig(), "", "exec", "-n", ns, one.Name, "--", "/demo", "get", "http://shop")
			if err != nil {
				return false, errors.New(out)
			}
			said[strings.TrimSpace(out)] = true
		}
		return said[one.Name] && said[two.Name] && len(said) == 2, nil
	})
	if out, err := c.TryKubectl(t, c.Kubeconfig(), "", "exec", "-n", ns, one.Name, "--", "/demo", "lookup", "nothing"); err == nil {
		t.Errorf("a name that nobody has is %q", out)
	}
	if log := c.Kubectl(t, "", "logs", "-n", ns, two.Name); !strings.Contains(log, "serving on :8080") {
		t.Errorf("its log is %q", log)
	}
}

// Pods get as much of what a node offers as there is.
func TestOfferRealPods(t *testing.T) {
	c := Start(t, Options{})
	ns := c.Namespace(t)
	c.Nodes[0].Offer(t, "nvidia.com/gpu", 2)
	c.Kubectl(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: 3
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      terminationGracePeriodSeconds: 2
      containers: [{name: train, image: stoke.test/demo:1, args: [say, trains], resources: {limits: {nvidia.com/gpu: 1}}}]
`, "apply", "-n", ns, "-f", "-")
	c.Wait(t, "two run and one waits", func(ctx context.Context) (bool, error) {
		pods, err := c.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		run, waits := 0, 0
		for _, p := range pods.Items {
			switch {
			case p.Status.Phase == core.PodRunning:
				run++
			case p.Spec.NodeName == "" && len(p.Status.Conditions) > 0 && strings.Contains(p.Status.Conditions[0].Message, "Insufficient nvidia.com/gpu"):
				waits++
			}
		}
		return run == 2 && waits == 1, err
	})
}

// A node that loses power comes back with its disk, and its pods start again.
func TestPowerCutRealPods(t *testing.T) {
	c := Start(t, Options{})
	ns := c.Namespace(t)
	c.Kubectl(t, web, "apply", "-n", ns, "-f", "-")
	before := running(t, c, ns, "app=web", 1)["node-1"]
	n := c.Nodes[0]
	n.Stop(t)
	if n.on() {
		t.Fatal("it is on")
	}
	if _, err := c.TryKubectl(t, c.Kubeconfig(), "", "logs", "-n", ns, before.Name); err == nil {
		t.Error("a kubelet without power answers")
	}
	n.Start(t)
	c.Wait(t, "the container has started again", func(ctx context.Context) (bool, error) {
		p, err := c.Client.CoreV1().Pods(ns).Get(ctx, before.Name, metav1.GetOptions{})
		if err != nil || len(p.Status.ContainerStatuses) != 1 {
			return false, err
		}
		s := p.Status.ContainerStatuses[0]
		return s.Ready && s.RestartCount == 1 && p.Status.PodIP != "", nil
	})
}
