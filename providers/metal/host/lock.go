package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/stokehq/stoke/providers"
)

const (
	lockLease = 30 * time.Second // without a heartbeat for that long, a holder is dead
	lockBeat  = 5 * time.Second
	lockWait  = 5 * time.Minute
	maxWho    = 200 // bytes of what a holder says of itself
)

// Locks keeps two operators off one machine. It belongs to a process, which has
// one for all its machines: several resources of one machine share the lock and
// have their turns one after another.
//
// The lock is a file under /run/stoke on the machine, so a reboot ends it. Its
// holder renews it every five seconds. A lease that was not renewed for 30
// seconds, by the machine's own clock since boot, is taken over, so that a
// killed stoke does not block others; by a process of the same computer at
// once, since that sees that the holder is gone.
type Locks struct {
	// Holder describes this process, for the messages of others: "alice@laptop,
	// process 4242, stoke apply, since 2026-11-21T10:00:00Z". It is different for
	// every process.
	Holder string
	// Wait is how long to wait for a machine that another process works on; 0:
	// five minutes.
	Wait time.Duration

	dir                string // for tests; "": /run/stoke
	process            string // for tests; "": this one
	leaseFor, beatEach time.Duration

	mu       sync.Mutex
	machines map[string]*turns
}

// ThisProcess is a Holder: who runs this process, where, and as what. Arguments
// but the first are left out, since they may be secret.
func ThisProcess() string {
	who, where := "unknown user", "unknown host"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if name, err := os.Hostname(); err == nil {
		where = name
	}
	what := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		what += " " + os.Args[1]
	}
	return fmt.Sprintf("%s@%s, process %d, %s, since %s", who, where, os.Getpid(), what, time.Now().UTC().Format(time.RFC3339))
}

type turns struct {
	users int           // who waits for a turn or has it
	turn  chan struct{} // one token
	lease *lease        // of whoever has the turn; nil: the machine is not locked
}

// LockedError: another process works on a machine.
type LockedError struct {
	Host, Who string
	Waited    time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is being changed by %s; waited for %s: try again when that is done (a holder that died is forgotten after %s)",
		e.Host, e.Who, e.Waited.Round(time.Second), lockLease)
}

// LostLockError: stoke may no longer change a machine.
type LostLockError struct{ Host, Why string }

func (e *LostLockError) Error() string {
	return fmt.Sprintf("%s: the lock is lost: %s; nothing more was changed, and the next apply continues from the "+
		"observed state", e.Host, e.Why)
}

// Lock is one turn at a machine.
type Lock struct {
	locks   *Locks
	turns   *turns
	key     string
	lease   *lease
	machine Machine
	ctx     context.Context
	done    func()
}

// Lock waits for a turn at the machine. Unlock ends it. Within a turn, with the
// turn's context, it does not wait.
func (l *Locks) Lock(ctx context.Context, m Machine) (*Lock, error) {
	key := identity(m)
	if s := leaseFrom(ctx); s != nil && identity(s.machine) == key { // within a turn
		return &Lock{locks: l, lease: s, ctx: ctx, machine: m}, s.checkHeld(ctx)
	}
	t := l.enter(key)
	if err := t.wait(ctx); err != nil {
		l.release(key, t)
		return nil, fmt.Errorf("%s: wait for another resource of the machine: %w", m.Name(), err)
	}
	if t.lease != nil && t.lease.ctx.Err() != nil { // the one before lost it
		t.lease.stop()
		t.lease = nil
	}
	if t.lease == nil {
		lease, err := l.take(ctx, m)
		if err != nil {
			<-t.turn
			l.release(key, t)
			return nil, err
		}
		t.lease = lease
	}
	lock := &Lock{locks: l, turns: t, key: key, lease: t.lease}
	lock.ctx, lock.done = t.lease.bind(context.WithValue(ctx, leaseKey{}, t.lease))
	lock.machine = &guarded{Machine: m, lease: t.lease}
	return lock, nil
}

