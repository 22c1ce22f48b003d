package drain

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
)

// one is a cluster of one node with a pod.
func one(t *testing.T) (*draintest.Cluster, *machine, *Node) {
	t.Helper()
	c := draintest.New(t, nil)
	c.AddNode("gpu-1", func(n *core.Node) { n.Status.NodeInfo.BootID = bootA })
	c.AddPod("gpu-1", "ml/bert", draintest.GPUs(1))
	m := newMachine(c.Files("gpu-1"))
	return c, m, look(t, m)
}

var draining = Policy{Drain: true, Limits: quick}

func nothing(context.Context) error { return nil }

// TestInterrupted: what a killed run left cordoned, the next one finishes, even
// where it has nothing to interrupt.
func TestInterrupted(t *testing.T) {
	c, m, node := one(t)
	r := &Roll{By: "alice"}
	failed := errors.New("killed")
	err := r.Do(t.Context(), m, node, change(host.Reboots), draining, func(context.Context) error { return failed })
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "gpu-1 stays cordoned") {
		t.Fatalf("%v", err)
	}
	node = look(t, m)
	left := node.Leftover()
	if len(left) != 1 || !strings.Contains(left[0].Have, "cordoned by stoke (alice, ") || left[0].Disruption != host.None {
		t.Fatalf("%+v", left)
	}
	if err := new(Roll).Do(t.Context(), m, node, left, Policy{Limits: quick}, nothing); err != nil {
		t.Fatal(err)
	}
	if n := c.Node("gpu-1"); n.Spec.Unschedulable || len(n.Annotations) != 0 || look(t, m).Leftover() != nil {
		t.Errorf("%+v", n)
	}
}

// TestSomebodyElsesCordon stays.
func TestSomebodyElsesCordon(t *testing.T) {
	c, m, _ := one(t)
	c.ChangeNode("gpu-1", func(n *core.Node) { n.Spec.Unschedulable = true })
	node := look(t, m)
	if node.Leftover() != nil {
		t.Errorf("%+v", node.Mark)
	}
	if err := new(Roll).Do(t.Context(), m, node, change(host.Reboots), draining, nothing); err != nil {
		t.Fatal(err)
	}
	if n := c.Node("gpu-1"); !n.Spec.Unschedulable || len(n.Annotations) != 0 {
		t.Errorf("%+v", n)
	}
}

// TestOddMark: the annotation may be anything.
func TestOddMark(t *testing.T) {
	for _, text := range []string{"", "{", "null", `{"by":"a\n\u001b[31mb"}`, strings.Repeat("x", 2000)} {
		m := mark(&core.Node{ObjectMeta: meta(text), Spec: core.NodeSpec{Unschedulable: true}})
		if m == nil || strings.ContainsAny(m.String(), "\n\x1b") {
			t.Errorf("%q: %v", text, m)
		}
	}
	if m := mark(&core.Node{ObjectMeta: meta("{}")}); m != nil {
		t.Errorf("of a node that is not cordoned: %v", m)
	}
}

// TestStopped: a drain that is broken off is undone; which pods have left, have.
func TestStopped(t *testing.T) {
	for name, stop := range map[string]func(ctx context.Context) (context.Context, func()){
		"first Ctrl-C": func(ctx context.Context) (context.Context, func()) {
			stopping := make(chan struct{})
			return providers.WithCall(ctx, &providers.Call{Stopping: stopping}), func() { close(stopping) }
		},
		"second": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, m, node := one(t)
			c.SetBudget("ml", "keep", "x", 0)
			c.AddPod("gpu-1", "ml/x", draintest.Label("x"))
			ctx, stop := stop(t.Context())
			tries := 0
			c.OnEvict = func(string) {
				if tries++; tries == 3 {
					stop()
				}
			}
			err := new(Roll).Do(ctx, m, node, change(host.Reboots), draining, func(context.Context) error {
				t.Error("it works all the same")
				return nil
			})
			if err == nil {
				t.Fatal("no error")
			}
			if n := c.Node("gpu-1"); n.Spec.Unschedulable || len(n.Annotations) != 0 {
				t.Errorf("%+v after %v", n, err)
			}
		})
	}
}

