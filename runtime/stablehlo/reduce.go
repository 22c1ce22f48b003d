package stablehlo

import (
	"fmt"
	"math"
	"slices"
)

// Sum adds up over dimensions.
func (v *Value) Sum(over ...int) *Value {
	return reduce(v, "add", v.function.Constant(v.Type, 0), over)
}

// Largest returns the maximum over dimensions.
func (v *Value) Largest(over ...int) *Value {
	return reduce(v, "maximum", v.function.Constant(v.Type, math.Inf(-1)), over)
}

// Least returns the minimum of integers over dimensions; bound is larger than all.
func (v *Value) Least(bound int, over ...int) *Value {
	return reduce(v, "minimum", v.function.Constant(v.Type, float64(bound)), over)
}

func reduce(v *Value, op string, init *Value, over []int) *Value {
	var dims []int
	for i, d := range v.Dims {
		if !slices.Contains(over, i) {
			dims = append(dims, d)
		}
	}
	return v.function.add(v.Type, dims, "stablehlo.reduce(%s init: %s) applies stablehlo.%s across dimensions = [%s] : %s",
		v.name, init.name, op, list(over), signature(v.Type, dims, v, init))
}

// Product names dimensions of the factors of a matrix product. The result has one of each
// pair of common dimensions, then the other dimensions of the left factor, then the other
// dimensions of the right factor.
type Product struct {
	Left, Right             []int // pairs that the product adds up over
	CommonLeft, CommonRight []int // pairs that both factors have
}

// Dot returns the product of v and w as float32 values, or of another type.
func (v *Value) Dot(w *Value, p Product, t Type) *Value {
	var dims []int
	for i, c := range p.CommonLeft {
		if v.Dims[c] != w.Dims[p.CommonRight[i]] {
			panic(fmt.Sprintf("stablehlo: product %v of %s and %s", p, typeOf(v), typeOf(w)))
		}
		dims = append(dims, v.Dims[c])
	}
	for i, c := range p.Left {
		if v.Dims[c] != w.Dims[p.Right[i]] {
			panic(fmt.Sprintf("stablehlo: product %v of %s and %s", p, typeOf(v), typeOf(w)))
		}
	}
	for i, d := range v.Dims {
		if !slices.Contains(p.CommonLeft, i) && !slices.Contains(p.Left, i) {
			dims = append(dims, d)
		}
	}
	for i, d := range w.Dims {
		if !slices.Contains(p.CommonRight, i) && !slices.Contains(p.Right, i) {
			dims = append(dims, d)
		}
	}
	common := ""
	if len(p.CommonLeft) > 0 {
		common = fmt.Sprintf("batching_dims = [%s] x [%s], ", list(p.CommonLeft), list(p.CommonRight))
	}
	return v.function.add(t, dims, "stablehlo.dot_general %s, %s, %scontracting_dims = [%s] x [%s], precision = [%s, %s] : %s",
		v.name, w.name, common, list(p.Left), list(p.Right), v.function.precision, v.function.precision, signature(t, dims, v, w))
}

// Window is how the windows of a convolution lie in one direction.
type Window struct {
	Stride    int // between windows
	Low, High int // zeros before and behind the input; negative: fewer elements
	Dilate    int // of the input: 1 = none
	Spread    int // of the kernel: 1 = none
}

// Convolution is a convolution over two dimensions. Input, Kernel and Output name the
// dimensions of a tensor in their order: b the record, f the channel, 0 and 1 height and
// width; of the kernel i and o the channels of input and output.
type Convolution struct {
	Height, Width         Window
	Input, Kernel, Output string
	Groups                int // of channels, each with filters of its own; 0: 1
	RecordGroups          int // of records, each with filters of its own; 0: 1
}

// Convolve returns the convolution of v by a kernel.
func (v *Value) Convolve(kernel *Value, c Convolution) *Value {
	groups, records := max(c.Groups, 1), max(c.RecordGroups, 1)
	dims := make([]int, 4)
	dims[place(c.Output, 'b')] = v.Dims[place(c.Input, 'b')] / records
	dims[place(c.Output, 'f')] = kernel.Dims[place(c.Kernel, 'o')]
	if in, want := v.Dims[place(c.Input, 'f')], kernel.Dims[place(c.Kernel, 'i')]*groups; in != want {
		panic(fmt.Sprintf("stablehlo: convolution of %s by %s in %d groups", typeOf(v), typeOf(kernel), groups))
	}
	h, w := c.Height, c.Width
	for name, window := range map[byte]Window{'0': h, '1': w} {
		in := (v.Dims[place(c.Input, name)]-1)*window.Dilate + 1 + window.Low + window.High
		size := (kernel.Dims[place(c.Kernel, name)]-1)*window.Spread + 1
		dims[place(c.Output, name)] = (in-size)/window.Stride + 1
	}
	names := func(s string) string { return fmt.Sprintf("[%c, %c, %c, %c]", s[0], s[1], s[2], s[3]) }
	p := v.function.precision
	return v.function.add(v.Type, dims, "stablehlo.convolution(%s, %s) dim_numbers = %sx%s->%s, "+
		"window = {stride = [%d, %d], pad = [[%d, %d], [%d, %d]], lhs_dilate = [%d, %d], rhs_dilate = [%d, %d]} "+
		"{batch_group_count = %d : i64, feature_group_count = %d : i64, "+
		"precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]} : %s",
		v.name, kernel.name, names(c.Input), names(c.Kernel), names(c.Output),
		h.Stride, w.Stride, h.Low, h.High, w.Low, w.High, h.Dilate, w.Dilate, h.Spread, w.Spread,
		records, groups, p, p, signature(v.Type, dims, v, kernel))
}

// place returns the index of a dimension by its name.
func place(names string, name byte) int {
	for i := range len(names) {
		if names[i] == name {
			return i
		}
	}
	panic(fmt.Sprintf("stablehlo: no dimension %c in %q", name, names))
}
