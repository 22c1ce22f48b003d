package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
)

// retirer is a store whose snapshot can be set aside once it lives elsewhere.
type retirer interface {
	Retire(ctx context.Context) error
}

// migrate copies the states of all workspaces from the backend before to the
// new one. Everything is asked for first, and nothing is overwritten without
// a question or -force-copy.
func (c *backendChange) migrate(ctx context.Context, to backend.Backend) error {
	from, err := c.openPrevious(ctx)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing is written by it
	names, err := c.sources(ctx, from, to)
	if err != nil || len(names) == 0 {
		return err
	}
	if !c.f.forceCopy {
		sure, err := c.s.confirmed(c.f.input, "Do you want to copy existing state to the new backend?",
			fmt.Sprintf("%s in the backend %q will be copied to the backend %q. Enter \"yes\" to copy\n  or \"no\" to "+
				"start with the states in the new one.", countedStates(len(names)), c.beforeKind(), c.afterKind()))
		if err != nil {
			return err
		}
		if !sure {
			return nil
		}
	}
	for _, name := range names {
		if err := c.copyState(ctx, from, to, name); err != nil {
			return err
		}
	}
	return nil
}

func countedStates(n int) string {
	if n == 1 {
		return "One state"
	}
	return fmt.Sprintf("%d states", n)
}

func (c *backendChange) beforeKind() string {
	if c.saved == nil {
		return "local"
	}
	return c.saved.Kind
}

func (c *backendChange) afterKind() string {
	if c.kind == nil {
		return "local"
	}
	return c.kind.Name
}

// sources lists the workspaces whose states have something in them.
func (c *backendChange) sources(ctx context.Context, from, to backend.Backend) ([]string, error) {
	names, err := workspacesOf(ctx, from)
	if err != nil {
		c.s.complain(problem("Old backend not reachable",
			"Stoke is about to copy states from the backend %q, which does not answer as it should: %s.\n\nSecrets are not remembered from a backend block: as long as this takes, give them in the environment. Nothing was changed.", c.beforeKind(), err))
		return nil, failed
	}
	var single *backend.SingleStateError
	if _, err := to.Workspaces(ctx); errors.As(err, &single) && len(names) > 1 {
		c.s.complain(problem("Too many states to migrate",
			"The backend %q has %d workspaces, and the backend %q keeps one state. Delete the others first, or copy states one by one with \"stoke state pull\" and \"stoke state push\".", c.beforeKind(), len(names), single.Kind))
		return nil, failed
	}
	var filled []string
	for _, name := range names {
		store, err := from.Store(name)
		if err == nil {
			var data []byte
			data, _, err = store.ReadSnapshot(ctx)
			if err == nil && data != nil && !samePlace(store, to, name) {
				filled = append(filled, name)
			}
		}
		if err != nil {
			c.s.complain(stateProblem(err))
			return nil, failed
		}
	}
	return filled, nil
}

// samePlace tells whether a workspace's state stays where it is.
func samePlace(store state.Store, to backend.Backend, name string) bool {
	other, err := to.Store(name)
	if err != nil {
		return false
	}
	a, _ := store.Names()
	b, _ := other.Names()
	return a == b
}

func workspacesOf(ctx context.Context, b backend.Backend) ([]string, error) {
	names, err := b.Workspaces(ctx)
	var single *backend.SingleStateError
	if errors.As(err, &single) {
		return []string{backend.DefaultWorkspace}, nil
	}
	return names, err
}

// copyState copies one state, under both locks.
func (c *backendChange) copyState(ctx context.Context, from, to backend.Backend, name string) error {
	source, err := c.s.lockPlace(ctx, &place{kind: c.beforeKind(), backend: borrowedBackend{from}, workspace: name}, c.f.lock, "Migration")
	if err != nil {
		return err
	}
	defer source.close()
	// The place comes first: a lock on files needs their folder.
	if _, err := to.Add(ctx, name); err != nil && name != backend.DefaultWorkspace {
		c.s.complain(stateProblem(err))
		return failed
	}
	target, err := c.s.lockPlace(ctx, &place{kind: c.afterKind(), backend: borrowedBackend{to}, workspace: name}, c.f.lock, "Migration")
	if err != nil {
		return err
	}
	defer target.close()
	if err := c.settleJournal(ctx, source, c.beforeKind(), name); err != nil {
		return err
	}
	if target.Unfolded() {
		return c.unsettled(c.afterKind(), name)
	}
	st := source.State()
	text := st.Encode(st.Serial())
	old, version, err := target.store.ReadSnapshot(ctx)
	if err != nil {
		c.s.complain(stateProblem(err))
		return failed
	}
	if there := target.State(); version != "" && len(there.Instances())+len(there.Outputs()) > 0 && !bytes.Equal(there.Encode(st.Serial()), text) {
		if err := c.mayOverwrite(name); err != nil {
			return err
		}
	}
	if b, ok := target.store.(state.Backuper); ok && old != nil {
		if err := b.Backup(ctx, old); err != nil {
			c.s.complain(unwritten(err))
			return failed
		}
	}
	if _, err := target.store.WriteSnapshot(ctx, text, version); err != nil {
		c.s.complain(unwritten(err))
		return failed
	}
	if r, ok := source.store.(retirer); ok {
		if err := r.Retire(ctx); err != nil {
			c.s.complain(diagnostic(hcl.DiagWarning, "Old state still there", "The state was copied, and the old one could not be set aside: %s.", err))
		}
	}
	return nil
}

// settleJournal folds a journal that was left, and refuses what only a run can
// settle.
func (c *backendChange) settleJournal(ctx context.Context, f *stateFile, kind, name string) error {
	if !f.Unfolded() {
		return nil
	}
	if len(f.Open()) > 0 || f.lock == nil {
		return c.unsettled(kind, name)
	}
	j, err := f.Begin(ctx)
	if err == nil {
		err = j.Close(context.WithoutCancel(ctx))
	}
	if err != nil {
		c.s.complain(unwritten(err))
		return failed
	}
	return nil
}

func (c *backendChange) unsettled(kind, name string) error {
	c.s.complain(problem("State has an open journal",
		"A run in the %s was cut short. With the configuration of before, run \"stoke apply -refresh-only\", which settles what it left; then migrate.", placeName(kind, name)))
	return failed
}

func (c *backendChange) mayOverwrite(name string) error {
	if c.f.forceCopy {
		return nil
	}
	sure, err := c.s.confirmed(c.f.input, "Do you want to overwrite the state in the new backend?",
		fmt.Sprintf("There is another state already in the %s.", placeName(c.afterKind(), name)))
	if err != nil {
		return err
	}
	if !sure {
		c.s.complain(problem("Migration cancelled", "The state in the %s was left as it is.", placeName(c.afterKind(), name)))
		return failed
	}
	return nil
}

// confirmed asks a question, unless questions are turned off.
func (s *session) confirmed(input bool, question, explanation string) (bool, error) {
	if !s.mayAsk(input) {
		s.complain(problem("Approval needed", "%s Questions are turned off: add -force-copy to say yes, or -reconfigure to leave states where they are.", question))
		return false, failed
	}
	return s.confirm(question, explanation)
}
