package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits that no sensible model of this runtime passes; they keep every size
// far from overflow, whatever a hostile file says.
const (
	MaxLayers     = 1000
	MaxDimension  = 1 << 24 // of a tensor or a layer
	MaxRecord     = 1 << 27 // elements that one layer gives per record
	MaxParameters = 1 << 30 // elements of the flat vector
)

// Validate reports the first thing that is wrong with the model, naming the
// layer.
func (m *Model) Validate() error {
	_, err := m.Shapes()
	return err
}

// Shapes returns what each layer gives for one record, without the record's
// dimension: [height width channels], [positions width] or [features].
func (m *Model) Shapes() ([][]int, error) {
	if err := m.validateEnds(); err != nil {
		return nil, m.addName(err)
	}
	sources, err := m.Sources()
	if err != nil {
		return nil, err
	}
	shapes := make([][]int, 0, len(m.Layers))
	for i, l := range m.Layers {
		var in [][]int
		for _, s := range sources[i] {
			if s < 0 {
				in = append(in, m.InputShape())
				continue
			}
			in = append(in, shapes[s])
		}
		err := l.checkMembers()
		var out []int
		if err == nil {
			out, err = l.output(in)
		}
		if err != nil {
			return nil, m.wrong(i, err)
		}
		shapes = append(shapes, out)
	}
	err = m.checkIDs(sources)
	if err == nil {
		err = m.checkOutput(shapes[len(shapes)-1])
	}
	if err != nil {
		return nil, err
	}
	return shapes, nil
}

// LayerError is an error about one layer.
type LayerError struct {
	Model string // its name, if it has one
	Index int    // of the layer, from 0
	Layer Layer
	Err   error
}

// Error names the layer.
func (e *LayerError) Error() string {
	err := fmt.Errorf("layer %d (%s %q): %w", e.Index+1, e.Layer.Op, e.Layer.Name, e.Err)
	return (&Model{Name: e.Model}).addName(err).Error()
}

// Unwrap returns the error without its place.
func (e *LayerError) Unwrap() error { return e.Err }

// addName adds the model's name to an error, where it has one.
func (m *Model) addName(err error) error {
	if m.Name == "" {
		return err
	}
	return fmt.Errorf("model %q: %w", m.Name, err)
}

// wrong wraps an error about layer i.
func (m *Model) wrong(i int, err error) error { return &LayerError{m.Name, i, m.Layers[i], err} }

// InputShape is what the first layer gets: a two-dimensional picture has one
// channel. Where the target is a sequence, two dimensions are positions and width.
func (m *Model) InputShape() []int {
	in := slices.Clone(m.Input.Shape)
	if len(in) == 2 && !m.isSequence() {
		in = append(in, 1)
	}
	return in
}

func (m *Model) validateEnds() error {
	if m.Input.Type.Size() == 0 {
		return fmt.Errorf("input type %s is unknown", m.Input.Type)
	}
	if n := len(m.Input.Shape); n < 1 || n > 3 {
		return fmt.Errorf("input shape %v must have one to three dimensions: features, or height, width and channels", m.Input.Shape)
	}
	if _, err := elements(m.Input.Shape...); err != nil {
		return fmt.Errorf("input shape %v: %w", m.Input.Shape, err)
	}
	if s := m.Input.Scale; s != s || s-s != 0 {
		return fmt.Errorf("input scale %v is not a finite number", s)
	}
	if err := m.validateLoss(); err != nil {
		return err
	}
	return m.validateTarget()
}

// validateLoss checks what needs neither data nor shapes.
func (m *Model) validateLoss() error {
	if len(m.Layers) == 0 || len(m.Layers) > MaxLayers {
		return fmt.Errorf("%d layers: want 1 to %d", len(m.Layers), MaxLayers)
	}
	known := Metrics(m.Loss)
	if known == nil {
		return fmt.Errorf("unknown loss %q: want one of %s", m.Loss, strings.Join(Losses(), ", "))
	}
	if s := m.LabelSmoothing; !(s >= 0 && s < 1) || s > 0 && m.Loss != SoftmaxCrossEntropy {
		return fmt.Errorf("label smoothing %v: want at least 0 and below 1, and more than 0 only with loss %s", s, SoftmaxCrossEntropy)
	}
	for i, metric := range m.Metrics {
		if slices.Contains(m.Metrics[:i], metric) {
			return fmt.Errorf("metric %q is given twice", metric)
		}
		if !slices.Contains(known, metric) {
			return fmt.Errorf("unknown metric %q: with loss %s want one of %s", metric, m.Loss, strings.Join(known, ", "))
		}
	}
	return nil
}

