package drain

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// fresh is for how long a look at another node counts.
const fresh = 30 * time.Second

// Roll lets the nodes of a cluster be interrupted a few at a time, over all
// resources of a process, and stops at the first node that does not come back.
// The zero value is ready for use.
type Roll struct {
	// By describes this process, for the mark on nodes.
	By string
	// Agent is the User-Agent of requests, such as "stoke/1.2.3"; "" is "stoke".
	Agent string

	mu       sync.Mutex
	clusters map[string]*cluster
	listers  map[string]*identity // by cluster; see CountBy
}

type cluster struct {
	known   map[string]*observation
	turns   map[string]bool // nodes that are being worked on
	control string          // the one of them that is a control plane; "" for none
	stopped *StoppedError   // Node is ""
	changed chan struct{}   // closed when a turn ends
	noList  bool            // the API server does not let nodes list all nodes
}

type observation struct {
	api   *api
	at    time.Time
	state string // "" for available, else why it is not
}

// StoppedError: a node was not touched because another one did not come back.
type StoppedError struct {
	Node, Other string
	Err         error // of the other one
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("node %s was not started: node %s did not come back; fix that one first, then apply again", e.Node, e.Other)
}

// UnavailableError: too many nodes of the cluster are unavailable already.
type UnavailableError struct {
	Node   string
	Others []string // such as "gpu-7 is NotReady"
	Most   int
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("node %s was not started: %s, and max_unavailable is %d; fix that first, or raise it", e.Node, strings.Join(e.Others, ", "), e.Most)
}

// Look calls Look, and counts the node for its cluster.
func (r *Roll) Look(ctx context.Context, m host.Machine) (*Node, error) {
	return r.remember(lookAs(ctx, m, cmp.Or(r.Agent, "stoke")))
}

// LookBy calls LookBy, and counts the node for its cluster.
func (r *Roll) LookBy(ctx context.Context, c *kubernetes.Client, name string) (*Node, error) {
	return r.remember(LookBy(ctx, c, name))
}

func (r *Roll) remember(n *Node, err error) (*Node, error) {
	if n != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cluster(n.Cluster).known[n.Name] = &observation{api: n.api, at: time.Now(), state: state(n, err)}
	}
	return n, err
}

func state(n *Node, err error) string {
	switch {
	case err != nil:
		return n.Name + " does not answer"
	case !n.Ready:
		return n.Name + " is NotReady"
	case n.Cordoned:
		return n.Name + " is cordoned"
	}
	return ""
}

// cluster is under mu.
func (r *Roll) cluster(id string) *cluster {
	c := r.clusters[id]
	if c == nil {
		c = &cluster{known: map[string]*observation{}, turns: map[string]bool{}, changed: make(chan struct{})}
		if r.clusters == nil {
			r.clusters = map[string]*cluster{}
		}
		r.clusters[id] = c
	}
	return c
}

// admit waits for the node's turn. The returned function ends it: with an error
// when the node did not come back, which ends the roll.
func (r *Roll) admit(ctx context.Context, n *Node, most int) (done func(error), err error) {
	most = max(1, most)
	told := false
	for {
		others, err := r.unavailable(ctx, n)
		if err != nil {
			return nil, err
		}
		if !n.Ready || n.Cordoned {
			others = nil // it is one of them: nothing more becomes unavailable by it
		}
		r.mu.Lock()
		c := r.cluster(n.Cluster)
		switch stopped := c.stopped; {
		case stopped != nil && stopped.Other != n.Name: // that one may be fixed
			r.mu.Unlock()
			return nil, &StoppedError{Node: n.Name, Other: stopped.Other, Err: stopped.Err}
		// Control planes go one at a time: etcd needs most of them.
		case !c.turns[n.Name] && len(c.turns)+len(others) < most && (!n.ControlPlane || c.control == ""):
			c.turns[n.Name] = true
			if n.ControlPlane {
				c.control = n.Name
			}
			r.mu.Unlock()
			return func(err error) { r.end(n, err) }, nil
		case len(c.turns) == 0:
			r.mu.Unlock()
			return nil, &UnavailableError{Node: n.Name, Others: others, Most: most}
		}
		changed := c.changed
		r.mu.Unlock()
		if !told {
			told = true
			host.Step(ctx, "waiting for other nodes of the cluster")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-providers.CallFrom(ctx).Stopping:
			return nil, fmt.Errorf("node %s was not started: %w", n.Name, host.ErrStopped)
		}
	}
}

