package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/stokehq/stoke/plan/state"
)

// record is what a lock object holds: Terraform's members, and ours.
type record struct {
	state.LockInfo
	Lease *term `json:"Lease,omitempty"`
}

// term is how long a lock is good for.
type term struct {
	Seconds int       // after Renewed
	Renewed time.Time // by the holder's clock
	Process process   // that holds it
}

func (r *record) json() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and times always encode
	}
	return b
}

// sighting is when a lock object was first seen as it is.
type sighting struct {
	version string
	at      time.Time
}

// Lock creates the lock object, or takes over one whose holder is dead: a
// process of this machine that has ended, or any that has not renewed its lease
// for its stated time, as measured by this process, so that other clocks do not
// matter. A lock of Terraform is not a lease and is never taken over.
func (s *Store) Lock(ctx context.Context, info state.LockInfo) (state.Lock, error) {
	if s.layout.Lock == "" {
		return unlocked{}, nil
	}
	if s.lease != nil {
		return nil, errors.New("lock state: this store holds the lock already")
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
	info.Path = s.bucket.Name(s.layout.Snapshot)
	mine := &record{LockInfo: info, Lease: &term{Seconds: int(s.timing.Lease / time.Second), Process: thisProcess()}}
	for range 3 {
		start := s.now()
		mine.Lease.Renewed = start.UTC()
		version, err := s.put(ctx, s.layout.Lock, mine.json(), "")
		if err == nil {
			return s.hold(mine, version, start), nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, err
		}
		data, version, err := s.get(ctx, s.layout.Lock)
		if err != nil {
			return nil, err
		}
		if version == "" {
			continue // released just now
		}
		locked, dead := s.judge(data, version)
		if !dead {
			return nil, locked
		}
		start = s.now()
		mine.Lease.Renewed = start.UTC()
		if version, err = s.put(ctx, s.layout.Lock, mine.json(), version); err == nil {
			return s.hold(mine, version, start), nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, err
		}
	}
	return nil, &state.LockedError{Path: info.Path}
}

// judge reports whether the holder of a lock is dead.
func (s *Store) judge(data []byte, version string) (*state.LockedError, bool) {
	locked := &state.LockedError{Path: s.bucket.Name(s.layout.Snapshot)}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return locked, false // somebody else's; people have to look
	}
	locked.Holder = r.LockInfo
	if r.Lease == nil || r.Lease.Seconds <= 0 {
		return locked, false
	}
	locked.Advice = fmt.Sprintf("Its lock is a lease: when it has not been renewed for %d seconds it is taken over.", r.Lease.Seconds)
	if r.Lease.Process.hasEnded() {
		return nil, true
	}
	length := time.Duration(r.Lease.Seconds) * time.Second
	if s.seen.version != version {
		s.seen = sighting{version, s.now()}
	}
	watched := s.now().Sub(s.seen.at)
	if watched >= length {
		return nil, true
	}
	if s.now().After(r.Lease.Renewed.Add(length)) { // by two clocks that may differ
		locked.Doubt = length - watched
	}
	return locked, false
}

// unlocked is what Lock returns where locks are turned off.
type unlocked struct{}

// SetInfo does nothing.
func (unlocked) SetInfo(string) error { return nil }

// Release does nothing.
func (unlocked) Release() error { return nil }

// ForceUnlock removes the lock object, if its ID is the one given.
func (s *Store) ForceUnlock(ctx context.Context, id string) error {
	path := s.bucket.Name(s.layout.Snapshot)
	if s.layout.Lock == "" {
		return &state.NotLockedError{Path: path}
	}
	data, version, err := s.get(ctx, s.layout.Lock)
	if err != nil {
		return err
	}
	if version == "" {
		return &state.NotLockedError{Path: path}
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		r = record{}
	}
	// Terraform calls a lock in a bucket of Google's by its generation.
	if r.ID != id && version != id {
		return &state.LockedError{Path: path, Holder: r.LockInfo}
	}
	err = s.remove(ctx, s.layout.Lock, version)
	if errors.Is(err, ErrConflict) {
		return fmt.Errorf("the lock was renewed at this moment, so its holder is alive: %w", err)
	}
	return err
}
