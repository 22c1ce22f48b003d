package drain

import (
	"context"
	"fmt"

	"github.com/stokehq/stoke/providers/metal/host"
)

// turn is work on a node, from Do's beginning to its end.
type turn struct {
	roll   *Roll
	node   *Node
	policy Policy
	done   func(error) // ends the node's turn; nil as long as it needs none
	away   bool        // pods are kept away
	err    error       // who runs there is not known, and why
}

type turnKey struct{}

// Unknown returns the context of work on a node about which nothing is known: it
// cannot be escalated.
func Unknown(ctx context.Context, why error) context.Context {
	return context.WithValue(ctx, turnKey{}, &turn{err: why})
}

// IsDrained reports whether the context belongs to work on a drained node, where
// changes interrupt no pods.
func IsDrained(ctx context.Context) bool {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t != nil && t.away
}

// Escalate makes work that Do began ready for changes which only turned out to
// be needed while it was done, such as a reboot because a module cannot be
// unloaded. It refuses what Do would have refused. Work outside of Do is not on
// a node.
func Escalate(ctx context.Context, changes []host.Change) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	switch {
	case t == nil || t.away:
		return nil
	case t.err != nil:
		return fmt.Errorf("what runs on the node is not known, so that nothing is done that may hurt it: %w", t.err)
	}
	return t.prepare(ctx, changes)
}

func (t *turn) prepare(ctx context.Context, changes []host.Change) error {
	node := t.node
	// The plan is older than the machine: who runs there now?
	if err := node.look(ctx); err != nil {
		return err
	}
	action, reason := NeededAction(changes, node, t.policy)
	if action == Refuse {
		return &RefusedError{Node: node.Name, Reason: reason}
	}
	if action != KeepAway && node.Mark == nil && host.Greatest(changes) < host.StopsAPI && !t.policy.Turn {
		return nil
	}
	admitted := false
	if t.done == nil {
		done, err := t.roll.admit(ctx, node, t.policy.MaxUnavailable)
		if err != nil {
			return err
		}
		t.done, admitted = done, true
	}
	if action != KeepAway {
		return nil
	}
	if err := t.roll.keepAway(ctx, node, t.policy); err != nil {
		if admitted {
			t.done(nil) // it was not interrupted
			t.done = nil
		}
		return err
	}
	t.away = true
	return nil
}

func (t *turn) end(ctx context.Context, m host.Machine, err error) error {
	if t.done == nil {
		return err
	}
	if err != nil {
		t.done(err)
		if t.node.Mark != nil {
			return fmt.Errorf("%w\nnode %s stays cordoned until an apply succeeds (or: kubectl uncordon %s)", err, t.node.Name, t.node.Name)
		}
		return err
	}
	err = t.node.returnToService(ctx, m, t.policy.Limits.orDefaults())
	t.done(err)
	return err
}