// TestComesBack waits until the cluster has seen that the node was away, and is
// back.
func TestComesBack(t *testing.T) {
	const bootB = "99999999-2222-3333-4444-555555555555"
	for name, test := range map[string]struct {
		away func(c *draintest.Cluster, m *machine)
		back func(c *draintest.Cluster, m *machine)
		want string
	}{
		"the cluster has not noticed the reboot": {
			func(_ *draintest.Cluster, m *machine) { m.boot = bootB },
			func(c *draintest.Cluster, _ *machine) {
				c.ChangeNode("gpu-1", func(n *core.Node) { n.Status.NodeInfo.BootID = bootB })
			}, "not reported since the reboot"},
		"NotReady": {
			func(c *draintest.Cluster, _ *machine) { c.SetReady("gpu-1", false) },
			func(c *draintest.Cluster, _ *machine) { c.SetReady("gpu-1", true) }, "it is NotReady"},
		"a dead kubelet that is still Ready": {
			func(c *draintest.Cluster, _ *machine) { c.SetKubelet("gpu-1", false) },
			func(c *draintest.Cluster, _ *machine) { c.SetKubelet("gpu-1", true) }, "does not renew its lease"},
		"the way there": {
			func(_ *draintest.Cluster, m *machine) { m.refuse(errors.New("connection refused")) },
			func(_ *draintest.Cluster, m *machine) { m.refuse(nil) }, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c, m, node := one(t)
			policy := draining
			policy.Limits.Ready = 20 * time.Millisecond
			err := new(Roll).Do(t.Context(), m, node, change(host.Reboots), policy, func(context.Context) error {
				test.away(c, m)
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), "gpu-1 did not come back within 20ms") || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v", err)
			}
			if n := c.Node("gpu-1"); !n.Spec.Unschedulable {
				t.Error("pods are let back")
			}
			policy.Limits.Ready = time.Hour
			test.back(c, m)
			node = look(t, m)
			var tries atomic.Int64
			ctx := providers.WithCall(t.Context(), &providers.Call{Progress: func(p providers.Progress) {
				if strings.HasPrefix(p.Step, "waiting for node") {
					tries.Add(1)
					test.back(c, m)
				}
			}})
			err = new(Roll).Do(ctx, m, node, nil, policy, func(context.Context) error { test.away(c, m); return nil })
			if err != nil || tries.Load() != 1 {
				t.Fatalf("%v, %d", err, tries.Load())
			}
		})
	}
}

// TestStoppedAtTheEnd: work that is done is finished.
func TestStoppedAtTheEnd(t *testing.T) {
	c, m, node := one(t)
	stopping := make(chan struct{})
	ctx := providers.WithCall(t.Context(), &providers.Call{Stopping: stopping})
	err := new(Roll).Do(ctx, m, node, change(host.Reboots), draining, func(context.Context) error { close(stopping); return nil })
	if err != nil || c.Node("gpu-1").Spec.Unschedulable {
		t.Errorf("%v", err)
	}
}

// TestLeave: a node that is given up is drained, and not waited for.
func TestLeave(t *testing.T) {
	c, m, node := one(t)
	r := new(Roll)
	var refused *RefusedError
	worked := 0
	work := func(context.Context) error {
		worked++
		c.SetKubelet("gpu-1", false)
		c.SetReady("gpu-1", false)
		return nil
	}
	if err := r.Leave(t.Context(), node, "what was changed", Policy{}, work); !errors.As(err, &refused) || !strings.Contains(err.Error(), "drains the node (what was changed); node gpu-1 runs 1 pod in training") {
		t.Errorf("%v", err)
	}
	if err := r.Leave(t.Context(), node, "what was changed", draining, work); err != nil || worked != 1 || len(c.Pods("gpu-1")) != 0 || c.Node("gpu-1").Spec.Unschedulable {
		t.Errorf("%v, worked %d times, %q", err, worked, c.Pods("gpu-1"))
	}
	if err := r.Leave(t.Context(), look(t, m), "x", Policy{}, work); err != nil || worked != 2 {
		t.Errorf("without pods: %v", err)
	}
	if err := r.Leave(t.Context(), nil, "x", Policy{}, work); err != nil || worked != 3 {
		t.Errorf("no node: %v", err)
	}
}

func TestDoOnNoNode(t *testing.T) {
	for _, node := range []*Node{nil, {Name: "a"}} {
		worked := false
		d := host.Reboots
		if node != nil {
			d = host.RestartsContainer // pods go on: nobody is asked
		}
		if err := new(Roll).Do(t.Context(), newMachine(nil), node, change(d), Policy{}, func(context.Context) error { worked = true; return nil }); err != nil || !worked {
			t.Errorf("%v %v", err, worked)
		}
	}
}

