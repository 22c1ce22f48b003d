package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Policy is what a change may do to pods on a node.
type Policy struct {
	// Drain moves pods away that a change would hurt. Without it such a change is
	// refused while pods run there; pods of DaemonSets and static pods do not
	// count.
	Drain bool
	// MaxUnavailable is how many nodes of a cluster may be unavailable at once,
	// those included that are for other reasons; 0: 1.
	MaxUnavailable int
	// DeleteData evicts pods that have files of their own on the node's disk
	// (emptyDir), which are lost.
	DeleteData bool
	// Unmanaged evicts pods without a controller.
	Unmanaged bool
	// Force deletes evicted pods on a node that is not Ready, without its kubelet's
	// answer: only for a machine that is certainly off, since running pods would
	// then run twice.
	Force bool
	// Turn takes one node after another, MaxUnavailable at a time, also for
	// changes that should not make them unavailable, such as a new kubelet
	// configuration, which may stop the kubelet from starting.
	Turn   bool
	Limits Limits
}

// Limits are how long to wait; zero values are the defaults.
type Limits struct {
	// Drain is until the last pod has left: 15 minutes, or two more than the
	// longest grace period of a pod there.
	Drain time.Duration
	// Ready is until the node is ready after the work: 10 minutes.
	Ready time.Duration
	// Outage is for how long the API server may be away in the middle of a drain,
	// because it restarts, say: 2 minutes.
	Outage time.Duration
	// Overdue is how long after its grace period a pod counts as stuck, on a node
	// that is not Ready: 1 minute.
	Overdue time.Duration
	// Pause is between two looks: 2 seconds.
	Pause time.Duration
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Drain: cmp.Or(l.Drain, 15*time.Minute), Ready: cmp.Or(l.Ready, 10*time.Minute), Outage: cmp.Or(l.Outage, 2*time.Minute),
		Overdue: cmp.Or(l.Overdue, time.Minute), Pause: cmp.Or(l.Pause, 2*time.Second),
	}
}

// Action is what a change needs.
type Action uint8

const (
	Nothing  Action = iota
	Tell            // it interrupts something, but no pods
	KeepAway        // cordon and drain the node first, uncordon it afterwards
	Refuse          // pods that it would hurt run there
)

// NeededAction returns what the changes need on a machine, and why: a sentence for
// the plan. node is nil if the machine is not a Kubernetes node.
func NeededAction(changes []host.Change, node *Node, p Policy) (Action, string) {
	greatest := host.Greatest(changes)
	if greatest == host.None {
		return Nothing, ""
	}
	reason := greatest.String() + " (" + facts(changes, greatest) + ")"
	if node == nil {
		return Tell, reason
	}
	hurt := node.hurtBy(changes)
	reason += effect(greatest, hurt)
	if node.ControlPlane && greatest == host.Reboots {
		reason += ": its API server is away during that, and the cluster's API unless another control plane serves it"
	}
	if len(hurt) > 0 && greatest < host.Drains {
		reason += ": containers that run lose their GPUs when systemd is reloaded"
	}
	switch {
	case greatest < host.Drains && len(hurt) == 0:
		return Tell, reason
	case len(hurt) == 0:
		return KeepAway, reason + "; node " + node.Name + " is cordoned meanwhile"
	}
	reason += "; node " + node.Name + " runs " + describe(hurt)
	if !p.Drain {
		return Refuse, reason
	}
	if stays := p.stays(hurt); stays != "" {
		return Refuse, reason + "; " + stays
	}
	return KeepAway, reason + ", which leave it first"
}

// Classed are the changes as they are on a node: where that is a control plane,
// its API server cannot be counted on while the kubelet or containerd restart,
// which run it. Such nodes go one at a time. node is nil if the machine is not
// one.
func Classed(changes []host.Change, node *Node) []host.Change {
	if node == nil || !node.ControlPlane {
		return changes
	}
	changes = slices.Clone(changes)
	for i, c := range changes {
		if c.Disruption == host.RestartsKubelet || c.Disruption == host.RestartsContainer {
			changes[i].Fact, changes[i].Disruption = c.Fact+", which "+c.Disruption.String(), host.StopsAPI
		}
	}
	return changes
}

func (n *Node) hurtBy(changes []host.Change) []Pod {
	busy := n.Busy()
	switch {
	case host.Greatest(changes) >= host.Drains:
		return busy
	case !host.Reloads(changes):
		return nil
	}
	// Containers that run lose their GPUs (nvidia-container-toolkit#48).
	return slices.DeleteFunc(busy, func(p Pod) bool { return p.GPUs == 0 })
}

func effect(d host.Disruption, hurt []Pod) string {
	switch d {
	case host.RestartsKubelet:
		return ": pods go on, the node may be NotReady for a moment"
	case host.RestartsContainer:
		return ": pods go on, exec and logs break off"
	case host.StopsAPI:
		return ": pods go on, kubectl and controllers wait unless another control plane answers them"
	case host.ReloadsSystemd:
		if len(hurt) == 0 {
			return ": no pod there has a GPU"
		}
	}
	return ""
}

func facts(changes []host.Change, d host.Disruption) string {
	var all []string
	for _, c := range changes {
		if c.Disruption == d && !slices.Contains(all, c.Fact) {
			all = append(all, c.Fact)
		}
	}
	return shortList(all)
}

func shortList(all []string) string {
	const most = 3
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), more)
	}
	return strings.Join(all, ", ")
}

func describe(pods []Pod) string {
	var training, foreign []Pod
	for _, p := range pods {
		if p.Kind == Training {
			training = append(training, p)
		} else {
			foreign = append(foreign, p)
		}
	}
	var parts []string
	if len(training) > 0 {
		parts = append(parts, fmt.Sprintf("%s in training (%s)", count(len(training), "pod"), names(training)))
	}
	if len(foreign) > 0 {
		parts = append(parts, fmt.Sprintf("%s of others (%s)", count(len(foreign), "pod"), names(foreign)))
	}
	return strings.Join(parts, " and ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// stays returns which pods must not be evicted, by kubectl's rules.
func (p Policy) stays(pods []Pod) string {
	var data, unmanaged []Pod
	for _, pod := range pods {
		if pod.Leaving {
			continue
		}
		if pod.Data && !p.DeleteData {
			data = append(data, pod)
		}
		if pod.Owner == "" && !p.Unmanaged {
			unmanaged = append(unmanaged, pod)
		}
	}
	switch {
	case len(data) > 0:
		return "draining would delete files (emptyDir) of " + names(data)
	case len(unmanaged) > 0:
		return "no controller would recreate " + names(unmanaged)
	}
	return ""
}
