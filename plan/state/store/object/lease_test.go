package object

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state"
)

// elsewhere makes a lock object look like that of a process on another
// machine: nobody can tell from here whether that lives.
func elsewhere(t *testing.T, p *pail) {
	t.Helper()
	o := p.objects[layout.Lock]
	var r record
	if err := json.Unmarshal(o.data, &r); err != nil {
		t.Fatal(err)
	}
	r.Lease.Process = process{}
	p.objects[layout.Lock] = thing{r.json(), o.version}
}

// abandon stops a lease's heart and leaves its lock object there, as a
// process does that is killed; the Store does not know yet.
func abandon(l state.Lock) {
	close(l.(*lease).quit)
	<-l.(*lease).done
}

func isLocked(err error) bool {
	var locked *state.LockedError
	return errors.As(err, &locked)
}

// TestDeadHolder takes a lock over whose holder does not renew it, and not a
// moment before its lease is over.
func TestDeadHolder(t *testing.T) {
	t.Parallel()
	p, ctx := newPail(), t.Context()
	a, b := New(p, layout, quick), New(p, layout, long)
	l, err := a.Lock(ctx, state.LockInfo{Operation: "OperationTypeApply", Who: "a@x"})
	if err != nil {
		t.Fatal(err)
	}
	abandon(l)
	elsewhere(t, p)
	start := time.Now()
	var told string
	m, err := state.Wait(ctx, b, state.LockInfo{}, time.Minute, func(s string) { told = s })
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(start); waited < quick.Lease {
		t.Errorf("taken over after %s", waited)
	}
	_ = told // it may have been over before the clocks said so
	if err := m.Release(); err != nil {
		t.Error(err)
	}
}

// TestLongDeadHolder is found without -lock-timeout, and the user is told.
func TestLongDeadHolder(t *testing.T) {
	p, ctx := newPail(), t.Context()
	r := record{LockInfo: state.LockInfo{ID: "1", Who: "a@x"}, Lease: &term{Seconds: 1, Renewed: time.Now().Add(-time.Hour)}}
	p.objects[layout.Lock] = thing{r.json(), "7"}
	s := New(p, layout, long)
	if _, err := s.Lock(ctx, state.LockInfo{}); !isLocked(err) {
		t.Fatalf("taken over without a look: %v", err)
	}
	var told string
	l, err := state.Wait(ctx, s, state.LockInfo{}, 0, func(s string) { told = s })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if !strings.Contains(told, "a@x") {
		t.Errorf("told %q", told)
	}
}

