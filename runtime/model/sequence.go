package model

import (
	"errors"
	"fmt"
	"slices"
)

// sequence is the output shape of the operations on sequences.
func (l Layer) sequence(inputs [][]int) ([]int, error) {
	in := inputs[0]
	if l.Op == Embedding {
		if len(in) != 1 {
			return nil, fmt.Errorf("needs ids of the shape [positions], got shape %v", in)
		}
		if l.Vocabulary < 1 || l.Vocabulary > MaxDimension {
			return nil, fmt.Errorf("vocabulary %d: want 1 to %d", l.Vocabulary, MaxDimension)
		}
		return []int{in[0], l.Units}, nil
	}
	for _, in := range inputs {
		if len(in) != 2 {
			return nil, fmt.Errorf("needs sequences of the shape [positions, width], got shape %v", in)
		}
	}
	switch l.Op {
	case Attention:
		return l.attend(inputs)
	case MatMul:
		second := slices.Clone(inputs[1])
		if l.Transpose {
			slices.Reverse(second)
		}
		if in[1] != second[0] {
			return nil, fmt.Errorf("its inputs of the shapes %v and %v have no product (transpose %v)", in, inputs[1], l.Transpose)
		}
		return []int{in[0], second[1]}, nil
	}
	return slices.Clone(in), nil // Position
}

func (l Layer) attend(inputs [][]int) ([]int, error) {
	in := inputs[0]
	for i, other := range inputs[1:] {
		if !slices.Equal(other, in) {
			return nil, fmt.Errorf("its inputs %d and 1 have the shapes %v and %v: queries, keys and values have one shape", i+2, other, in)
		}
	}
	if l.Heads < 1 || in[1]%l.Heads != 0 {
		return nil, fmt.Errorf("heads %d: want a divisor of the width %d", l.Heads, in[1])
	}
	// Engines keep these weights, so that they count like a layer's elements.
	if _, err := elements(l.Heads, in[0], in[0]); err != nil {
		return nil, fmt.Errorf("weights of %d × %d positions and %d heads: %w", in[0], in[0], l.Heads, err)
	}
	return slices.Clone(in), nil
}

// InputFactor is what the input's values are multiplied by: 1 where they are ids, which
// embeddings read, else Input.Factor.
func (m *Model) InputFactor() float32 {
	if m.Vocabulary() > 0 {
		return 1
	}
	return m.Input.Factor()
}

// Vocabulary is how many ids the input may have: 0 … Vocabulary-1, the fewest of the
// embeddings that read it; 0 where none does.
func (m *Model) Vocabulary() int {
	least := 0
	for _, l := range m.Layers {
		if l.Op == Embedding && (least == 0 || l.Vocabulary < least) {
			least = l.Vocabulary
		}
	}
	return least
}

// checkIDs checks that embeddings read the model's input, that it has ids, and that no
// other layer reads them.
func (m *Model) checkIDs(sources [][]int) error {
	if m.Vocabulary() == 0 {
		return nil
	}
	for i, l := range m.Layers {
		for _, s := range sources[i] {
			switch {
			case l.Op == Embedding && s >= 0:
				return m.wrong(i, fmt.Errorf("reads layer %q: an embedding reads the model's input, %q", m.Layers[s].Name, Source))
			case l.Op != Embedding && s < 0:
				return m.wrong(i, errors.New("reads the model's input, whose values are ids: only an embedding reads ids"))
			}
		}
	}
	if m.Input.Type == F32 {
		return fmt.Errorf("model %q: its input is of f32, but an embedding reads ids: want u8, i32 or i64", m.Name)
	}
	if m.Input.Scale != 0 {
		return fmt.Errorf("model %q: its input has a scale, but an embedding reads ids", m.Name)
	}
	return nil
}
