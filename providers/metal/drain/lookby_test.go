package drain

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/metal/host"
)

// real is a real control plane with two nodes, a and b, that run nothing.
type real struct {
	*kubetest.Cluster
	t  *testing.T
	ns string
}

func newReal(t *testing.T, c *kubetest.Cluster) *real {
	t.Helper()
	c.Eventually(t, "the pods of the test before are gone", func(ctx context.Context) (bool, error) {
		list, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
	return &real{Cluster: c, t: t, ns: c.Namespace(t)}
}

// needed is what doc.go says that the connection's user may do.
func needed(force bool) []kubetest.Grant {
	rules := []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
	}
	if force {
		rules = append(rules, rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	}
	return []kubetest.Grant{{Rules: rules}, {Namespace: "kube-node-lease", Rules: []rbac.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"}},
	}}}
}

// dial is a connection of somebody who may do just that.
func (c *real) dial(user string, grants []kubetest.Grant) *kubernetes.Client {
	c.t.Helper()
	path := c.KubeconfigFor(c.t, kubetest.Login{User: user, Grants: grants})
	client, err := kubernetes.Dial(c.t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: path}}}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// deploy makes a Deployment on a node and waits until its pods are bound, and
// ready where somebody plays that node.
func (c *real) deploy(name, node string, replicas int32, ready bool, edit ...func(*core.PodSpec)) {
	c.t.Helper()
	labels := map[string]string{"app": name}
	grace := int64(1)
	d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: apps.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: core.PodSpec{
			Containers: []core.Container{{Name: "main", Image: "main"}}, TerminationGracePeriodSeconds: &grace,
			Tolerations: []core.Toleration{{Key: core.TaintNodeNotReady, Operator: core.TolerationOpExists}, {Key: core.TaintNodeUnreachable, Operator: core.TolerationOpExists}},
			// Where the node takes none, they go elsewhere.
			Affinity: &core.Affinity{NodeAffinity: &core.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []core.PreferredSchedulingTerm{{
				Weight: 100, Preference: core.NodeSelectorTerm{MatchExpressions: []core.NodeSelectorRequirement{{Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{node}}}},
			}}}},
		}},
	}}
	for _, e := range edit {
		e(&d.Spec.Template.Spec)
	}
	if _, err := c.Client.AppsV1().Deployments(c.ns).Create(c.t.Context(), d, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.Eventually(c.t, name+" is on "+node, func(ctx context.Context) (bool, error) {
		on, up := 0, 0
		for _, p := range c.pods(ctx, name) {
			if p.Spec.NodeName == node {
				on++
			}
			if isReady(&p) {
				up++
			}
		}
		return on == int(replicas) && (!ready || up == on), nil
	})
}

func (c *real) pods(ctx context.Context, name string) []core.Pod {
	list, err := c.Client.CoreV1().Pods(c.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		c.t.Error(err)
		return nil
	}
	return list.Items
}

func isReady(p *core.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool {
		return c.Type == core.PodReady && c.Status == core.ConditionTrue
	})
}

// on are the pods of the test's namespace on a node.
func (c *real) on(node string) []string {
	list, err := c.Client.CoreV1().Pods(c.ns).List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Labels["app"])
	}
	slices.Sort(names)
	return names
}

func (c *real) budget(name string, least int32) {
	c.t.Helper()
	min := intstr.FromInt32(least)
	b := &policy.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policy.PodDisruptionBudgetSpec{
		MinAvailable: &min, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
	}}
	if _, err := c.Client.PolicyV1().PodDisruptionBudgets(c.ns).Create(c.t.Context(), b, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.Eventually(c.t, "the budget "+name+" counts", func(ctx context.Context) (bool, error) {
		got, err := c.Client.PolicyV1().PodDisruptionBudgets(c.ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && got.Status.ObservedGeneration > 0 && got.Status.ExpectedPods > 0 && int(got.Status.CurrentHealthy) == int(got.Status.ExpectedPods), err
	})
}

func (c *real) look(r *Roll, client *kubernetes.Client, name string) *Node {
	c.t.Helper()
	n, err := r.LookBy(c.t.Context(), client, name)
	if err != nil || n == nil {
		c.t.Fatalf("look at %s: %v, %v", name, n, err)
	}
	return n
}

// patient waits for budgets and pods as long as a busy machine may take.
var patient = Policy{Drain: true, MaxUnavailable: 2, Limits: Limits{Pause: 20 * time.Millisecond, Drain: 2 * time.Minute}}

// TestLookBy: draining over a connection, against a real API server with real
// controllers, as a user who may do just what doc.go says.
func TestLookBy(t *testing.T) {
	cluster := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{{Name: "a"}, {Name: "b"}}})
	for name, test := range map[string]func(*testing.T, *real){
		"budgets are kept, daemons stay": budgetsAreKept,
		"a budget that is full":          budgetIsFull,
		"pods without a controller":      unmanagedPods,
		"a dead node":                    deadNode,
		"a user who may not":             powerless,
		"no node":                        noNode,
	} {
		t.Run(name, func(t *testing.T) { test(t, newReal(t, cluster)) })
	}
}

