package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Writer writes a file whose tensors are all float32.
type Writer struct {
	out   io.Writer
	left  int64 // values
	text  []byte
	bytes int64
}

// NewWriter writes the header of a file with these tensors, whose values follow in
// the same order. Of each, name and shape are given.
func NewWriter(out io.Writer, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	w := &Writer{out: out}
	header, err := w.header(tensors, metadata)
	if err != nil {
		return nil, fmt.Errorf("write safetensors: %w", err)
	}
	return w, w.write(header)
}

// header renders the header with its length, and counts the values.
func (w *Writer) header(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	text := bytes.NewBufferString("{")
	member := func(name string, value any) error {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if text.Len() > 1 {
			text.WriteByte(',')
		}
		fmt.Fprintf(text, "%s:%s", key, v)
		return nil
	}
	if metadata != nil {
		if err := member(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	kind := "F32"
	for _, t := range tensors {
		shape := make([]int64, len(t.Shape))
		for i, d := range t.Shape {
			shape[i] = int64(d)
		}
		from := 4 * w.left
		w.left += int64(t.Len())
		if err := member(t.Name, entry{Type: &kind, Shape: shape, Offsets: []int64{from, 4 * w.left}}); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	for text.Len()%8 != 0 { // so that the values lie at a multiple of 8
		text.WriteByte(' ')
	}
	if text.Len() > maxHeader {
		return nil, fmt.Errorf("the header has %d bytes, more than %d", text.Len(), maxHeader)
	}
	if _, _, err := parseHeader(text.Bytes(), 4*w.left); err != nil { // no reader would accept it
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(text.Len())), text.Bytes()...), nil
}

// Write adds values.
func (w *Writer) Write(values []float32) error {
	if w.left -= int64(len(values)); w.left < 0 {
		return fmt.Errorf("write safetensors: %d values more than its tensors have", -w.left)
	}
	for piece := range slices.Chunk(values, chunk) {
		w.text = w.text[:0]
		for _, v := range piece {
			w.text = binary.LittleEndian.AppendUint32(w.text, math.Float32bits(v))
		}
		if err := w.write(w.text); err != nil {
			return err
		}
	}
	return nil
}

// Close checks that all values were written, and returns the file's length. It does
// not close what is written to.
func (w *Writer) Close() (int64, error) {
	if w.left != 0 {
		return 0, fmt.Errorf("write safetensors: %d values are missing", w.left)
	}
	return w.bytes, nil
}

func (w *Writer) write(text []byte) error {
	n, err := w.out.Write(text)
	w.bytes += int64(n)
	if err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	return nil
}
