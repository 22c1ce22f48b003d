package ledger

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/durable"
)

// Record is one committed update: the records at positions [Start, End) of an
// epoch's order.
type Record struct {
	Step    int64 // updates committed, this one included
	Term    int64 // in which it was committed
	Epoch   int
	Start   int64
	End     int64
	Skipped bool // its gradients were not finite: the parameters stayed
}

// recordBytes is the size of a record in a file. Step and term follow from the
// file's name and the record's place in it; its checksum covers both.
const recordBytes = 24

// ErrUnreadable is about records that a disk has lost or changed.
var ErrUnreadable = errors.New("the ledger cannot be read")

// Log is the account of all committed updates on disk: a folder with a file, a
// segment, for each term that an update was committed in. A segment begins behind
// the step that its term went on from, so that later records of earlier terms are
// void, and what a coordinator of an earlier term still writes is, too. Records
// have one size: the last one is found without those before it.
type Log struct {
	dir string

	mu       sync.Mutex
	segments []segment // by term
	file     *os.File  // of the last segment; nil: it is not written to
	end      int64     // step of the last record
	dirty    bool      // something is not durable yet
}

// segment is the file of one term: records of the steps behind from.
type segment struct{ term, from int64 }

func (s segment) name() string { return fmt.Sprintf("term-%d-from-%d", s.term, s.from) }

// OpenLog finds the segments in a folder, which need not exist. It reads no
// record.
func OpenLog(dir string) (*Log, error) {
	l := &Log{dir: dir}
	return l, l.Refresh()
}

// Refresh finds the segments and the last record again, where this process has
// begun no term: the coordinator before it may have written until a moment ago.
func (l *Log) Refresh() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return nil
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open ledger: %w", err)
	}
	l.segments = nil
	for _, e := range entries {
		var s segment
		if _, err := fmt.Sscanf(e.Name(), "term-%d-from-%d", &s.term, &s.from); err == nil && s.name() == e.Name() {
			l.segments = append(l.segments, s)
		}
	}
	slices.SortFunc(l.segments, func(a, b segment) int { return cmp.Compare(a.term, b.term) })
	if n := len(l.segments); n > 0 {
		last := l.segments[n-1]
		info, err := os.Stat(filepath.Join(l.dir, last.name()))
		if err != nil {
			return fmt.Errorf("open ledger: %w", err)
		}
		l.end = last.from + info.Size()/recordBytes
	}
	return nil
}

// End returns the step of the last record; ok is false for a ledger without a
// segment.
func (l *Log) End() (step int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end, len(l.segments) > 0
}

// Terms calls give with each term and the step that it went on from, in order.
func (l *Log) Terms(give func(term, from int64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		give(s.term, s.from)
	}
}

// Heads returns the terms that may have made the last record's update: the last
// one, and earlier ones as long as no later term has added a record.
func (l *Log) Heads() (terms []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range slices.Backward(l.segments) {
		terms = append(terms, s.term)
		if s.from < l.end {
			break
		}
	}
	return terms
}

// Begin begins the segment of a term whose first update follows a step. It is
// durable when Begin returns.
func (l *Log) Begin(term, from int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := segment{term, from}
	err := l.close()
	if err == nil {
		err = os.MkdirAll(l.dir, 0o700)
	}
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(filepath.Join(l.dir, s.name()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err == nil {
		err = errors.Join(durable.SyncDir(l.dir), durable.SyncDir(filepath.Dir(l.dir)))
	}
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	l.file, l.end, l.segments = file, from, append(l.segments, s)
	return nil
}

// Add writes the record of the next step in the segment's term.
func (l *Log) Add(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return errors.New("write ledger: no term has begun")
	}
	s := l.segments[len(l.segments)-1]
	b := r.encode(s.term, l.end+1)
	if _, err := l.file.WriteAt(b[:], (l.end-s.from)*recordBytes); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	l.end++
	l.dirty = true
	return nil
}

// Sync makes all records durable. It may run next to Add.
func (l *Log) Sync() error {
	l.mu.Lock()
	file, dirty := l.file, l.dirty
	l.dirty = false
	l.mu.Unlock()
	if !dirty {
		return nil
	}
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) { // a closed one was made durable before
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

// Close makes all records durable and closes the last segment.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.close()
}

func (l *Log) close() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Sync(), l.file.Close())
	l.file, l.dirty = nil, false
	return err
}

