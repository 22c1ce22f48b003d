package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/stokehq/stoke/plan/state"
)

// unlockTimeout is how long giving a lock back may take.
const unlockTimeout = time.Minute

// Lock asks the server for the lock. Without a lock address there is no lock,
// as in Terraform.
func (s *Store) Lock(ctx context.Context, info state.LockInfo) (state.Lock, error) {
	if info.ID == "" {
		info.ID = uuid.NewString()
	}
	if info.Who == "" {
		info.Who = state.CurrentUser()
	}
	if info.Created.IsZero() {
		info.Created = time.Now().UTC()
	}
	l := &lock{store: s, info: info}
	if s.client.config.lock == "" {
		return l, nil
	}
	r := request{method: s.client.config.lockMethod, address: s.client.config.lock, body: info.JSON(), what: "lock"}
	a, err := s.client.do(ctx, r)
	if err != nil {
		return nil, err
	}
	switch a.status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
	case http.StatusConflict, http.StatusLocked:
		e := &state.LockedError{Path: s.name}
		if json.Unmarshal(a.body, &e.Holder) != nil {
			e.Holder = state.LockInfo{}
		}
		if e.Holder.ID != info.ID { // else our first try has worked, and its answer was lost
			return nil, e
		}
	default:
		return nil, refusal(r, a)
	}
	s.held = l
	return l, nil
}

// lock is a lock that is held. The server knows no leases, so it is not
// renewed, and its message cannot be changed.
type lock struct {
	store    *Store
	info     state.LockInfo
	released bool
}

// SetInfo does nothing: the protocol cannot say it.
func (l *lock) SetInfo(string) error { return nil }

// Release gives the lock back.
func (l *lock) Release() error {
	if l.released {
		return errors.New("release lock: it is released")
	}
	l.released = true
	if l.store.held != l {
		return nil // there is no lock address
	}
	l.store.held = nil
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	if err := l.store.release(ctx, l.info); err != nil {
		return fmt.Errorf("%w; break it with \"stoke force-unlock %s\"", err, l.info.ID)
	}
	return nil
}

func (s *Store) release(ctx context.Context, info state.LockInfo) error {
	address := s.client.config.unlock
	if address == "" {
		return nil // as with Terraform, the server then has locks that end by themselves
	}
	r := request{method: s.client.config.unlockMethod, address: address, body: info.JSON(), what: "unlock"}
	a, err := s.client.do(ctx, r)
	if err != nil {
		return err
	}
	switch a.status {
	case http.StatusOK, http.StatusNoContent:
		return nil
	case http.StatusConflict, http.StatusLocked:
		e := &state.LockedError{Path: s.name}
		_ = json.Unmarshal(a.body, &e.Holder) // the server need not say
		return e
	}
	return refusal(r, a)
}

// ForceUnlock gives back the lock with an ID, whoever took it.
func (s *Store) ForceUnlock(ctx context.Context, id string) error {
	if s.client.config.unlock == "" {
		return errors.New("break lock: no unlock_address is configured")
	}
	return s.release(ctx, state.LockInfo{ID: id})
}
