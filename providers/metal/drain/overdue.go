package drain

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stokehq/stoke/providers/metal/host"
)

// OverdueError: pods on a node that is not Ready were evicted, and no kubelet
// reports their end.
type OverdueError struct {
	Node string
	Pods []Pod
}

func (e *OverdueError) Error() string {
	return fmt.Sprintf("node %s is NotReady, and %s there will not end, though asked to: %s; switch the machine on again or, if it is off for certain, "+
		"delete them without its word (kubectl delete pod --force)", e.Node, count(len(e.Pods), "pod"), names(e.Pods))
}

// lateness has the times since when pods have been ending on a node that is not
// Ready. The API server's times are of another clock.
type lateness struct {
	after time.Duration // a pod's grace period
	since map[types.UID]time.Time
}

// overdue returns the pods whose end no kubelet will report.
func (l *lateness) overdue(n *Node, left []Pod) []Pod {
	if n.Ready || l.since == nil {
		l.since = map[types.UID]time.Time{} // its kubelet may have come back to end them
	}
	if n.Ready {
		return nil
	}
	var late []Pod
	for _, p := range leaving(left) {
		since, seen := l.since[p.uid]
		if !seen {
			l.since[p.uid] = time.Now()
		} else if time.Since(since) > p.grace+l.after {
			late = append(late, p)
		}
	}
	return late
}

// insist deals with evicted pods on a node that is not Ready: with force it
// deletes them; without, that is an error once none of those left may still go by
// itself.
func (n *Node) insist(ctx context.Context, left []Pod, l *lateness, force bool) error {
	late := l.overdue(n, left)
	if !force {
		if len(late) > 0 && len(late) == len(left) {
			return &OverdueError{Node: n.Name, Pods: late}
		}
		return nil
	}
	if n.Ready {
		return nil
	}
	for _, p := range leaving(left) {
		host.Step(ctx, "deleting %s, whose node %s is off", p, n.Name)
		err := n.api.remove(ctx, p)
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), passing(err): // the next look finds out
		case apierrors.IsForbidden(err):
			return fmt.Errorf("%s: %w", n.api.refuses("delete "+p.String()), err)
		default:
			return fmt.Errorf("delete %s: %w", p, err)
		}
	}
	return nil
}