// TestSlowHolder renews its lease late, but in time: it keeps its lock. The
// one who watches has another clock.
func TestSlowHolder(t *testing.T) {
	p, ctx := newPail(), t.Context()
	clock := time.Now()
	a, b := New(p, layout, Timing{Lease: time.Minute, Renew: time.Hour}), New(p, layout, long)
	for _, s := range []*Store{a, b} {
		s.now = func() time.Time { return clock }
	}
	l, err := a.Lock(ctx, state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere(t, p)
	for range 5 {
		if _, err := b.Lock(ctx, state.LockInfo{}); !isLocked(err) {
			t.Fatalf("a living holder's lock: %v", err)
		}
		clock = clock.Add(59 * time.Second)
		if err := l.(*lease).renew(); err != nil {
			t.Fatal(err)
		}
		elsewhere(t, p)
	}
	if err := a.checkLock(); err != nil {
		t.Error(err)
	}
	if _, err := b.Lock(ctx, state.LockInfo{}); !isLocked(err) {
		t.Fatal(err)
	}
	clock = clock.Add(61 * time.Second)
	var lost *state.LostLockError
	if err := a.checkLock(); !errors.As(err, &lost) {
		t.Errorf("the lease is over: %v", err)
	}
	m, err := b.Lock(ctx, state.LockInfo{})
	if err != nil {
		t.Fatalf("a lease that is over: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if err := m.Release(); err != nil {
		t.Error(err)
	}
}

// TestKilledNeighbour is a process of this machine that is gone: nobody waits.
func TestKilledNeighbour(t *testing.T) {
	if (thisProcess() == process{}) {
		t.Skip("processes cannot be told apart here")
	}
	p, ctx := newPail(), t.Context()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	dead := thisProcess()
	dead.ID = cmd.Process.Pid
	r := record{LockInfo: state.LockInfo{ID: "1"}, Lease: &term{Seconds: 3600, Renewed: time.Now(), Process: dead}}
	p.objects[layout.Lock] = thing{r.json(), "7"}
	l, err := New(p, layout, long).Lock(ctx, state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if thisProcess().hasEnded() {
		t.Error("this process takes itself for dead")
	}
}

// TestTerraformsLock has no lease, and stays until people break it.
func TestTerraformsLock(t *testing.T) {
	p, ctx := newPail(), t.Context()
	info := state.LockInfo{ID: "t", Who: "a@x", Created: time.Now().Add(-time.Hour)}
	p.objects[layout.Lock] = thing{info.JSON(), "7"}
	s := New(p, layout, Timing{Lease: time.Second, Renew: time.Second})
	_, err := state.Wait(ctx, s, state.LockInfo{}, 1500*time.Millisecond, nil)
	var locked *state.LockedError
	if !errors.As(err, &locked) || locked.Holder.ID != "t" || locked.Advice != "" {
		t.Fatalf("got %v", err)
	}
	if err := s.ForceUnlock(ctx, "t"); err != nil {
		t.Fatal(err)
	}
}

// TestZombie lets a holder sleep until another one has taken over, and wake
// up in the middle of its work: nothing that it writes gets anywhere.
func TestZombie(t *testing.T) {
	t.Parallel()
	for _, sleeps := range []bool{true, false} { // it notices by the clock, or not
		p, ctx := newPail(), t.Context()
		a := New(p, layout, quick)
		l, err := a.Lock(ctx, state.LockInfo{Who: "a@x"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := state.Open(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		j, err := f.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		abandon(l)
		elsewhere(t, p)
		b := New(p, layout, long)
		m, err := state.Wait(ctx, b, state.LockInfo{Who: "b@x"}, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := state.Open(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		if !sleeps {
			a.lease.renewed = time.Now().Add(time.Hour) // it takes its lease for a long one
		}
		before := len(p.objects)
		result := state.Result{Err: "from the dead", Durable: true}
		err = j.Result(ctx, result)
		var lost *state.LostLockError
		var conflict *state.ConflictError
		if sleeps && !errors.As(err, &lost) || !sleeps && !errors.As(err, &conflict) {
			t.Errorf("a zombie wrote: %v", err)
		}
		if err := j.Close(ctx); err == nil {
			t.Error("a zombie folded its journal")
		}
		if _, err := a.WriteSnapshot(ctx, []byte("{}"), f.State().Lineage()); err == nil {
			t.Error("a zombie wrote a snapshot")
		}
		if len(p.objects) != before {
			t.Errorf("a zombie left %v", p.objects)
		}
		k, err := g.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Close(ctx); err != nil {
			t.Fatal(err)
		}
		_ = l.(*lease) // its Release would wait for a goroutine that is gone
		if err := m.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestBroken has somebody break the lock: its holder notices with the next
// renewal, and writes nothing any more.
func TestBroken(t *testing.T) {
	p, ctx := newPail(), t.Context()
	a, b := New(p, layout, long), New(p, layout, long)
	l, err := a.Lock(ctx, state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Lock(ctx, state.LockInfo{})
	var locked *state.LockedError
	if !errors.As(err, &locked) {
		t.Fatal(err)
	}
	for err = b.ForceUnlock(ctx, locked.Holder.ID); err != nil; { // it may be renewed just then
		err = b.ForceUnlock(ctx, locked.Holder.ID)
	}
	var lost *state.LostLockError
	for !errors.As(a.checkLock(), &lost) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := a.Append(ctx, 0, []byte("x"), true); !errors.As(err, &lost) {
		t.Errorf("append: %v", err)
	}
	if err := l.SetInfo("x"); !errors.As(err, &lost) {
		t.Errorf("set info: %v", err)
	}
	m, err := b.Lock(ctx, state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if _, err := New(p, layout, quick).Lock(ctx, state.LockInfo{}); !isLocked(err) {
		t.Errorf("the old holder's release took the new one's lock: %v", err)
	}
	if err := m.Release(); err != nil {
		t.Error(err)
	}
}

// TestSilence is a service that cannot be reached: the lease ends by itself,
// and the holder stops.
func TestSilence(t *testing.T) {
	p, ctx := newPail(), t.Context()
	s := New(p, layout, Timing{Lease: time.Second, Renew: 20 * time.Millisecond})
	l, err := s.Lock(ctx, state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.before = func(string, string) error { return errors.New("no route to host") }
	p.mu.Unlock()
	var lost *state.LostLockError
	for !errors.As(s.checkLock(), &lost) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}
