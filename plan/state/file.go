package state

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/stokehq/stoke/plan/seal"
)

// File is a snapshot and journal as they were read. It belongs to one
// goroutine; its State and Journal may be used by many.
type File struct {
	store   Store
	version string // of the snapshot, as the store has it
	snap    *snapshot
	fresh   bool // without a snapshot before this journal, or now

	core    *core
	at      uint64 // sequence number of the journal's last record
	open    []openIntent
	size    int64 // of the journal's whole records
	journal standing
	current *Journal // the journal that is open for writing
	notes   []string
}

// standing is the relation of the journal to the snapshot.
type standing uint8

const (
	journalNone  standing = iota // there is none
	journalStale                 // the snapshot has all of it; it is removed
	journalLive                  // it continues the snapshot
)

// Open reads snapshot and journal. Where neither exists the state is empty
// and has a new lineage. Errors that say what is wrong: *CorruptError,
// *NewerVersionError, *OlderVersionError. Open takes no lock and changes
// nothing; it may run while another process writes.
func Open(ctx context.Context, s Store) (*File, error) {
	// Without a lock the snapshot may be replaced between two reads.
	for range 10 {
		f, err := read(ctx, s)
		if err == nil {
			return f, nil
		}
		_, version, again := s.ReadSnapshot(ctx)
		if again != nil || f == nil || version == f.version {
			return nil, err
		}
	}
	name, _ := s.Names()
	return nil, fmt.Errorf("read state: %s keeps changing", name)
}

// read returns a File with at least its version, or nil, with an error.
func read(ctx context.Context, s Store) (*File, error) {
	data, version, err := s.ReadSnapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	f := &File{store: s, version: version, fresh: data == nil}
	log, err := s.ReadJournal(ctx)
	if err != nil {
		return f, fmt.Errorf("read journal: %w", err)
	}
	name, _ := s.Names()
	if data != nil {
		if f.snap, err = decode(name, data); err != nil {
			return f, err
		}
	}
	if err := f.reconcile(log); err != nil {
		return f, err
	}
	if f.snap == nil {
		f.snap = (&State{core: newCore(&snapshot{lineage: uuid.NewString()})}).encode(0)
	}
	if f.core == nil {
		f.core = newCore(f.snap)
	}
	return f, nil
}

// State is the state with everything that the journal holds.
func (f *File) State() *State { return &State{core: f.core, at: f.at} }

// Open lists the intents without a result, oldest first. The caller settles
// them by reading before it does anything else.
func (f *File) Open() []Intent { return intents(f.open) }

// StateForDisplay is State for display: where an update was interrupted, the values that
// it would have made sensitive are sensitive already.
func (f *File) StateForDisplay() *State {
	s := f.State()
	var changes []Change
	for _, in := range f.Open() {
		if o := s.Current(in.Address); in.Action == Update && o != nil && len(in.Sensitive) > 0 {
			changes = append(changes, Change{Address: in.Address, Object: o.WithMeta(func(m *Meta) {
				m.Sensitive = slices.Concat(m.Sensitive, in.Sensitive)
			})})
		}
	}
	if len(changes) == 0 {
		return s
	}
	return s.WithChanges(changes, nil)
}

// Unfolded reports whether a journal is left that an earlier run did not live
// to fold into the snapshot. Begin and Close do it, once its intents are
// settled.
func (f *File) Unfolded() bool { return f.journal != journalNone }

// Missing reports whether the state does not exist: neither a snapshot nor a
// journal with content.
func (f *File) Missing() bool { return f.version == "" && f.journal != journalLive }

// Notes returns what the user should know about the files, such as a torn last
// record that was dropped.
func (f *File) Notes() []string { return slices.Clone(f.notes) }

func (f *File) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// Begin opens the journal for writing, or continues an existing one. From here
// to Close the snapshot says version 5, so that Terraform refuses it. The store
// should be locked. The journal is written regardless of ctx's end. The error
// is a *SerialError where no snapshot can follow this one.
func (f *File) Begin(ctx context.Context) (*Journal, error) {
	if f.current != nil {
		return nil, fmt.Errorf("begin journal: it has begun")
	}
	ctx = context.WithoutCancel(ctx)
	if f.snap.serial == math.MaxUint64 { // Terraform continues with 0, which counts as older
		name, _ := f.store.Names()
		return nil, &SerialError{Path: name}
	}
	// The header is there before the snapshot says 5, so that a 5 without a
	// journal always means that the journal was lost.
	if f.journal == journalStale {
		if err := f.store.DropJournal(ctx); err != nil {
			return nil, fmt.Errorf("remove old journal: %w", err)
		}
		f.journal, f.size, f.at = journalNone, 0, 0
	}
	if f.journal == journalNone {
		h := header{journalFormat, f.snap.lineage, f.snap.serial, f.snap.sum(), f.fresh}
		b := appendFrame(nil, 0, kindHeader, h.encode())
		if err := f.store.Append(ctx, 0, b, true); err != nil {
			return nil, fmt.Errorf("begin journal: %w", err)
		}
		f.journal, f.size = journalLive, int64(len(b))
	}
	if f.snap.version != versionOpen || f.snap.key == nil || f.version == "" {
		key := f.snap.key
		if key == nil {
			key = seal.Random()
		}
		open := f.snap.withKey(key)
		version, err := f.store.WriteSnapshot(ctx, open.raw, f.version)
		if err != nil {
			return nil, fmt.Errorf("begin journal: %w", err)
		}
		f.version, f.snap = version, open
	}
	f.current = newJournal(ctx, f)
	return f.current, nil
}

// openIntent is an intent that has no result, and the record that holds it.
type openIntent struct {
	seq uint64
	Intent
}

func intents(list []openIntent) []Intent {
	out := make([]Intent, len(list))
	for i := range list {
		out[i] = list[i].Intent
	}
	return out
}