// Records yields the records of the steps from+1 … to that are not void. It ends
// with ErrUnreadable where one is damaged or missing.
func (l *Log) Records(from, to int64) iter.Seq2[Record, error] {
	l.mu.Lock()
	segments := slices.Clone(l.segments)
	l.mu.Unlock()
	return func(yield func(Record, error) bool) {
		for at := from; at < to; {
			s, until := covering(segments, at, to)
			if s == nil {
				yield(Record{}, fmt.Errorf("%w: no term has step %d", ErrUnreadable, at+1))
				return
			}
			if !l.readSegment(*s, at, until, yield) {
				return
			}
			at = until
		}
	}
}

// covering returns the segment that has step at+1, and the last step up to `to`
// that it has and no later term went on from before.
func covering(segments []segment, at, to int64) (*segment, int64) {
	for _, s := range slices.Backward(segments) {
		if s.from <= at {
			return &s, to
		}
		to = min(to, s.from)
	}
	return nil, 0
}

// readSegment yields the records of the steps from+1 … to of one segment; false
// ends the reading.
func (l *Log) readSegment(s segment, from, to int64, yield func(Record, error) bool) bool {
	file, err := os.Open(filepath.Join(l.dir, s.name()))
	if err != nil {
		yield(Record{}, fmt.Errorf("%w: %w", ErrUnreadable, err))
		return false
	}
	defer file.Close() //nolint:errcheck // it is only read
	size := (to - from) * recordBytes
	r := bufio.NewReaderSize(io.NewSectionReader(file, (from-s.from)*recordBytes, size), int(min(size, 64<<10)))
	var b [recordBytes]byte
	for step := from + 1; step <= to; step++ {
		_, err := io.ReadFull(r, b[:])
		record, ok := decode(b[:], s.term, step)
		if err != nil || !ok {
			yield(Record{}, fmt.Errorf("%w: step %d of term %d is damaged or missing", ErrUnreadable, step, s.term))
			return false
		}
		if !yield(record, nil) {
			return false
		}
	}
	return true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const skipped = 1 // a flag of a record

// encode lays a record out: start, number of records, epoch, flags, checksum.
func (r Record) encode(term, step int64) (b [recordBytes]byte) {
	binary.LittleEndian.PutUint64(b[0:], uint64(r.Start))
	binary.LittleEndian.PutUint32(b[8:], uint32(r.End-r.Start))
	binary.LittleEndian.PutUint32(b[12:], uint32(r.Epoch))
	if r.Skipped {
		b[16] = skipped
	}
	binary.LittleEndian.PutUint32(b[20:], sumOf(b[:20], term, step))
	return b
}

// decode is the reverse of encode; false: the checksum is wrong.
func decode(b []byte, term, step int64) (Record, bool) {
	if sumOf(b[:20], term, step) != binary.LittleEndian.Uint32(b[20:]) {
		return Record{}, false
	}
	start := int64(binary.LittleEndian.Uint64(b))
	return Record{
		Step: step, Term: term, Epoch: int(binary.LittleEndian.Uint32(b[12:])),
		Start: start, End: start + int64(binary.LittleEndian.Uint32(b[8:])), Skipped: b[16]&skipped != 0,
	}, true
}

// sumOf is the checksum of a record's content, its term and its step.
func sumOf(content []byte, term, step int64) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], uint64(term))
	binary.LittleEndian.PutUint64(place[8:], uint64(step))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, content)
}
