package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// undoFor is for how long a drain that was broken off is undone.
const undoFor = 20 * time.Second

// RefusedError: pods that the work would interrupt run on the node.
type RefusedError struct{ Node, Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Do does work that the changes stand for, in a way that hurts no pod: it waits
// for the node's turn, keeps pods away and has those leave that are there, works,
// waits until the node is ready and lets pods back. Where nothing of that is
// needed, it only works, which may turn out to need it (Escalate). node is nil if
// the machine is not a node.
//
// A node whose work failed stays cordoned, and so does the node of a killed
// stoke: it carries a mark (Annotation), so that the next Do uncordons it.
func (r *Roll) Do(ctx context.Context, m host.Machine, node *Node, changes []host.Change, p Policy, work func(context.Context) error) error {
	if node == nil {
		return work(ctx)
	}
	t := &turn{roll: r, node: node, policy: p}
	if host.Greatest(changes) >= host.StopsAPI || host.Reloads(changes) || node.Mark != nil || p.Turn {
		if err := t.prepare(ctx, changes); err != nil {
			return err
		}
	}
	return t.end(ctx, m, work(context.WithValue(ctx, turnKey{}, t)))
}

// Leave calls work, after which the machine may have left the cluster: pods are
// drained first, or the work is rejected. It does not wait for the node
// afterwards.
func (r *Roll) Leave(ctx context.Context, node *Node, what string, p Policy, work func(context.Context) error) error {
	if node == nil {
		return work(ctx)
	}
	if err := node.look(ctx); err != nil {
		return err
	}
	busy := node.Busy()
	if len(busy) == 0 && node.Mark == nil {
		return work(ctx)
	}
	action, reason := NeededAction([]host.Change{{Fact: what, Disruption: host.Drains}}, node, p)
	if action == Refuse {
		return &RefusedError{Node: node.Name, Reason: reason}
	}
	done, err := r.admit(ctx, node, p.MaxUnavailable)
	if err != nil {
		return err
	}
	defer done(nil)
	if err := r.keepAway(ctx, node, p); err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		return err
	}
	node.uncordon(ctx) //nolint:errcheck // where that does not answer any more, nobody is scheduled either
	return nil
}

// keepAway cordons and drains. If it fails, it undoes both.
func (r *Roll) keepAway(ctx context.Context, n *Node, p Policy) error {
	host.Step(ctx, "draining %s", n.Name)
	if err := n.try(ctx, n.Busy()); err != nil {
		return err
	}
	ours, err := n.cordon(ctx, r.By)
	switch {
	case err == nil:
		err = n.evict(ctx, p)
	case passing(err):
		ours = true // it may be, for all one knows
	}
	if err == nil || !ours {
		return err
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoFor)
	defer cancel()
	if failed := n.uncordon(undo); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

func (n *Node) returnToService(ctx context.Context, m host.Machine, limits Limits) error {
	host.Step(ctx, "waiting for node %s", n.Name)
	boot := ""
	if b, err := host.ReadBoot(ctx, m); err == nil {
		boot = b.ID
	}
	w := witness{boot: boot}
	began, limit := time.Now(), limits.Ready
	stopping := providers.CallFrom(ctx).Stopping
	for {
		reason, err := n.isBack(ctx, &w)
		if reason == "" && err == nil {
			err = n.uncordon(ctx)
		}
		switch {
		case reason == "" && (err == nil || !passing(err)):
			return err
		case time.Since(began) > limit && err != nil:
			return fmt.Errorf("node %s did not come back within %s: %w", n.Name, limit.Round(time.Millisecond), err)
		case time.Since(began) > limit:
			return fmt.Errorf("node %s did not come back within %s: %s; look at `journalctl -u kubelet` there", n.Name, limit.Round(time.Millisecond), reason)
		}
		select {
		case <-time.After(limits.Pause):
		case <-stopping: // the step is all but done: a moment more
			stopping = nil
			limit = min(limit, time.Since(began)+undoFor)
		case <-ctx.Done():
			return fmt.Errorf("wait for node %s: %w", n.Name, context.Cause(ctx))
		}
	}
}

// witness distinguishes a node that is back from a node whose absence the
// cluster has not noticed yet.
type witness struct {
	boot    string // the machine's boot id; "" when not known
	asked   bool
	renewed string // the lease when it was first asked for
}

func (n *Node) isBack(ctx context.Context, w *witness) (reason string, err error) {
	node, err := n.api.node(ctx)
	if err != nil {
		return "", err
	}
	n.take(node)
	renewed, err := n.api.renewed(ctx)
	if err != nil {
		return "", err
	}
	if !w.asked {
		w.asked, w.renewed = true, renewed
	}
	switch {
	case w.boot != "" && n.BootID != w.boot:
		return "its kubelet has not reported since the reboot", nil
	case !n.Ready:
		return "it is NotReady", nil
	case renewed == w.renewed:
		return "its kubelet does not renew its lease", nil
	}
	return "", nil
}
