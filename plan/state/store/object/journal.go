package object

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/plan/state"
)

// atOnce is how many segments are read or removed at the same time.
const atOnce = 16

// journal is what a Store knows of the journal's segments; records are
// dropped once they were handed out.
type journal struct {
	id       string // "": no journal, or not read yet
	segments []segment
}

func (j *journal) size() int64 {
	if len(j.segments) == 0 {
		return 0
	}
	return j.segments[len(j.segments)-1].end()
}

// ReadJournal reads all segments. Under a lock it then closes the journal's end
// against former holders of the lock: their later writes fail.
func (s *Store) ReadJournal(ctx context.Context) ([]byte, error) {
	for range 10 {
		log, settled, err := s.readJournal(ctx)
		if err != nil {
			return nil, err
		}
		if !settled {
			continue
		}
		if s.lease == nil {
			return log, nil
		}
		if log == nil {
			s.sweep(ctx)
			return nil, nil
		}
		err = s.add(ctx, nil)
		if err == nil {
			return log, nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("read journal: %s keeps changing", s.bucket.Name(s.layout.Journal))
}

// readJournal reads all segments; settled is false if another process removed
// or replaced them during the read.
func (s *Store) readJournal(ctx context.Context) (log []byte, settled bool, err error) {
	s.journal = journal{}
	first, ok, err := s.segment(ctx, "", 0)
	if err != nil || !ok {
		return nil, err == nil, err
	}
	keys, err := s.list(ctx)
	if err != nil {
		return nil, false, err
	}
	numbers := segmentNumbers(first.journal, s.layout.Journal, keys)
	segments := make([]segment, len(numbers)+1)
	segments[0] = first
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	gone := make([]bool, len(numbers))
	for i, n := range numbers {
		if n != i+1 {
			gone[i] = true
			break
		}
		group.Go(func() error {
			g, ok, err := s.segment(inner, first.journal, n)
			segments[i+1], gone[i] = g, !ok
			return err
		})
	}
	err = group.Wait()
	if again, ok, err2 := s.segment(ctx, "", 0); err2 == nil && (!ok || again.version != first.version) {
		return nil, false, nil // it was dropped while it was read
	}
	if err != nil {
		return nil, false, err
	}
	log, err = s.join(segments, gone)
	if err != nil {
		return nil, false, err
	}
	s.journal = journal{id: first.journal, segments: segments}
	return log, true, nil
}

// join puts the records together, and checks that they are whole.
func (s *Store) join(segments []segment, gone []bool) ([]byte, error) {
	var log []byte
	for i := range segments {
		g := &segments[i]
		if i > 0 && gone[i-1] {
			return nil, s.corrupt(g.journal, i, "it is not there, and later ones are")
		}
		if g.offset != int64(len(log)) {
			return nil, s.corrupt(g.journal, i, fmt.Sprintf("it begins at byte %d of the journal, and the ones before end at %d", g.offset, len(log)))
		}
		log = append(log, g.records...)
		segments[i] = g.bare()
	}
	if log == nil {
		log = []byte{}
	}
	return log, nil
}

// bare is a segment without its records, which keeps their length.
func (g *segment) bare() segment {
	b := *g
	b.length, b.records = len(g.records), nil
	return b
}

func (s *Store) corrupt(journal string, number int, reason string) error {
	return &state.CorruptError{Path: s.bucket.Name(s.layout.Journal + segmentName(journal, number)), Reason: reason}
}

// segment reads one segment; ok is false where it is not there.
func (s *Store) segment(ctx context.Context, journal string, number int) (g segment, ok bool, err error) {
	data, version, err := s.get(ctx, s.layout.Journal+segmentName(journal, number))
	if err != nil || version == "" {
		return segment{}, false, err
	}
	g, reason := decodeSegment(data, version)
	if reason == "" && (g.number != number || number > 0 && g.journal != journal) {
		reason = "it is another segment than its name says"
	}
	if reason != "" {
		return segment{}, false, s.corrupt(journal, number, reason)
	}
	return g, true, nil
}

func (s *Store) list(ctx context.Context) ([]string, error) {
	limit, cancel := limited(ctx, 0)
	defer cancel()
	keys, err := s.bucket.List(limit, s.layout.Journal, false)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.bucket.Name(s.layout.Journal), err)
	}
	return keys, nil
}