func TestNeeded(t *testing.T) {
	gpu := Pod{Namespace: "ml", Name: "bert", Kind: Training, GPUs: 1, Owner: "Job bert"}
	web := Pod{Namespace: "web", Name: "shop", Kind: Foreign, Owner: "ReplicaSet shop"}
	bare := Pod{Namespace: "web", Name: "bare", Kind: Foreign}
	proxy := Pod{Namespace: "kube-system", Name: "proxy", Kind: System, GPUs: 1}
	done := Pod{Namespace: "ml", Name: "done", Kind: Finished, GPUs: 8}
	both := []host.Change{{Fact: "containerd", Disruption: host.RestartsContainer}, {Fact: "unit", Disruption: host.ReloadsSystemd}}
	tests := []struct {
		changes []host.Change
		pods    []Pod
		policy  Policy
		action  Action
		reason  string
	}{
		{nil, []Pod{gpu}, Policy{}, Nothing, ""},
		{change(host.None), []Pod{gpu}, Policy{}, Nothing, ""},
		{change(host.RestartsKubelet), []Pod{gpu, web}, Policy{}, Tell, "restarts the kubelet (fact): pods go on, the node may be NotReady for a moment"},
		{change(host.RestartsContainer), []Pod{gpu, web}, Policy{}, Tell, "restarts containerd (fact): pods go on, exec and logs break off"},
		{change(host.StopsAPI), []Pod{gpu, web}, Policy{}, Tell, "makes the API unavailable (fact): pods go on, kubectl and controllers wait unless another control plane answers them"},
		{change(host.ReloadsSystemd), []Pod{web, done}, Policy{}, Tell, "reloads systemd (fact): no pod there has a GPU"},
		{change(host.ReloadsSystemd), []Pod{gpu, web}, Policy{}, Refuse, "reloads systemd (fact): containers that run lose their GPUs when systemd is reloaded; node a runs 1 pod in training (ml/bert)"},
		{both, []Pod{gpu}, Policy{Drain: true}, KeepAway, "restarts containerd (containerd): pods go on, exec and logs break off: containers that run lose their GPUs when systemd is reloaded; node a runs 1 pod in training (ml/bert), which leave it first"},
		{[]host.Change{{Fact: "package containerd", Disruption: host.RestartsContainer, Reloads: true}}, []Pod{gpu}, Policy{}, Refuse, "restarts containerd (package containerd): pods go on, exec and logs break off: containers that run lose their GPUs when systemd is reloaded; node a runs 1 pod in training (ml/bert)"},
		{change(host.Reboots), []Pod{proxy, done}, Policy{}, KeepAway, "reboots the machine (fact); node a is cordoned meanwhile"},
		{change(host.Reboots), []Pod{gpu, web, proxy}, Policy{}, Refuse, "reboots the machine (fact); node a runs 1 pod in training (ml/bert) and 1 pod of others (web/shop)"},
		{change(host.Drains), []Pod{web, web, web, web}, Policy{Drain: true}, KeepAway, "drains the node (fact); node a runs 4 pods of others (web/shop, web/shop, web/shop and 1 more), which leave it first"},
		{change(host.Drains), []Pod{bare}, Policy{Drain: true}, Refuse, "drains the node (fact); node a runs 1 pod of others (web/bare); no controller would recreate web/bare"},
		{change(host.Drains), []Pod{bare}, Policy{Drain: true, Unmanaged: true}, KeepAway, "drains the node (fact); node a runs 1 pod of others (web/bare), which leave it first"},
	}
	for _, test := range tests {
		action, reason := NeededAction(test.changes, &Node{Name: "a", Pods: test.pods}, test.policy)
		if action != test.action || reason != test.reason {
			t.Errorf("%v on %v: %d %q\nwant %d %q", test.changes, test.pods, action, reason, test.action, test.reason)
		}
	}
	if _, reason := NeededAction(change(host.Reboots), &Node{Name: "a", ControlPlane: true}, Policy{}); reason != "reboots the machine (fact): its API server is away during that, and the cluster's API unless another control plane serves it; node a is cordoned meanwhile" {
		t.Errorf("a control plane: %q", reason)
	}
	mixed := append(both, host.Change{Fact: "kubelet", Disruption: host.RestartsKubelet, Reloads: true}, host.Change{Fact: "kernel", Disruption: host.Reboots})
	if diff := cmp.Diff(mixed, Classed(mixed, nil)) + cmp.Diff(mixed, Classed(mixed, &Node{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]host.Change{
		{Fact: "containerd, which restarts containerd", Disruption: host.StopsAPI}, {Fact: "unit", Disruption: host.ReloadsSystemd},
		{Fact: "kubelet, which restarts the kubelet", Disruption: host.StopsAPI, Reloads: true}, {Fact: "kernel", Disruption: host.Reboots},
	}, Classed(mixed, &Node{ControlPlane: true})); diff != "" || mixed[0].Disruption != host.RestartsContainer {
		t.Error(diff)
	}
	many := append(append(change(host.Reboots), host.Change{Fact: "b", Disruption: host.Reboots}, host.Change{Fact: "c", Disruption: host.Reboots}), host.Change{Fact: "d", Disruption: host.Reboots}, host.Change{Fact: "e"})
	if action, reason := NeededAction(many, nil, Policy{}); action != Tell || reason != "reboots the machine (fact, b, c and 1 more)" {
		t.Errorf("%d %q", action, reason)
	}
}