func budgetsAreKept(t *testing.T, c *real) {
	client := c.dial("drainer", needed(false))
	c.deploy("shop", "a", 3, true)
	c.budget("shop", 2)
	labels := map[string]string{"app": "agent"}
	if _, err := c.Client.AppsV1().DaemonSets(c.ns).Create(t.Context(), &apps.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: apps.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: core.PodSpec{Containers: []core.Container{{Name: "main", Image: "main"}}}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, "the daemon runs", func(ctx context.Context) (bool, error) { return len(c.pods(ctx, "agent")) == 2, nil })

	// A watch sees every state that there was.
	watch, err := c.Client.CoreV1().Pods(c.ns).Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=shop"})
	if err != nil {
		t.Fatal(err)
	}
	fewest, watched := atomic.Int64{}, make(chan struct{})
	fewest.Store(99)
	go func() {
		defer close(watched)
		up := map[string]bool{}
		for event := range watch.ResultChan() {
			p, ok := event.Object.(*core.Pod)
			if !ok {
				return
			}
			up[p.Name] = event.Type != "DELETED" && isReady(p)
			n := int64(0)
			for _, is := range up {
				if is {
					n++
				}
			}
			if len(up) >= 3 && n < fewest.Load() {
				fewest.Store(n)
			}
		}
	}()
	var r Roll
	n := c.look(&r, client, "a")
	// The same as a kubelet's kubeconfig says, so that both count as one.
	authority, err := os.ReadFile(c.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	if n.Cluster != kubernetes.AuthorityDigest(authority) || !n.Ready || n.Cordoned || len(n.Busy()) != 3 {
		t.Errorf("got %+v", n)
	}
	worked := false
	err = r.Leave(t.Context(), n, "the node leaves", patient, func(context.Context) error {
		worked = true
		node, err := c.Client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || !node.Spec.Unschedulable || mark(node) == nil {
			t.Errorf("while it is worked on the node is %v, %v", node.Spec, err)
		}
		if left := c.on("a"); len(left) != 1 || left[0] != "agent" {
			t.Errorf("on the node are %v, want the daemon alone", left)
		}
		return nil
	})
	if err != nil || !worked {
		t.Fatal(err)
	}
	watch.Stop()
	<-watched
	if fewest.Load() < 2 {
		t.Errorf("%d pods were ready at a moment, and the budget says 2", fewest.Load())
	}
	if n := c.look(&r, client, "a"); n.Cordoned {
		t.Error("the node stays cordoned")
	}
}

func budgetIsFull(t *testing.T, c *real) {
	client := c.dial("drainer", needed(false))
	c.deploy("shop", "a", 2, true)
	c.budget("shop", 2)
	var r Roll
	// It waits until it is stopped, which it is when it has said for what.
	stopping, named := make(chan struct{}), ""
	ctx := providers.WithCall(t.Context(), &providers.Call{Stopping: stopping, Progress: func(p providers.Progress) {
		if named == "" && strings.Contains(p.Step, "budget") {
			named = p.Step
			close(stopping)
		}
	}})
	err := r.Leave(ctx, c.look(&r, client, "a"), "the node leaves", patient, func(context.Context) error {
		t.Error("it works")
		return nil
	})
	if !errors.Is(err, host.ErrStopped) || !strings.Contains(named, "disruption budget shop needs 2 healthy pods") {
		t.Errorf("%v, after %q", err, named)
	}
	if on := c.on("a"); len(on) != 2 {
		t.Errorf("on the node are %v", on)
	}
	if n := c.look(&r, client, "a"); n.Cordoned {
		t.Error("what was broken off is not undone")
	}
}

func unmanagedPods(t *testing.T, c *real) {
	client := c.dial("drainer", needed(false))
	c.Kubectl(t, "", "run", "bare", "-n", c.ns, "--image=main", "--labels=app=bare", `--overrides={"spec": {"nodeName": "a", "terminationGracePeriodSeconds": 1}}`)
	var r Roll
	leave := func(p Policy) error {
		return r.Leave(t.Context(), c.look(&r, client, "a"), "the node leaves", p, func(context.Context) error { return nil })
	}
	var refused *RefusedError
	if err := leave(patient); !errors.As(err, &refused) || !strings.Contains(err.Error(), "no controller would recreate "+c.ns+"/bare") {
		t.Errorf("got %v", err)
	}
	if len(c.on("a")) != 1 {
		t.Fatal("it is gone")
	}
	p := patient
	p.Unmanaged = true
	if err := leave(p); err != nil || len(c.on("a")) != 0 {
		t.Errorf("%v, and on the node are %v", err, c.on("a"))
	}
}

// deadNode: a node whose kubelet never says that a pod has ended. Nobody plays
// it.
func deadNode(t *testing.T, c *real) {
	client := c.dial("drainer", needed(true))
	name := "dead"
	if _, err := c.Client.CoreV1().Nodes().Create(t.Context(), &core.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{core.LabelHostname: name}},
		Status: core.NodeStatus{
			Allocatable: core.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")},
			Conditions:  []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionUnknown, Reason: "NodeStatusUnknown"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	c.deploy("train", name, 2, false)
	var r Roll
	n := c.look(&r, client, name)
	if n.Ready || len(n.Busy()) != 2 {
		t.Fatalf("got %+v", n)
	}
	p := patient
	p.Limits.Overdue = 50 * time.Millisecond
	var overdue *OverdueError
	err := r.Leave(t.Context(), n, "the node leaves", p, func(context.Context) error {
		t.Error("it works")
		return nil
	})
	if !errors.As(err, &overdue) || len(overdue.Pods) != 2 || !strings.Contains(err.Error(), "2 pods") || !strings.Contains(err.Error(), c.ns+"/train-") {
		t.Fatalf("got %v", err)
	}
	if on := c.on(name); len(on) != 2 {
		t.Errorf("without force, on the node are %v", on)
	}
	p.Force = true
	worked := false
	if err := r.Leave(t.Context(), c.look(&r, client, name), "the node leaves", p, func(context.Context) error { worked = true; return nil }); err != nil || !worked {
		t.Fatal(err)
	}
	if on := c.on(name); len(on) != 0 {
		t.Errorf("with force, on the node are %v", on)
	}
	// It counts among those that are unavailable.
	one := patient
	one.MaxUnavailable = 1
	c.Kubectl(t, "", "run", "bare", "-n", c.ns, "--image=main", "--labels=app=bare", `--overrides={"spec": {"nodeName": "a", "terminationGracePeriodSeconds": 1}}`)
	one.Unmanaged = true
	var unavailable *UnavailableError
	if err := r.Leave(t.Context(), c.look(&r, client, "a"), "the node leaves", one, func(context.Context) error { return nil }); !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "dead is NotReady") {
		t.Errorf("got %v", err)
	}
}

func powerless(t *testing.T, c *real) {
	c.deploy("shop", "a", 1, true)
	var r Roll
	if n, err := r.LookBy(t.Context(), c.dial("nobody", nil), "a"); err == nil || !apierrors.IsForbidden(err) {
		t.Errorf("a user who may do nothing sees %v, %v", n, err)
	}
	reader := needed(false)
	reader[0].Rules[0].Verbs = []string{"get", "list"}
	n := c.look(&r, c.dial("reader", reader), "a")
	err := r.Leave(t.Context(), n, "the node leaves", patient, func(context.Context) error { return errors.New("it works") })
	if err == nil || !strings.Contains(err.Error(), "does not let the connection's user cordon node a") {
		t.Errorf("got %v", err)
	}
	gentle := needed(false)
	gentle[0].Rules = gentle[0].Rules[:2]
	n = c.look(&r, c.dial("gentle", gentle), "a")
	err = r.Leave(t.Context(), n, "the node leaves", patient, func(context.Context) error { return errors.New("it works") })
	if err == nil || !strings.Contains(err.Error(), "does not let the connection's user evict "+c.ns+"/shop-") {
		t.Errorf("got %v", err)
	}
	if len(c.on("a")) != 1 {
		t.Error("the pod is gone")
	}
}

func noNode(t *testing.T, c *real) {
	n, err := LookBy(t.Context(), c.dial("drainer", needed(false)), "nowhere")
	if n != nil || err != nil {
		t.Errorf("got %v, %v", n, err)
	}
	if err := new(Roll).Leave(t.Context(), n, "the node leaves", patient, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}
