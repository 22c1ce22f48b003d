package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/drain/draintest"
	"github.com/stokehq/stoke/providers/metal/host"
)

func meta(annotation string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Annotations: map[string]string{Annotation: annotation}}
}

// several is a cluster of nodes n-0, n-1 and so on, which the roll has looked at.
func several(t *testing.T, r *Roll, n int) (*draintest.Cluster, []*machine, []*Node) {
	t.Helper()
	c := draintest.New(t, nil)
	var machines []*machine
	var nodes []*Node
	for i := range n {
		name := fmt.Sprintf("n-%d", i)
		c.AddNode(name, func(n *core.Node) { n.Status.NodeInfo.BootID = bootA })
		c.AddPod(name, "ml/"+name, draintest.GPUs(1))
		m := newMachine(c.Files(name))
		node, err := r.Look(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		machines, nodes = append(machines, m), append(nodes, node)
	}
	return c, machines, nodes
}

// TestRoll: never more than max_unavailable at once, all of them in the end.
func TestRoll(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		for _, lists := range []bool{false, true} {
			t.Run(fmt.Sprint(most, lists), func(t *testing.T) {
				r := &Roll{}
				c, machines, nodes := several(t, r, 8)
				c.Lists = lists
				policy := draining
				policy.MaxUnavailable = most
				var inside, peak, worked atomic.Int64
				var mu sync.Mutex
				var all sync.WaitGroup
				for i := range nodes {
					all.Go(func() {
						err := r.Do(t.Context(), machines[i], nodes[i], change(host.Reboots), policy, func(context.Context) error {
							now := inside.Add(1)
							mu.Lock()
							peak.Store(max(peak.Load(), now))
							mu.Unlock()
							cordoned := 0
							for i := range nodes {
								if c.Node(fmt.Sprintf("n-%d", i)).Spec.Unschedulable {
									cordoned++
								}
							}
							if cordoned > max(1, most) {
								t.Errorf("%d nodes are cordoned at once", cordoned)
							}
							worked.Add(1)
							inside.Add(-1)
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if worked.Load() != 8 || peak.Load() > int64(max(1, most)) {
					t.Errorf("%d nodes, %d at once", worked.Load(), peak.Load())
				}
			})
		}
	}
}

// TestControlPlanes go one at a time, however many nodes may be unavailable.
func TestControlPlanes(t *testing.T) {
	r := &Roll{}
	c, machines, nodes := several(t, r, 4)
	for _, n := range nodes[:3] {
		c.ChangeNode(n.Name, func(n *core.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" })
	}
	policy := draining
	policy.MaxUnavailable = 4
	var control, worked atomic.Int64
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			err := r.Do(t.Context(), machines[i], nodes[i], change(host.Reboots), policy, func(context.Context) error {
				worked.Add(1)
				if i < 3 && control.Add(1) > 1 {
					t.Error("two control planes at once")
				}
				cordoned := 0
				for _, n := range nodes[:3] {
					if c.Node(n.Name).Spec.Unschedulable {
						cordoned++
					}
				}
				if cordoned > 1 {
					t.Errorf("%d control planes are cordoned at once", cordoned)
				}
				if i < 3 {
					control.Add(-1)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if worked.Load() != 4 {
		t.Errorf("%d nodes", worked.Load())
	}
}

// TestRollStops at the first node that does not come back.
func TestRollStops(t *testing.T) {
	r := &Roll{}
	c, machines, nodes := several(t, r, 6)
	var worked atomic.Int64
	var stopped atomic.Int64
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			err := r.Do(t.Context(), machines[i], nodes[i], change(host.Reboots), draining, func(context.Context) error {
				worked.Add(1)
				return errors.New("no boot device")
			})
			var after *StoppedError
			if errors.As(err, &after) {
				stopped.Add(1)
				if !strings.Contains(err.Error(), "was not started: node n-") || !strings.Contains(after.Err.Error(), "no boot device") {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if worked.Load() != 1 || stopped.Load() != 5 {
		t.Errorf("%d worked, %d were stopped", worked.Load(), stopped.Load())
	}
	cordoned := 0
	for _, n := range nodes {
		if c.Node(n.Name).Spec.Unschedulable {
			cordoned++
		}
	}
	if cordoned != 1 {
		t.Errorf("%d are cordoned", cordoned)
	}
	// Another cluster goes on.
	_, others, node := several(t, r, 1)
	if err := r.Do(t.Context(), others[0], node[0], change(host.Reboots), draining, nothing); err != nil {
		t.Error(err)
	}
}

// TestUnavailableAlready counts nodes that others made unavailable.
func TestUnavailableAlready(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(c *draintest.Cluster, m *machine)
		fix  func(c *draintest.Cluster, m *machine)
		want string
	}{
		"NotReady": {func(c *draintest.Cluster, _ *machine) { c.SetReady("n-1", false) }, func(c *draintest.Cluster, _ *machine) { c.SetReady("n-1", true) }, "n-1 is NotReady, and max_unavailable is 1"},
		"cordoned": {func(c *draintest.Cluster, _ *machine) {
			c.ChangeNode("n-1", func(n *core.Node) { n.Spec.Unschedulable = true })
		}, func(c *draintest.Cluster, _ *machine) {
			c.ChangeNode("n-1", func(n *core.Node) { n.Spec.Unschedulable = false })
		}, "n-1 is cordoned"},
	} {
		for _, lists := range []bool{false, true} {
			t.Run(fmt.Sprint(name, lists), func(t *testing.T) {
				c := draintest.New(t, nil)
				c.Lists = lists
				c.AddNode("n-0")
				c.AddNode("n-1")
				r := &Roll{}
				m0, m1 := newMachine(c.Files("n-0")), newMachine(c.Files("n-1"))
				m0.boot, m1.boot = "", ""
				test.harm(c, m1)
				n0, err := r.Look(t.Context(), m0)
				if err != nil {
					t.Fatal(err)
				}
				n1, err := r.Look(t.Context(), m1)
				if err != nil {
					t.Fatal(err)
				}
				var too *UnavailableError
				err = r.Do(t.Context(), m0, n0, change(host.Reboots), draining, nothing)
				if !errors.As(err, &too) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v", err)
				}
				// The one that is unavailable may be worked on: nothing gets worse.
				worked := false
				err = r.Do(t.Context(), m1, n1, change(host.Reboots), draining, func(context.Context) error {
					worked = true
					c.SetReady("n-1", true)
					return nil
				})
				if err != nil || !worked {
					t.Errorf("the unavailable one: %v", err)
				}
				test.fix(c, m1)
				if err := r.Do(t.Context(), m0, n0, change(host.Reboots), draining, nothing); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}

// TestSeenWhilePlanning: the connections of planning are gone when nodes are
// worked on. What they said of a node counts; that it cannot be asked does not.
func TestSeenWhilePlanning(t *testing.T) {
	pool := &ssh.Pool{}
	pool.Close()
	_, closed := pool.DialContext(t.Context(), ssh.Target{}, "tcp", "192.0.2.1:6443")
	for name, test := range map[string]struct {
		refuse error
		ready  bool
		want   string
	}{
		"ready then":      {closed, true, ""},
		"NotReady then":   {closed, false, "n-1 is NotReady"},
		"does not answer": {errors.New("no route to host"), true, "n-1 does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Roll{}
			c, machines, nodes := several(t, r, 2)
			c.SetReady("n-1", test.ready)
			if _, err := r.Look(t.Context(), machines[1]); err != nil {
				t.Fatal(err)
			}
			machines[1].refuse(test.refuse)
			for _, m := range r.clusters[nodes[0].Cluster].known {
				m.at = m.at.Add(-2 * fresh)
			}
			r.clusters[nodes[0].Cluster].known["n-1"].api.forget()
			err := r.Do(t.Context(), machines[0], nodes[0], change(host.Reboots), draining, nothing)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestWaitingForATurnEnds(t *testing.T) {
	r := &Roll{}
	_, machines, nodes := several(t, r, 2)
	stopping := make(chan struct{})
	ctx := providers.WithCall(t.Context(), &providers.Call{Stopping: stopping})
	err := r.Do(t.Context(), machines[0], nodes[0], change(host.Reboots), draining, func(context.Context) error {
		close(stopping)
		err := r.Do(ctx, machines[1], nodes[1], change(host.Reboots), draining, nothing)
		if !errors.Is(err, host.ErrStopped) {
			t.Errorf("%v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNoBadManners: draining asks for nothing that a node is not allowed to.
func TestNoBadManners(t *testing.T) {
	r := &Roll{}
	c, machines, nodes := several(t, r, 2)
	for i := range nodes {
		if err := r.Do(t.Context(), machines[i], nodes[i], change(host.Reboots), draining, nothing); err != nil {
			t.Fatal(err)
		}
	}
	lists := 0
	for _, request := range c.Requests() {
		if request == "GET nodes" {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("it asked %d times for all nodes, which is forbidden", lists)
	}
}

// TestTurn: where the policy says so, nodes go one after another for what takes
// nobody away, and nobody is evicted.
func TestTurn(t *testing.T) {
	r := &Roll{}
	c, machines, nodes := several(t, r, 4)
	policy := Policy{Turn: true, Limits: draining.Limits}
	var inside, peak atomic.Int64
	var all sync.WaitGroup
	for i := range nodes {
		all.Go(func() {
			err := r.Do(t.Context(), machines[i], nodes[i], change(host.RestartsKubelet), policy, func(context.Context) error {
				if n := inside.Add(1); n > peak.Load() {
					peak.Store(n)
				}
				time.Sleep(5 * time.Millisecond)
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if peak.Load() != 1 {
		t.Errorf("%d nodes at a time", peak.Load())
	}
	for i := range nodes {
		name := fmt.Sprintf("n-%d", i)
		if len(c.Pods(name)) != 1 || c.Node(name).Spec.Unschedulable {
			t.Errorf("%s: pods %v, cordoned %v", name, c.Pods(name), c.Node(name).Spec.Unschedulable)
		}
	}
}
