package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state"
)

func locks(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	a, b := opened(t, open), opened(t, open)
	l, err := a.Lock(ctx, state.LockInfo{Operation: "OperationTypeApply", Info: "first"})
	must(t, err)
	refused := func() *state.LockedError {
		t.Helper()
		_, err := b.Lock(ctx, state.LockInfo{Operation: "OperationTypePlan"})
		var locked *state.LockedError
		if !errors.As(err, &locked) {
			t.Fatalf("got %v, want that it is locked", err)
		}
		return locked
	}
	e := refused()
	if hold := e.Holder; hold.ID == "" || !strings.Contains(hold.Who, "@") || hold.Operation != "OperationTypeApply" || hold.Created.IsZero() || e.Path == "" {
		t.Errorf("the holder is %+v of %q", hold, e.Path)
	}
	if err := l.SetInfo("second"); err != nil {
		t.Errorf("set info: %v", err)
	}
	for h.Info && refused().Holder.Info != "second" && ctx.Err() == nil { // it may be on its way
		time.Sleep(time.Millisecond)
	}
	must(t, l.Release())
	if err := l.Release(); err == nil {
		t.Error("a lock was released twice")
	}
	l, err = b.Lock(ctx, state.LockInfo{})
	must(t, err)
	must(t, l.Release())
	if _, err := state.Wait(ctx, a, state.LockInfo{}, 0, nil); err != nil {
		t.Errorf("a free lock: %v", err)
	}
	if _, err := state.Wait(ctx, b, state.LockInfo{}, 30*time.Millisecond, nil); err == nil {
		t.Error("a held lock was taken")
	}
}

func unlocks(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	a, b := opened(t, open), opened(t, open)
	var none *state.NotLockedError
	if err := b.ForceUnlock(ctx, "x"); !h.AnyUnlock && !errors.As(err, &none) {
		t.Errorf("no lock: %v", err)
	}
	_, err := a.Lock(ctx, state.LockInfo{})
	must(t, err)
	var locked *state.LockedError
	if _, err := b.Lock(ctx, state.LockInfo{}); !errors.As(err, &locked) {
		t.Fatal(err)
	}
	if h.Unbreakable {
		if err := b.ForceUnlock(ctx, locked.Holder.ID); err == nil {
			t.Error("the lock of a living holder was broken")
		}
		return
	}
	id := locked.Holder.ID
	if err := b.ForceUnlock(ctx, "another"); !errors.As(err, &locked) {
		t.Errorf("another ID: %v", err)
	}
	if _, err := b.Lock(ctx, state.LockInfo{}); !errors.As(err, &locked) {
		t.Fatalf("another ID broke the lock: %v", err)
	}
	must(t, b.ForceUnlock(ctx, id))
	l, err := b.Lock(ctx, state.LockInfo{})
	must(t, err)
	must(t, l.Release())
}

// contest has many processes want to run at the same time: they run one after
// the other, and whoever is refused hears of a holder.
func contest(t *testing.T, h Harness) {
	open, ctx := h.Place(t), t.Context()
	const processes = 6
	var inside, refusals, named atomic.Int32
	var group sync.WaitGroup
	for i := range processes {
		s := opened(t, open)
		group.Go(func() {
			for {
				l, err := s.Lock(ctx, state.LockInfo{Operation: "OperationTypeApply", Who: fmt.Sprintf("p%d@here", i)})
				var locked *state.LockedError
				if errors.As(err, &locked) {
					refusals.Add(1)
					if locked.Holder.Operation == "OperationTypeApply" && strings.HasSuffix(locked.Holder.Who, "@here") {
						named.Add(1) // else it was released while we asked
					}
					time.Sleep(time.Millisecond)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				if err := addOne(ctx, s, i); err != nil {
					t.Errorf("process %d: %v", i, err)
				}
				inside.Add(-1)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	group.Wait()
	if refusals.Load() > 0 && named.Load() == 0 {
		t.Errorf("none of %d refusals named the holder", refusals.Load())
	}
	f, err := state.Open(ctx, opened(t, open))
	must(t, err)
	if n := len(f.State().Instances()); n != processes || f.State().Serial() != processes {
		t.Errorf("%d objects, serial %d", n, f.State().Serial())
	}
}