func (r *Roll) end(n *Node, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cluster(n.Cluster)
	delete(c.turns, n.Name)
	if c.control == n.Name {
		c.control = ""
	}
	switch {
	case err != nil && c.stopped == nil:
		c.stopped = &StoppedError{Other: n.Name, Err: err}
	case err == nil && c.stopped != nil && c.stopped.Other == n.Name:
		c.stopped = nil
	}
	c.known[n.Name] = &observation{api: n.api, at: time.Now(), state: state(n, err)}
	close(c.changed)
	c.changed = make(chan struct{})
}

// unavailable are the other nodes of the cluster that are not at work, without
// those whose turn it is.
func (r *Roll) unavailable(ctx context.Context, n *Node) ([]string, error) {
	if others, listed, err := r.list(ctx, n); listed || err != nil {
		return others, err
	}
	r.mu.Lock()
	c := r.cluster(n.Cluster)
	var stale []string
	for name, s := range c.known {
		if name != n.Name && !c.turns[name] && (s.state != "" || time.Since(s.at) > fresh) {
			stale = append(stale, name)
		}
	}
	r.mu.Unlock()
	var all sync.WaitGroup
	few := make(chan struct{}, 8)
	for _, name := range stale {
		few <- struct{}{}
		all.Go(func() {
			defer func() { <-few }()
			r.lookAgain(ctx, n.Cluster, name)
		})
	}
	all.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	var others []string
	for name, s := range c.known {
		if name != n.Name && !c.turns[name] && s.state != "" {
			others = append(others, s.state)
		}
	}
	return others, context.Cause(ctx)
}

func (r *Roll) lookAgain(ctx context.Context, cluster, name string) {
	r.mu.Lock()
	s := r.cluster(cluster).known[name]
	r.mu.Unlock()
	n := &Node{Name: name}
	node, err := s.api.node(ctx)
	if err == nil {
		n.take(node)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.cluster(cluster); !c.turns[name] && c.known[name] == s {
		if apierrors.IsNotFound(err) { // it has left the cluster
			delete(c.known, name)
			return
		}
		c.known[name] = &observation{api: s.api, at: time.Now(), state: state(n, err)}
		if ssh.IsClosed(err) { // it was seen while planning: that is all one knows
			c.known[name].state = s.state
		}
	}
}

// list asks the API server for all nodes, as this node or as another user who
// may list them.
func (r *Roll) list(ctx context.Context, n *Node) (others []string, listed bool, err error) {
	r.mu.Lock()
	noList, by := r.cluster(n.Cluster).noList, r.listers[n.Cluster]
	r.mu.Unlock()
	asks := n.api
	switch {
	case by != nil && n.api.as != nil: // a connection's user is not a node
		if asks, err = n.api.as(by); err != nil {
			return nil, false, err
		}
		defer asks.forget()
	case noList && n.api.as != nil:
		return nil, false, nil
	}
	all, err := r.listSteadyNodes(ctx, n.Cluster, asks)
	defer r.mu.Unlock()
	c := r.cluster(n.Cluster)
	switch {
	case asks == n.api && apierrors.IsForbidden(err):
		c.noList = c.noList || n.api.as != nil
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("count the nodes of the cluster: %w", err)
	}
	for _, other := range all {
		if other.Name == n.Name || c.turns[other.Name] {
			continue
		}
		o := &Node{Name: other.Name}
		o.take(&other)
		if s := state(o, nil); s != "" {
			others = append(others, s)
		}
	}
	return others, true, nil
}

// listSteadyNodes lists all nodes at a moment at which no turn ended, since a node whose
// turn ends is neither at work nor yet seen as available again. It returns with
// mu locked.
func (r *Roll) listSteadyNodes(ctx context.Context, cluster string, asks *api) ([]core.Node, error) {
	r.mu.Lock()
	for {
		changed := r.cluster(cluster).changed
		r.mu.Unlock()
		all, err := asks.nodes(ctx)
		r.mu.Lock()
		if err != nil || r.cluster(cluster).changed == changed {
			return all, err
		}
	}
}
