package state

import (
	"context"
	"fmt"
)

// fold makes the journal part of the snapshot. The order is such that a death
// at any point is one of the cases of reconcile:
//
//	the journal says which snapshot it is about to become
//	the snapshot before is kept
//	the snapshot is replaced, in one step
//	the journal is removed
func (f *File) fold(ctx context.Context) error {
	next := &snapshot{}
	*next = *f.snap
	changed := f.fresh || f.changed()
	if changed {
		next = f.State().encode(f.snap.serial + 1)
	} else {
		next.raw, next.version = f.snap.withVersion(versionFolded), versionFolded
		next.key, next.keyAt, next.keyEnd = nil, 0, 0
	}
	rec := appendFrame(nil, f.at+1, kindFold, fold{next.serial, next.sum()}.encode())
	if err := f.store.Append(ctx, f.size, rec, true); err != nil {
		return fmt.Errorf("fold journal: %w", err)
	}
	f.at, f.size = f.at+1, f.size+int64(len(rec))
	if changed {
		if b, ok := f.store.(Backuper); ok && !f.fresh {
			if err := b.Backup(ctx, f.snap.withVersion(versionFolded)); err != nil {
				return fmt.Errorf("keep backup: %w", err)
			}
		}
	}
	version, err := f.store.WriteSnapshot(ctx, next.raw, f.version)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	f.version, f.snap, f.fresh = version, next, false
	f.core, f.at, f.size, f.journal = newCore(next), 0, 0, journalStale
	if err := f.store.DropJournal(ctx); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	f.journal = journalNone
	return nil
}

// changed reports whether the state differs from the snapshot.
func (f *File) changed() bool {
	f.core.mu.RLock()
	defer f.core.mu.RUnlock()
	for a, vs := range f.core.changed {
		if !f.snap.slot(a).equal(vs[len(vs)-1].slot) {
			return true
		}
	}
	if n := len(f.core.checks); n > 0 && !EqualChecks(f.snap.checks, f.core.checks[n-1].list) {
		return true
	}
	n := len(f.core.outputs)
	return n > 0 && !equalOutputs(f.snap.outputs, f.core.outputs[n-1].m)
}

func (e slot) equal(o slot) bool {
	if !e.current.Equal(o.current) || len(e.deposed) != len(o.deposed) {
		return false
	}
	for k, v := range e.deposed {
		if !v.Equal(o.deposed[k]) {
			return false
		}
	}
	return true
}

func equalOutputs(a, b map[string]Output) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		w, ok := b[k]
		if !ok || v.Sensitive != w.Sensitive || !v.Value.RawEquals(w.Value) {
			return false
		}
	}
	return true
}
