package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stokehq/stoke/plan/state"
)

// lease is a lock that is held. A goroutine renews it until it is released.
type lease struct {
	store *Store
	quit  chan struct{}
	done  chan struct{}
	nudge chan struct{} // there is a new message

	mu       sync.Mutex
	record   record
	version  string
	renewed  time.Time // when the last request began that renewed it
	lost     error     // *state.LostLockError
	released bool
}

func (s *Store) hold(r *record, version string, start time.Time) *lease {
	l := &lease{
		store: s, record: *r, version: version, renewed: start,
		quit: make(chan struct{}), done: make(chan struct{}), nudge: make(chan struct{}, 1),
	}
	s.lease, s.seen = l, sighting{}
	go l.keep()
	return l
}

// checkLock reports that the lock was lost; nil where it is held, or none is.
func (s *Store) checkLock() error {
	if s.lease == nil {
		return nil
	}
	return s.lease.check()
}

// check looks at the clock too: a process that slept does not know yet that
// others took over. Wall time counts as well, because a machine's own clock
// may stand still while it sleeps.
func (l *lease) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && !l.released {
		now := l.store.now()
		age := max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0)))
		if age > l.store.timing.Lease {
			l.lose(fmt.Sprintf("it was not renewed for %s", age.Round(time.Second)))
		}
	}
	return l.lost
}

// lose is called with mu held.
func (l *lease) lose(reason string) {
	if l.lost == nil {
		l.lost = &state.LostLockError{Path: l.store.bucket.Name(l.store.layout.Snapshot), Reason: reason}
	}
}

// keep renews the lease until it is released or lost.
func (l *lease) keep() {
	defer close(l.done)
	tick := time.NewTicker(l.store.timing.Renew)
	defer tick.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-tick.C:
		case <-l.nudge:
		}
		if l.renew() != nil {
			return
		}
	}
}

// renew writes the lock object again, and returns why the lock is lost, if it
// is.
func (l *lease) renew() error {
	if err := l.check(); err != nil {
		return err
	}
	l.mu.Lock()
	start := l.store.now()
	l.record.Lease.Renewed = start.UTC()
	data, version := l.record.json(), l.version
	l.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), l.store.timing.Lease/2)
	defer cancel()
	next, err := l.store.bucket.Put(ctx, l.store.layout.Lock, data, version)
	if errors.Is(err, ErrConflict) {
		next, err = l.inspect(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.version, l.renewed = next, start
	}
	return l.lost // other errors: the next tick tries again, until the lease is over
}

// inspect finds out who has changed the lock object: this process, by a renewal
// whose answer was lost, or a process that broke the lock.
func (l *lease) inspect(ctx context.Context) (version string, err error) {
	data, version, err := l.store.bucket.Get(ctx, l.store.layout.Lock)
	if err != nil {
		return "", err
	}
	var r record
	if version != "" && json.Unmarshal(data, &r) == nil && r.ID == l.record.ID {
		return version, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if version == "" {
		l.lose("another process broke it")
	} else {
		l.lose("it is held by " + r.String() + " now")
	}
	return "", l.lost
}

// SetInfo changes the message that others get; it is on its way when SetInfo
// returns.
func (l *lease) SetInfo(msg string) error {
	if err := l.check(); err != nil {
		return err
	}
	l.mu.Lock()
	l.record.Info = msg
	l.mu.Unlock()
	select {
	case l.nudge <- struct{}{}:
	default:
	}
	return nil
}

// releaseTime is how long giving a lock back may take.
const releaseTime = 20 * time.Second

// Release removes the lock object, if it still belongs to this lease.
func (l *lease) Release() error {
	l.mu.Lock()
	if l.released {
		l.mu.Unlock()
		return errors.New("release lock: it is released")
	}
	l.released = true
	l.mu.Unlock()
	close(l.quit)
	<-l.done
	l.store.lease = nil
	if l.lost != nil {
		return nil // it is somebody else's
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	err := l.store.remove(ctx, l.store.layout.Lock, l.version)
	if errors.Is(err, ErrConflict) {
		// Either a renewal whose answer was lost, or a broken lock.
		if version, err2 := l.inspect(ctx); err2 == nil {
			err = l.store.remove(ctx, l.store.layout.Lock, version)
		} else if l.lost != nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("release lock: %w; it ends by itself after %s", err, l.store.timing.Lease)
	}
	return nil
}