// Context is cancelled when the lock is lost, with a *LostLockError as cause.
func (l *Lock) Context() context.Context { return l.ctx }

// Machine is the machine; it runs nothing once the lock is lost.
func (l *Lock) Machine() Machine { return l.machine }

// CheckHeld asks the machine whether the lock is still ours, unless it said so a
// moment ago.
func (l *Lock) CheckHeld(ctx context.Context) error { return l.lease.checkHeld(ctx) }

// Unlock ends the turn. The machine is unlocked when no other turn in this
// process waits for it. It may be called again.
func (l *Lock) Unlock() {
	l.locks.mu.Lock()
	if l.turns == nil {
		l.locks.mu.Unlock()
		return
	}
	t := l.turns
	l.turns = nil
	last := t.users == 1
	l.locks.mu.Unlock()

	l.done()
	if last || t.lease.ctx.Err() != nil {
		t.lease.free(context.WithoutCancel(l.ctx))
		t.lease = nil
	}
	<-t.turn
	l.locks.release(l.key, t)
}

func (t *turns) wait(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-providers.CallFrom(ctx).Stopping:
		return ErrStopped
	}
}

func (l *Locks) enter(key string) *turns {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.machines[key]
	if t == nil {
		t = &turns{turn: make(chan struct{}, 1)}
		if l.machines == nil {
			l.machines = map[string]*turns{}
		}
		l.machines[key] = t
	}
	t.users++
	return t
}

// release is for whoever has no turn. The last one to leave unlocks the machine.
func (l *Locks) release(key string, t *turns) {
	l.mu.Lock()
	t.users--
	last := t.users == 0
	if last {
		delete(l.machines, key)
	}
	l.mu.Unlock()
	if last && t.lease != nil { // no caller uses t any longer
		t.lease.free(context.Background())
	}
}

func (l *Locks) take(ctx context.Context, m Machine) (*lease, error) {
	limit, s := cmp.Or(l.Wait, lockWait), l.newLease(m)
	began, told, gone, pause := time.Now(), "", "", 100*time.Millisecond
	for {
		a, err := s.ask(ctx, "take", gone)
		who := a.who
		switch {
		case err != nil:
			return nil, fmt.Errorf("lock %s: %w", m.Name(), err)
		case a.state == "held":
			s.start(ctx)
			return s, nil
		case a.state != "busy":
			return nil, fmt.Errorf("lock %s: it says %q", m.Name(), a.state)
		case a.token != gone && hasEnded(a.process):
			gone = a.token // it ran here and was killed
			continue
		}
		// The same process by another address of the machine ends its turn by itself.
		if time.Since(began) > limit && who != s.who {
			return nil, &LockedError{Host: m.Name(), Who: who, Waited: time.Since(began)}
		}
		if told != who {
			providers.CallFrom(ctx).Report(providers.Progress{Step: "waiting for " + who, Percent: -1})
			told = who
		}
		if err := Pause(ctx, pause); errors.Is(err, ErrStopped) {
			return nil, fmt.Errorf("%s: stopped while waiting for %s", m.Name(), who)
		} else if err != nil {
			return nil, err
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func (l *Locks) newLease(m Machine) *lease {
	return &lease{
		machine: m, token: rand.Text(), who: cmp.Or(oneLine(l.Holder), "an unknown process"), process: cmp.Or(l.process, process("self")),
		dir: cmp.Or(l.dir, "/run/stoke"), lasts: cmp.Or(l.leaseFor, lockLease), beat: cmp.Or(l.beatEach, lockBeat),
	}
}

// oneLine makes text fit for a line of a file and of a message.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxWho {
		s = strings.ToValidUTF8(s[:maxWho], "")
	}
	return strings.Join(strings.Fields(s), " ")
}

// identity is which machine it is, as far as one can tell without asking it:
// the way there.
func identity(m Machine) string {
	if i, ok := m.(interface{ identity() string }); ok {
		return i.identity()
	}
	return m.Name()
}

var errNotAnswered = errors.New("the machine did not answer")
