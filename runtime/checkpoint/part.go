package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"slices"
)

// Part describes one file or object of a checkpoint: a span of the flat vector
// of parameters, then the same span of each of the optimizer's slots, as
// little-endian float32.
type Part struct {
	Name    string `json:"name"`
	From    int    `json:"from"` // the span [From, To) of the vector
	To      int    `json:"to"`
	Vectors int    `json:"vectors"` // 1 + slots
	SHA256  string `json:"sha256"`
}

// Bytes is the part's length.
func (p Part) Bytes() int64 { return 4 * int64(p.To-p.From) * int64(p.Vectors) }

// chunk is how many values are read or written at a time.
const chunk = 64 << 10

// Sum makes the hash of a part (Part.SHA256) from its values, in order.
type Sum struct {
	hash hash.Hash
	text []byte
}

// NewSum begins with no values.
func NewSum() *Sum { return &Sum{hash: sha256.New()} }

// Add adds values.
func (s *Sum) Add(values []float32) {
	for piece := range slices.Chunk(values, chunk) {
		s.hash.Write(s.bytes(piece)) // never fails
	}
}

// bytes are values as they lie in a part, valid until the next call.
func (s *Sum) bytes(values []float32) []byte {
	s.text = s.text[:0]
	for _, v := range values {
		s.text = binary.LittleEndian.AppendUint32(s.text, math.Float32bits(v))
	}
	return s.text
}

func (s *Sum) String() string { return hex.EncodeToString(s.hash.Sum(nil)) }

// Writer takes a part's values, in order, and makes it durable with Close.
type Writer struct {
	out object
	sum *Sum
}

// Create begins a part of a checkpoint. Nothing of it counts until the
// manifest that names it is written.
func (p *Place) Create(ctx context.Context, checkpoint, part string) (*Writer, error) {
	if err := valid(checkpoint, part); err != nil {
		return nil, fmt.Errorf("write checkpoint: %w", err)
	}
	out, err := p.put(ctx, checkpoint+"/"+part)
	if err != nil {
		return nil, fmt.Errorf("write checkpoint: %w", err)
	}
	return &Writer{out, NewSum()}, nil
}

// Write adds values.
func (w *Writer) Write(values []float32) error {
	for piece := range slices.Chunk(values, chunk) {
		text := w.sum.bytes(piece)
		w.sum.hash.Write(text) // never fails
		if _, err := w.out.Write(text); err != nil {
			return fmt.Errorf("write checkpoint: %w", err)
		}
	}
	return nil
}

// Close makes the part durable and returns its hash, as Part.SHA256 has it.
func (w *Writer) Close() (string, error) {
	if err := w.out.commit(); err != nil {
		return "", fmt.Errorf("write checkpoint: %w", err)
	}
	return w.sum.String(), nil
}

// Abort gives the part up. After Close it has no effect.
func (w *Writer) Abort() { w.out.abort() }

// Save writes vectors, the span [from, from+len(vectors[0])) of each, as a part
// of a checkpoint.
func (p *Place) Save(ctx context.Context, checkpoint, part string, from int, vectors [][]float32) (Part, error) {
	w, err := p.Create(ctx, checkpoint, part)
	if err != nil {
		return Part{}, err
	}
	defer w.Abort()
	for _, v := range vectors {
		if err := w.Write(v); err != nil {
			return Part{}, err
		}
	}
	hash, err := w.Close()
	return Part{Name: part, From: from, To: from + len(vectors[0]), Vectors: len(vectors), SHA256: hash}, err
}

// ErrDamaged means that a checkpoint is not what its manifest says.
var ErrDamaged = errors.New("damaged")

// Unusable reports whether an error is about the checkpoint itself: it is
// damaged or incomplete, and asking again would not help. Other errors are
// about the place, which may be reached another time.
func Unusable(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) }

// Read passes on what a part holds of the span [from, to) of the first vectors,
// piece by piece: values begin at element offset of the span and are valid
// during the call. What was passed on counts only once Read has returned
// without an error: the part's hash is known at its end. It returns how many
// elements of the span the part holds.
func (p *Place) Read(ctx context.Context, checkpoint string, part Part, from, to, vectors int, take func(vector, offset int, values []float32) error) (int, error) {
	a, b := max(from, part.From), min(to, part.To)
	if a >= b {
		return 0, nil
	}
	fail := func(err error) (int, error) {
		return 0, fmt.Errorf("load checkpoint %s: %s: %w", checkpoint, part.Name, err)
	}
	if err := valid(checkpoint, part.Name); err != nil {
		return fail(err)
	}
	if part.Vectors < vectors {
		return fail(fmt.Errorf("%w: it has %d vectors, the optimizer needs %d", ErrDamaged, part.Vectors, vectors))
	}
	in, size, err := p.open(ctx, checkpoint+"/"+part.Name)
	if err != nil {
		return fail(err)
	}
	defer in.Close()
	if size != part.Bytes() {
		return fail(fmt.Errorf("%w: it has %d bytes, not %d", ErrDamaged, size, part.Bytes()))
	}
	sum := sha256.New()
	source := io.TeeReader(in, sum)
	length := part.To - part.From
	text, values := make([]byte, 4*min(chunk, length)), make([]float32, min(chunk, length))
	for vector := range part.Vectors {
		for at := part.From; at < part.To; {
			n := min(len(values), part.To-at)
			if _, err := io.ReadFull(source, text[:4*n]); err != nil {
				return fail(err)
			}
			if first, last := max(at, a), min(at+n, b); vector < vectors && first < last {
				for i := range last - first {
					values[i] = math.Float32frombits(binary.LittleEndian.Uint32(text[4*(first-at+i):]))
				}
				if err := take(vector, first-from, values[:last-first]); err != nil {
					return 0, err
				}
			}
			at += n
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != part.SHA256 {
		return fail(fmt.Errorf("%w: its hash is %s, not %s", ErrDamaged, got, part.SHA256))
	}
	return b - a, nil
}

// Load copies the span [from, to) out of a checkpoint's parts into vectors,
// which have that length. After an error their content is undefined.
func (p *Place) Load(ctx context.Context, checkpoint string, parts []Part, from, to int, vectors [][]float32) error {
	covered := 0
	for _, part := range parts {
		n, err := p.Read(ctx, checkpoint, part, from, to, len(vectors), func(vector, offset int, values []float32) error {
			copy(vectors[vector][offset:], values)
			return nil
		})
		if err != nil {
			return err
		}
		covered += n
	}
	return Covers(checkpoint, covered, to-from)
}

// Covers reports a checkpoint whose parts do not make up a span of n values.
func Covers(checkpoint string, covered, n int) error {
	if covered != n {
		return fmt.Errorf("load checkpoint %s: %w: its parts cover %d of %d values", checkpoint, ErrDamaged, covered, n)
	}
	return nil
}