// output is the layer's output shape for one record of these shapes.
func (l Layer) output(inputs [][]int) ([]int, error) {
	var out []int
	in := inputs[0]
	switch l.Op {
	case Add, Concat:
		var err error
		if out, err = l.joined(inputs); err != nil {
			return nil, err
		}
	case Dense:
		if len(in) > 2 {
			return nil, fmt.Errorf("needs one row of features, got shape %v: put a flatten before it", in)
		}
		out = append(slices.Clone(in[:len(in)-1]), l.Units)
	case Embedding, Position, Attention, MatMul:
		var err error
		if out, err = l.sequence(inputs); err != nil {
			return nil, err
		}
	case Conv2D, MaxPool, AvgPool:
		var err error
		if out, err = l.windows(in); err != nil {
			return nil, err
		}
	case BatchNorm:
		if mo := l.RunningMomentum(); !(mo >= 0 && mo < 1) {
			return nil, fmt.Errorf("momentum %v: want at least 0 and below 1", mo)
		}
		fallthrough
	case LayerNorm:
		if e := l.Eps(); !(e > 0 && e < 1) {
			return nil, fmt.Errorf("epsilon %v: want above 0 and below 1", e)
		}
		out = slices.Clone(in)
	case ReLU, GELU, Tanh, Sigmoid:
		out = slices.Clone(in)
	case GlobalAvg:
		if len(in) != 3 {
			return nil, fmt.Errorf("needs height, width and channels, got shape %v", in)
		}
		out = []int{in[2]}
	case Dropout:
		if !(l.Rate >= 0 && l.Rate < 1) {
			return nil, fmt.Errorf("rate %v: want at least 0 and below 1", l.Rate)
		}
		out = slices.Clone(in)
	case Flatten:
		n, err := elements(in...)
		if err != nil {
			return nil, err
		}
		out = []int{n}
	default:
		return nil, fmt.Errorf("unknown operation %q", l.Op)
	}
	if _, err := elements(out...); err != nil {
		return nil, fmt.Errorf("output %v: %w", out, err)
	}
	return out, nil
}

func (l Layer) windows(in []int) ([]int, error) {
	if len(in) != 3 {
		return nil, fmt.Errorf("needs height, width and channels, got shape %v", in)
	}
	if l.Kernel < 1 || l.Kernel > 1<<10 {
		return nil, fmt.Errorf("kernel %d: want 1 to %d", l.Kernel, 1<<10)
	}
	if s := l.Step(); s < 1 || s > 1<<10 {
		return nil, fmt.Errorf("stride %d: want 1 to %d", s, 1<<10)
	}
	switch {
	case l.Pad < 0 || l.Pad > 1<<10 || l.Pad >= l.Kernel && l.Pad > 0:
		return nil, fmt.Errorf("pad %d: want 0 to below the kernel of %d", l.Pad, l.Kernel)
	case l.Pad > 0 && l.Padding != "":
		return nil, errors.New("has pad and padding: give one of them")
	case l.Op != Conv2D && l.Padding != "" && l.Padding != Valid,
		l.Op == Conv2D && l.Padding != "" && l.Padding != Valid && l.Padding != Same:
		return nil, fmt.Errorf("padding %q is not supported here", l.Padding)
	}
	if g := l.GroupCount(); l.Groups < 0 || l.Op == Conv2D && (in[2]%g != 0 || l.Filters%g != 0) {
		return nil, fmt.Errorf("%d groups: want a divisor of its %d channels and its %d filters", l.Groups, in[2], l.Filters)
	}
	_, h := l.WindowPadding(in[0])
	_, w := l.WindowPadding(in[1])
	if h < 1 || w < 1 {
		return nil, fmt.Errorf("a window of %d × %d does not fit into an input of %d × %d", l.Kernel, l.Kernel, in[0], in[1])
	}
	if l.Op != Conv2D {
		return []int{h, w, in[2]}, nil
	}
	// The unfolded input is the largest buffer that a convolution needs.
	if _, err := elements(h, w, l.Kernel, l.Kernel, in[2]); err != nil {
		return nil, fmt.Errorf("unfolded input: %w", err)
	}
	return []int{h, w, l.Filters}, nil
}

// elements multiplies dimensions, checking each and the product.
func elements(shape ...int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 1 || d > MaxDimension {
			return 0, fmt.Errorf("dimension %d: want 1 to %d", d, MaxDimension)
		}
		if n > MaxRecord/d {
			return 0, fmt.Errorf("more than %d elements per record", MaxRecord)
		}
		n *= d
	}
	return n, nil
}