// Append writes records into a segment of their own. durable makes no
// difference: what a service has accepted is safe.
func (s *Store) Append(ctx context.Context, at int64, records []byte, _ bool) error {
	if at == 0 {
		return s.begin(ctx, records)
	}
	if size := s.journal.size(); at > size {
		return fmt.Errorf("append to %s: it is %d bytes long, and was %d when it was read", s.bucket.Name(s.layout.Journal), size, at)
	} else if at < size {
		return s.replaceTail(ctx, at, records)
	}
	if len(records) == 0 {
		return nil
	}
	return s.appended(s.add(ctx, records))
}

// appended puts a conflict in words.
func (s *Store) appended(err error) error {
	if errors.Is(err, ErrConflict) {
		if lost := s.checkLock(); lost != nil {
			return lost
		}
		return fmt.Errorf("append to journal: %w", &state.ConflictError{Path: s.bucket.Name(s.layout.Journal)})
	}
	return err
}

// begin makes a journal; it must not exist, or be empty.
func (s *Store) begin(ctx context.Context, records []byte) error {
	if s.journal.id != "" && s.journal.size() > 0 {
		return fmt.Errorf("begin %s: there is a journal already", s.bucket.Name(s.layout.Journal))
	}
	s.journal = journal{}
	first := segment{journal: uuid.NewString(), writer: s.writer, records: records}
	version, err := s.place(ctx, &first)
	if err != nil {
		return s.appended(err)
	}
	first.version = version
	s.journal = journal{id: first.journal, segments: []segment{first.bare()}}
	return nil
}

// add writes a segment behind all others.
func (s *Store) add(ctx context.Context, records []byte) error {
	g := segment{journal: s.journal.id, number: len(s.journal.segments), offset: s.journal.size(), writer: s.writer, records: records}
	version, err := s.place(ctx, &g)
	if err != nil {
		return err
	}
	g.version = version
	s.journal.segments = append(s.journal.segments, g.bare())
	return nil
}

// place creates a segment, or replaces a segment that this store wrote without
// learning of the success.
func (s *Store) place(ctx context.Context, g *segment) (version string, err error) {
	key := s.layout.Journal + segmentName(g.journal, g.number)
	version, err = s.put(ctx, key, g.encode(), "")
	if !errors.Is(err, ErrConflict) {
		return version, err
	}
	there, ok, err := s.segment(ctx, g.journal, g.number)
	if err != nil {
		return "", err
	}
	if !ok || there.writer != s.writer && (g.number > 0 || len(there.records) > 0) {
		return "", ErrConflict
	}
	return s.put(ctx, key, g.encode(), there.version)
}

// replaceTail takes off what follows at, from its end, and writes records in its
// place.
func (s *Store) replaceTail(ctx context.Context, at int64, records []byte) error {
	for len(s.journal.segments) > 1 {
		last := s.journal.segments[len(s.journal.segments)-1]
		if last.offset < at {
			break
		}
		key := s.layout.Journal + segmentName(s.journal.id, last.number)
		if err := s.remove(ctx, key, last.version); err != nil {
			return s.appended(err)
		}
		s.journal.segments = s.journal.segments[:len(s.journal.segments)-1]
	}
	last := &s.journal.segments[len(s.journal.segments)-1]
	if last.end() > at {
		whole, ok, err := s.segment(ctx, s.journal.id, last.number)
		if err != nil {
			return err
		}
		if !ok || whole.version != last.version {
			return s.appended(ErrConflict)
		}
		whole.records, whole.writer = whole.records[:at-last.offset], s.writer
		version, err := s.put(ctx, s.layout.Journal+segmentName(s.journal.id, last.number), whole.encode(), last.version)
		if err != nil {
			return s.appended(err)
		}
		whole.version = version
		*last = whole.bare()
	}
	if len(records) == 0 {
		return nil
	}
	return s.appended(s.add(ctx, records))
}

// DropJournal removes the first segment, which removes the journal, and then
// all others, also of earlier journals.
func (s *Store) DropJournal(ctx context.Context) error {
	if err := s.checkLock(); err != nil {
		return err
	}
	if err := s.remove(ctx, s.layout.Journal+firstName, ""); err != nil {
		return err
	}
	s.journal = journal{}
	s.sweep(ctx)
	return nil
}

// sweep removes the segments of journals whose first one is gone. They are not
// used, so a failed removal is left to the next run.
func (s *Store) sweep(ctx context.Context) {
	keys, err := s.list(ctx)
	if err != nil || slices.Contains(keys, s.layout.Journal+firstName) { // somebody has begun one
		return
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, key := range keys {
		group.Go(func() error { return s.remove(inner, key, "") })
	}
	_ = group.Wait()
}
