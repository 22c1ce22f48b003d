package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/stokehq/stoke/plan/state"
)

// Store keeps a state in a Bucket. It is a state.Store.
type Store struct {
	bucket Bucket
	layout Layout
	writer string // names this store in what it writes
	timing Timing
	now    func() time.Time

	journal journal
	lease   *lease // nil: no lock is held
	seen    sighting
}

// Timing is how leases are kept. Tests have other ones.
type Timing struct {
	Lease time.Duration // other processes may take a lock that was not renewed for so long
	Renew time.Duration // between renewals
}

// DefaultTiming lets three renewals fail before a lease is lost.
var DefaultTiming = Timing{Lease: 30 * time.Second, Renew: 8 * time.Second}

// New is a store of one state. Nothing is read or made.
func New(b Bucket, l Layout, t Timing) *Store {
	return &Store{bucket: b, layout: l, timing: t, now: time.Now, writer: uuid.NewString()}
}

// Names returns the names of the snapshot and of the journal's segments.
func (s *Store) Names() (snapshot, journal string) {
	return s.bucket.Name(s.layout.Snapshot), s.bucket.Name(s.layout.Journal)
}

// ReadSnapshot reads the snapshot.
func (s *Store) ReadSnapshot(ctx context.Context) ([]byte, string, error) {
	return s.get(ctx, s.layout.Snapshot)
}

// WriteSnapshot replaces the snapshot if its version is still ifVersion.
func (s *Store) WriteSnapshot(ctx context.Context, data []byte, ifVersion string) (string, error) {
	version, err := s.put(ctx, s.layout.Snapshot, data, ifVersion)
	if errors.Is(err, ErrConflict) {
		if lost := s.checkLock(); lost != nil {
			return "", lost
		}
		return "", &state.ConflictError{Path: s.bucket.Name(s.layout.Snapshot)}
	}
	return version, err
}

// requestTime is how long one request may take before it counts as failed, in
// addition to the time for its bytes at slowest bytes per second.
const (
	requestTime = time.Minute
	slowest     = 100 << 10
)

func limited(ctx context.Context, size int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTime+time.Duration(size/slowest)*time.Second)
}

func (s *Store) get(ctx context.Context, key string) ([]byte, string, error) {
	ctx, cancel := limited(ctx, 64<<20) // its size is not known
	defer cancel()
	data, version, err := s.bucket.Get(ctx, key)
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", s.bucket.Name(key), err)
	}
	return data, version, nil
}

// put writes an object, unless the lock under which it is written has been
// lost. A conflict with a lost but successful write of the same content is not
// an error.
func (s *Store) put(ctx context.Context, key string, data []byte, ifVersion string) (string, error) {
	if err := s.checkLock(); err != nil {
		return "", err
	}
	limit, cancel := limited(ctx, len(data))
	defer cancel()
	version, err := s.bucket.Put(limit, key, data, ifVersion)
	if errors.Is(err, ErrConflict) {
		there, now, err2 := s.get(ctx, key)
		if err2 != nil || now == "" || !bytes.Equal(there, data) {
			return "", ErrConflict
		}
		version, err = now, nil
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", s.bucket.Name(key), err)
	}
	// A write that ended after the lease may be too late.
	return version, s.checkLock()
}

func (s *Store) remove(ctx context.Context, key, ifVersion string) error {
	limit, cancel := limited(ctx, 0)
	defer cancel()
	if err := s.bucket.Delete(limit, key, ifVersion); err != nil {
		return fmt.Errorf("remove %s: %w", s.bucket.Name(key), err)
	}
	return nil
}
