package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stokehq/stoke/runtime/durable"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// terms is the folder of claims: an empty file for each term, named by it. The
// coordinator that creates the file has claimed the term. The file is durable
// before a message is sent in the term.
type terms string

func termsOf(f run.Folder) terms { return terms(filepath.Join(string(f), "terms")) }

// claim takes a free term above least and all that were claimed.
func (t terms) claim(least int64) (int64, error) {
	if err := os.Mkdir(string(t), 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // never the run's folder, which may be gone
		return 0, fmt.Errorf("claim a term: %w", err)
	}
	highest, err := t.highest()
	if err != nil {
		return 0, err
	}
	for term := max(highest, least) + 1; ; term = max(term, highest) + 1 {
		file, err := os.OpenFile(t.file(term), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("claim a term: %w", err)
		}
		if err := errors.Join(file.Sync(), file.Close(), durable.SyncDir(string(t)), durable.SyncDir(filepath.Dir(string(t)))); err != nil {
			return 0, fmt.Errorf("claim term %d: %w", term, err)
		}
		// Under a higher term, this one may be an old one whose file was removed.
		if highest, err = t.highest(); err != nil {
			return 0, err
		}
		if highest == term {
			t.removeOldClaims()
			return term, nil
		}
	}
}

// removeOldClaims removes the claims below the highest two: another coordinator may be
// listing the last one.
func (t terms) removeOldClaims() {
	claimed, err := t.claimed()
	if err != nil {
		return // another time
	}
	slices.Sort(claimed)
	for i := 0; i+2 < len(claimed); i++ {
		os.Remove(t.file(claimed[i]))
	}
}

func (t terms) highest() (int64, error) {
	claimed, err := t.claimed()
	highest := int64(0)
	for _, c := range claimed {
		highest = max(highest, c)
	}
	return highest, err
}

func (t terms) file(term int64) string { return filepath.Join(string(t), strconv.FormatInt(term, 10)) }

func (t terms) claimed() ([]int64, error) {
	entries, err := os.ReadDir(string(t))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for claimed terms: %w", err)
	}
	var claimed []int64
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			claimed = append(claimed, n)
		}
	}
	return claimed, nil
}

// ErrSuperseded ends a coordinator that another one has followed.
var ErrSuperseded = errors.New("superseded")

// SupersededError is about a term that a higher one has followed.
type SupersededError struct{ Term, By int64 }

func (e SupersededError) Error() string {
	return fmt.Sprintf("%v: another coordinator speaks for the run: term %d has been followed by term %d", ErrSuperseded, e.Term, e.By)
}

func (e SupersededError) Unwrap() error { return ErrSuperseded }

// Superseded returns the error about a term that another one has followed.
func Superseded(term, by int64) error { return SupersededError{term, by} }

// PlaceError is about a remote place or its connection, not about its files: the
// place may answer later.
type PlaceError struct{ error }

// PlaceFailed returns the error as one about a place; nil stays nil.
func PlaceFailed(err error) error {
	if err == nil {
		return nil
	}
	return PlaceError{err}
}

func (e PlaceError) Unwrap() error { return e.error }

// Claims is a place outside of the coordinator's folder where the terms of runs
// are claimed.
type Claims interface {
	// Claimed returns the highest claimed term of a run; 0: there is none.
	Claimed(ctx context.Context, run string) (int64, error)
	// Claim claims a term; false: another coordinator has it.
	Claim(ctx context.Context, run string, term int64) (bool, error)
}

// termKeeper keeps the term that the coordinator speaks in.
type termKeeper struct {
	hash     string // of the spec
	folder   terms
	place    Claims     // nil: terms are claimed in the folder only
	claiming sync.Mutex // during a change of the term, for other goroutines that check it
	term     atomic.Int64
	inPlace  atomic.Int64 // term that was claimed in place
	floor    int64        // highest term found in place, and by the work
	used     bool         // a message of this term was sent: the next restore needs a new term
}

// Term returns the present term. Every goroutine may use it.
func (k *termKeeper) Term() int64 { return k.term.Load() }

// Hash returns the hash of the specification that the run began with.
func (k *termKeeper) Hash() string { return k.hash }

// UseTerm notes that a message of the present term was sent.
func (k *termKeeper) UseTerm() { k.used = true }

