package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
	"github.com/stokehq/stoke/plan/state"
)

// Lock takes the lock: an flock on the lock file, which the kernel gives back
// when this process ends however it ends, and on Linux a guard on the
// snapshot that Terraform sees. What a dead holder left in the lock file is
// overwritten. (flock is local to one machine; a state on a network file
// system that several machines use belongs into a remote store.)
func (s *Store) Lock(_ context.Context, info state.LockInfo) (state.Lock, error) {
	for range 100 {
		fl, err := s.tryLock()
		if err != nil || fl == nil {
			return nil, err
		}
		// The holder before removes the file when done: what was locked may no
		// longer be what has the name.
		mine, err := fl.Stat()
		there, err2 := os.Lstat(s.lock)
		if err != nil || err2 != nil || !os.SameFile(mine, there) {
			_ = fl.Unlock()
			continue
		}
		l, err := s.hold(fl, info)
		if err != nil {
			_ = fl.Unlock()
			return nil, err
		}
		return l, nil
	}
	return nil, s.locked()
}

func (s *Store) tryLock() (*flock.Flock, error) {
	if _, err := regular(s.lock); err != nil {
		return nil, fmt.Errorf("lock state: %w", err)
	}
	if _, err := regular(s.path); err != nil {
		return nil, fmt.Errorf("lock state: %w", err)
	}
	if err := s.makeFolder(s.lock); err != nil {
		return nil, fmt.Errorf("lock state: %w", err)
	}
	fl := flock.New(s.lock, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
	ok, err := fl.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock state: %w", err)
	}
	if !ok {
		return nil, s.locked()
	}
	return fl, nil
}

// hold fills in the lock file.
func (s *Store) hold(fl *flock.Flock, info state.LockInfo) (*lock, error) {
	g, err := newGuard(s.path)
	if errors.Is(err, errGuarded) {
		return nil, s.locked()
	} else if err != nil {
		return nil, fmt.Errorf("lock state: %w", err)
	}
	if info.ID == "" {
		info.ID = uuid.NewString()
	}
	if info.Who == "" {
		info.Who = state.CurrentUser()
	}
	if info.Created.IsZero() {
		info.Created = time.Now().UTC()
	}
	info.Path = s.path
	l := &lock{store: s, flock: fl, info: info}
	if err := l.write(); err != nil {
		g.release()
		return nil, err
	}
	s.guard = g
	s.removeLitter()
	return l, nil
}

// locked says who holds the lock, as far as the lock file tells.
func (s *Store) locked() error {
	e := &state.LockedError{Path: s.path, Advice: "A lock ends with the process that holds it."}
	// The holder may be writing it.
	for range 5 {
		b, _, err := readFile(s.lock)
		if err == nil && json.Unmarshal(b, &e.Holder) == nil {
			break
		}
		e.Holder = state.LockInfo{}
		time.Sleep(5 * time.Millisecond)
	}
	return e
}

// lock is a lock that is held.
type lock struct {
	store *Store
	flock *flock.Flock

	mu       sync.Mutex
	info     state.LockInfo
	released bool
}

// SetInfo changes the message in the lock file.
func (l *lock) SetInfo(msg string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return errors.New("set lock's message: the lock is released")
	}
	l.info.Info = msg
	return l.write()
}

// write fills in the lock file in place: it is the file itself that is locked.
func (l *lock) write() error {
	f, err := os.OpenFile(l.store.lock, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	b := l.info.JSON()
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Truncate(int64(len(b)))
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

// Release removes the lock file and gives the lock back.
func (l *lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return errors.New("release lock: it is released")
	}
	l.released = true
	l.store.guard.release()
	l.store.guard = nil
	err := os.Remove(l.store.lock) // while it is ours
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.flock.Unlock())
}
