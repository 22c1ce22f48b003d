package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/stokehq/stoke/runtime/spec"
)

// readAhead is how many bytes one read takes at most when records follow each
// other.
const readAhead = 1 << 20

// stored is one split in its file.
type stored struct {
	path    string
	file    io.ReaderAt
	open    *os.File // file, or the mapped one, where it is one
	mapped  *mapped  // file, where it is that; nil: it is not
	about   Info
	first   int64 // offset of record 0
	buffers sync.Pool
}

// Open opens one split of a prepared folder. It checks header, footer and
// length; each record is checked when it is read.
func Open(path string, split Split) (Source, error) {
	if split != Train && split != Test {
		return nil, fmt.Errorf("open dataset: unknown split %q", split)
	}
	return openFile(filepath.Join(path, string(split)+".rio"))
}

func openFile(name string) (*stored, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open dataset: %w", err)
	}
	status, err := f.Stat()
	if err == nil && !status.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	var s *stored
	if err == nil {
		s, err = readStored(f, status.Size())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open dataset %s: %w", name, err)
	}
	s.path, s.open = name, f
	if s.mapped = mapFile(f, status.Size()); s.mapped != nil {
		s.file = s.mapped
	}
	return s, nil
}

// readStored checks that header, records and footer make up exactly size
// bytes.
func readStored(f io.ReaderAt, size int64) (*stored, error) {
	if size < headBytes+4+footBytes {
		return nil, fmt.Errorf("it has %d bytes, too few for a dataset", size)
	}
	b := make([]byte, headBytes)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	text, err := parseHead(b)
	if err != nil {
		return nil, err
	}
	first := int64(headBytes + text + 4)
	if first+footBytes > size {
		return nil, fmt.Errorf("it has %d bytes, fewer than its header: it is truncated", size)
	}
	b = make([]byte, first)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	about, err := parseDescription(b)
	if err != nil {
		return nil, err
	}
	b = make([]byte, footBytes)
	if _, err := f.ReadAt(b, size-footBytes); err != nil {
		return nil, err
	}
	if about.Records, about.Hash, err = parseFoot(b); err != nil {
		return nil, err
	}
	if err := about.validate(); err != nil {
		return nil, err
	}
	record := int64(storedRecord(about))
	body := size - footBytes - first
	if body%record != 0 || body/record != about.Records {
		return nil, fmt.Errorf("its footer claims %d records of %d bytes, but it has %d bytes of records", about.Records, record, body)
	}
	s := &stored{file: f, about: about, first: first}
	s.buffers.New = func() any {
		b := make([]byte, max(readAhead/int(record), 1)*int(record))
		return &b
	}
	return s, nil
}

// Info implements Source.
func (s *stored) Info() Info { return s.about }

// Read implements Source. Numbers that follow each other are read together.
func (s *stored) Read(ctx context.Context, records []int64, features, labels []byte) error {
	size, label := s.about.FeatureBytes(), s.about.TargetBytes()
	if len(features) != len(records)*size || len(labels) != len(records)*label {
		return fmt.Errorf("read dataset %s: room for %d bytes of features and %d of labels, want %d and %d",
			s.path, len(features), len(labels), len(records)*size, len(records)*label)
	}
	buffer := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buffer)
	most := len(*buffer) / storedRecord(s.about)
	for done, loaded := 0, 0; done < len(records); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done >= loaded {
			loaded = s.load(records, done)
		}
		n := 1
		for n < most && done+n < len(records) && records[done+n] == records[done]+int64(n) {
			n++
		}
		if err := s.run(records[done], n, *buffer, features[done*size:], labels[done*label:]); err != nil {
			return fmt.Errorf("read dataset %s: %w", s.path, err)
		}
		done += n
	}
	return nil
}

// load loads the next records of a mapped file, from an index on, into the processor's caches. It
// returns the index of the first record that it has not loaded.
func (s *stored) load(records []int64, from int) (to int) {
	if s.mapped == nil {
		return len(records)
	}
	const room = 16 << 10 // bytes of the smallest cache that are used
	var places [32]int64
	record := storedRecord(s.about)
	n := min(len(records)-from, len(places), max(1, room/record))
	for i, number := range records[from : from+n] {
		places[i] = s.first + max(0, number)*int64(record)
	}
	s.mapped.load(places[:n], min(record, room))
	return from + n
}

// run reads n records from number on.
func (s *stored) run(number int64, n int, buffer, features, labels []byte) error {
	if number < 0 || number >= s.about.Records || int64(n) > s.about.Records-number {
		return fmt.Errorf("record %d of %d", number+int64(n)-1, s.about.Records)
	}
	record, label := storedRecord(s.about), s.about.TargetBytes()
	size := s.about.FeatureBytes()
	b := buffer[:n*record]
	if _, err := s.file.ReadAt(b, s.first+number*int64(record)); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file has become shorter since it was opened")
		}
		return fmt.Errorf("records %d to %d: %w", number, number+int64(n)-1, err)
	}
	for i := range n {
		r := b[i*record : (i+1)*record]
		if checksum(number+int64(i), r[:label+size]) != binary.LittleEndian.Uint32(r[label+size:]) {
			return fmt.Errorf("record %d fails its checksum: %w", number+int64(i), ErrDamaged)
		}
		copy(labels[i*label:], r[:label])
		copy(features[i*size:(i+1)*size], r[label:])
	}
	return nil
}

// Prefetch implements Source.
func (s *stored) Prefetch(start, end int64) {
	if start, end = max(0, start), min(end, s.about.Records); s.open != nil && start < end && (s.mapped == nil || !s.mapped.isCopied()) {
		record := int64(storedRecord(s.about))
		prefetch(s.open, s.first+start*record, (end-start)*record)
	}
}

// Close implements Source.
func (s *stored) Close() error {
	if s.open == nil {
		return nil
	}
	if s.mapped != nil {
		s.mapped.close()
	}
	return s.open.Close()
}

// storedStream reads a stored split again, as an origin.
type storedStream struct {
	source *stored
	about  Info
	next   int64
}

func openStored(_ context.Context, from spec.Origin) (opened, error) {
	train, err := openFile(filepath.Join(from.Path, "train.rio"))
	if err != nil {
		return opened{}, err
	}
	test, err := openFile(filepath.Join(from.Path, "test.rio"))
	if err != nil {
		train.Close()
		return opened{}, err
	}
	o := opened{train: newStoredStream(train, from.Train), test: newStoredStream(test, from.Test)}
	if a, b := describe(train.about), describe(test.about); string(a) != string(b) {
		o.close()
		return opened{}, fmt.Errorf("%s: its training records are %s, its test records %s", from.Path, a, b)
	}
	if m, err := ReadManifest(from.Path); err == nil && len(m.ClassNames) == train.about.Classes {
		o.classes = m.ClassNames
	}
	return o, nil
}

func newStoredStream(s *stored, most int64) *storedStream {
	about := s.about
	about.Records, about.Hash = limit(most, about.Records), ""
	return &storedStream{source: s, about: about}
}

func (s *storedStream) info() Info { return s.about }

func (s *storedStream) fill(ctx context.Context, features, labels []byte) error {
	numbers := make([]int64, len(labels)/s.about.TargetBytes())
	for i := range numbers {
		numbers[i] = s.next + int64(i)
	}
	s.next += int64(len(numbers))
	return s.source.Read(ctx, numbers, features, labels)
}

// finish has nothing to check: each record had its checksum.
func (s *storedStream) finish(context.Context) error { return nil }

func (s *storedStream) close() error { return s.source.Close() }
