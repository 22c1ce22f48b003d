package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// File is an open file of tensors. Its methods may be called by several
// goroutines.
type File struct {
	Tensors  []Tensor          // in the order of their bytes
	Metadata map[string]string // nil: it has none

	in   io.ReaderAt
	data int64 // at which byte the tensors begin
}

// ErrFormat means that a file is not as the format wants it.
var ErrFormat = errors.New("not a safetensors file")

// Open reads and checks the header of a file of so many bytes. It reads no tensor.
func Open(in io.ReaderAt, size int64) (*File, error) {
	var first [8]byte
	if size < int64(len(first)) {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrFormat, size)
	}
	if _, err := in.ReadAt(first[:], 0); err != nil {
		return nil, fmt.Errorf("read the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(first[:])
	switch {
	case n > maxHeader:
		return nil, fmt.Errorf("%w: its header has %d bytes, more than %d", ErrFormat, n, maxHeader)
	case int64(n) > size-int64(len(first)):
		return nil, fmt.Errorf("%w: its header has %d bytes, more than the file", ErrFormat, n)
	}
	text := make([]byte, n)
	if _, err := in.ReadAt(text, int64(len(first))); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	f := &File{in: in, data: int64(len(first)) + int64(n)}
	var err error
	if f.Tensors, f.Metadata, err = parseHeader(text, size-f.data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return f, nil
}

// chunk is how many values are read or written at a time.
const chunk = 64 << 10

// Read passes on the values of a tensor of this file, in order and in pieces, which
// are valid during the call. Values of F64 are rounded.
func (f *File) Read(t Tensor, take func(values []float32) error) error {
	size, decode := int(sizes[t.Type]), decoderOf(t.Type)
	if decode == nil {
		return fmt.Errorf("tensor %q: values of type %s are not read: want F32, F16, BF16 or F64", t.Name, t.Type)
	}
	left := t.Len()
	text, values := make([]byte, size*min(left, chunk)), make([]float32, min(left, chunk))
	for at := f.data + t.from; left > 0; {
		n := min(left, chunk)
		if _, err := f.in.ReadAt(text[:n*size], at); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		for i := range n {
			values[i] = decode(text[i*size:])
		}
		if err := take(values[:n]); err != nil {
			return err
		}
		at, left = at+int64(n*size), left-n
	}
	return nil
}

// Reads reports whether Read reads values of a type.
func Reads(dtype string) bool { return decoderOf(dtype) != nil }

// decoderOf returns the function that reads one value of a type; nil: values of the
// type are not float32.
func decoderOf(name string) func(text []byte) float32 {
	switch name {
	case "F32":
		return func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case "F64":
		return func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }
	case "BF16":
		return func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) }
	case "F16":
		return func(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) }
	}
	return nil
}

// half returns the value of an IEEE 754 binary16.
func half(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, int(bits>>10&31), uint32(bits&1023)
	switch exponent {
	case 0: // zero, or below the normal numbers: fraction × 2⁻²⁴
		return math.Float32frombits(math.Float32bits(float32(fraction)*0x1p-24) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | uint32(exponent-15+127)<<23 | fraction<<13)
}