// RaiseTerm makes sure that the next term is above this one.
func (k *termKeeper) RaiseTerm(term int64) { k.floor = max(k.floor, term) }

// claimNext claims a term above all known ones.
func (k *termKeeper) claimNext() error {
	k.claiming.Lock()
	defer k.claiming.Unlock()
	term, err := k.folder.claim(max(k.Term(), k.floor))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	k.term.Store(term)
	k.used = false
	return nil
}

// checkCurrent returns ErrSuperseded once a higher term is claimed.
func (k *termKeeper) checkCurrent() error { return k.folder.check(k.Term()) }

// CheckOutside is checkCurrent for goroutines outside of the loop: the term may
// be changing.
func (k *termKeeper) CheckOutside() error {
	k.claiming.Lock()
	defer k.claiming.Unlock()
	return k.checkCurrent()
}

// CheckTerm returns ErrSuperseded once a term above this one is claimed in the
// coordinator's folder. Every goroutine may use it.
func (k *termKeeper) CheckTerm(term int64) error { return k.folder.check(term) }

// CheckPlace returns ErrSuperseded once a term above this one is claimed in
// Claims. Every goroutine may use it.
func (k *termKeeper) CheckPlace(ctx context.Context, term int64) error {
	if k.place == nil {
		return nil
	}
	highest, err := k.place.Claimed(ctx, k.hash)
	if err == nil && highest > term {
		err = Superseded(term, highest)
	}
	return err
}

// Begin claims the next term, for a restore. From then on, no coordinator of an earlier term can write to the files of this one.
func (s *Session) Begin() error {
	if err := s.checkCurrent(); err != nil && s.Term() > 0 {
		return err
	}
	if err := s.claimNext(); err != nil {
		return err
	}
	damaged, err := s.history.Renew(s.checkCurrent)
	switch {
	case errors.Is(err, ErrSuperseded):
		return err
	case err != nil:
		return Full(err)
	case damaged > 0:
		text := fmt.Sprintf("%d lines of the history could not be read: they are in metrics.jsonl.damaged-1 and later files", damaged)
		s.Log.Error(text)
		s.Note(spec.Event{Type: spec.EventDamage, Message: text})
	}
	return nil
}

// Renew begins a new term if a message of the present one was sent, and claims it
// in Claims too: a coordinator that has lost its folder finds the earlier terms
// there. A goroutine outside of the loop calls it, because the place may be slow.
func (s *Session) Renew(ctx context.Context) error {
	var err error
	done := s.Do(ctx, func() {
		if s.used {
			err = s.Begin()
		}
	})
	if !done {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return s.ClaimPlace(ctx)
}

// ClaimPlace claims the present term in Claims, or a higher one. A goroutine
// outside of the loop calls it.
func (s *Session) ClaimPlace(ctx context.Context) error {
	if s.place == nil {
		return nil
	}
	for s.inPlace.Load() != s.Term() {
		term := s.Term()
		highest, err := s.place.Claimed(ctx, s.hash)
		if err != nil {
			return PlaceError{err}
		}
		if highest < term {
			ok, err := s.place.Claim(ctx, s.hash, term)
			if err != nil {
				return PlaceError{err}
			}
			if ok {
				s.inPlace.Store(term)
			}
			continue
		}
		if !s.Do(ctx, func() { err = exceedTerm(s, highest) }) {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeHigherTerm takes a term above the present one, of which a member has told. A
// coordinator that has not claimed a term in Claims yet may have lost its
// folder, and with it the earlier terms: it begins a term above them. Otherwise
// another coordinator has followed this one.
func takeHigherTerm(s *Session, higher int64) error {
	if s.place == nil || s.inPlace.Load() > 0 {
		return Superseded(s.Term(), higher)
	}
	return exceedTerm(s, higher)
}

// exceedTerm begins a term above the given one, unless the present one is.
func exceedTerm(s *Session, term int64) error {
	if s.Term() > term {
		return nil
	}
	s.RaiseTerm(term)
	return s.Begin()
}

// check returns ErrSuperseded once a term above this one is claimed.
func (t terms) check(term int64) error {
	highest, err := t.highest()
	if err == nil && highest > term {
		err = Superseded(term, highest)
	}
	return err
}
