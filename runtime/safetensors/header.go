package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// maxHeader bounds a header, as the format does.
const maxHeader = 100_000_000

// metadataKey is the name of the metadata among the names of tensors.
const metadataKey = "__metadata__"

// sizes are the bytes of one element of each type.
var sizes = map[string]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1,
	"I16": 2, "U16": 2, "F16": 2, "BF16": 2,
	"I32": 4, "U32": 4, "F32": 4,
	"I64": 8, "U64": 8, "F64": 8, "C64": 8,
}

// Tensor describes one tensor of a file.
type Tensor struct {
	Name  string
	Type  string // such as F32
	Shape []int  // empty: one value

	from, to int64 // bytes behind the header
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// entry is a tensor as a header has it.
type entry struct {
	Type    *string `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// parseHeader reads the tensors, sorted by their place, and the metadata of a file
// that has so many bytes behind its header.
func parseHeader(text []byte, data int64) (tensors []Tensor, metadata map[string]string, err error) {
	if !utf8.Valid(text) {
		return nil, nil, errors.New("the header is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, nil, errors.New("the header is not a JSON object")
	}
	seen := make(map[string]bool)
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, nil, fmt.Errorf("the header is not a JSON object: %w", err)
		}
		name := token.(string) // as the keys of all objects
		if seen[name] {
			return nil, nil, fmt.Errorf("the header has %q twice", name)
		}
		seen[name] = true
		if name == metadataKey {
			if err := decoder.Decode(&metadata); err != nil {
				return nil, nil, fmt.Errorf("metadata are not texts by name: %w", err)
			}
			continue
		}
		var e entry
		if err := decoder.Decode(&e); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		t, err := e.tensor(name)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		tensors = append(tensors, t)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, nil, fmt.Errorf("the header is not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, nil, errors.New("the header has more than one JSON object")
	}
	slices.SortFunc(tensors, func(a, b Tensor) int {
		if a.from != b.from {
			return int(max(-1, min(1, a.from-b.from)))
		}
		return int(max(-1, min(1, a.to-b.to)))
	})
	return tensors, metadata, checkPlaces(tensors, data)
}

// tensor checks an entry by itself.
func (e entry) tensor(name string) (t Tensor, err error) {
	if e.Type == nil || e.Shape == nil || len(e.Offsets) != 2 {
		return t, errors.New("it lacks dtype, shape or two data_offsets")
	}
	size, ok := sizes[*e.Type]
	if !ok {
		return t, fmt.Errorf("its type %.20q is unknown", *e.Type)
	}
	t = Tensor{Name: name, Type: *e.Type, from: e.Offsets[0], to: e.Offsets[1], Shape: make([]int, len(e.Shape))}
	if t.from < 0 || t.to < t.from {
		return t, fmt.Errorf("its data_offsets are %v", e.Offsets)
	}
	n := size
	for i, d := range e.Shape {
		if d < 0 || d > math.MaxInt || d > 0 && n > math.MaxInt64/d {
			return t, fmt.Errorf("its shape is %v", e.Shape)
		}
		t.Shape[i], n = int(d), n*d
	}
	if n != t.to-t.from {
		return t, fmt.Errorf("%s of shape %v has %d bytes, and its data_offsets %v have %d", t.Type, t.Shape, n, e.Offsets, t.to-t.from)
	}
	return t, nil
}

// checkPlaces checks that sorted tensors are exactly the bytes behind the header.
func checkPlaces(tensors []Tensor, data int64) error {
	at := int64(0)
	for _, t := range tensors {
		if t.from != at {
			return fmt.Errorf("tensor %q begins at byte %d, and the tensors before it end at %d", t.Name, t.from, at)
		}
		at = t.to
	}
	if at != data {
		return fmt.Errorf("its tensors have %d bytes, and the file has %d behind the header", at, data)
	}
	return nil
}
