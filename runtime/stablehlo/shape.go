package stablehlo

import (
	"fmt"
	"slices"
	"strings"
)

// Reshape returns the elements in their order with other dimensions.
func (v *Value) Reshape(dims ...int) *Value {
	if product(dims) != v.Size() {
		panic(fmt.Sprintf("stablehlo: reshape of %s to %v", typeOf(v), dims))
	}
	if slices.Equal(dims, v.Dims) {
		return v
	}
	return v.function.add(v.Type, dims, "stablehlo.reshape %s : %s", v.name, signature(v.Type, dims, v))
}

// Broadcast repeats v: its dimension i becomes dimension over[i] of the result.
func (v *Value) Broadcast(dims, over []int) *Value {
	if len(dims) == 0 {
		return v
	}
	for i, o := range over {
		if d := v.Dims[i]; d != 1 && d != dims[o] {
			panic(fmt.Sprintf("stablehlo: broadcast of %s to %v over %v", typeOf(v), dims, over))
		}
	}
	return v.function.add(v.Type, dims, "stablehlo.broadcast_in_dim %s, dims = [%s] : %s", v.name, list(over), signature(v.Type, dims, v))
}

// Like broadcasts v to the shape of w.
func (v *Value) Like(w *Value, over ...int) *Value { return v.Broadcast(w.Dims, over) }

// Transpose returns v with dimension order[i] as its dimension i.
func (v *Value) Transpose(order ...int) *Value {
	dims := make([]int, len(order))
	for i, o := range order {
		dims[i] = v.Dims[o]
	}
	return v.function.add(v.Type, dims, "stablehlo.transpose %s, dims = [%s] : %s", v.name, list(order), signature(v.Type, dims, v))
}

// Reverse reverses dimensions.
func (v *Value) Reverse(over ...int) *Value {
	return v.function.add(v.Type, v.Dims, "stablehlo.reverse %s, dims = [%s] : %s", v.name, list(over), typeOf(v))
}

// Slice returns the elements from, from+step … before to of each dimension.
func (v *Value) Slice(from, to, step []int) *Value {
	dims, ranges := make([]int, len(from)), make([]string, len(from))
	for i := range from {
		dims[i] = (to[i] - from[i] + step[i] - 1) / step[i]
		ranges[i] = fmt.Sprintf("%d:%d", from[i], to[i])
		if step[i] != 1 {
			ranges[i] += fmt.Sprintf(":%d", step[i])
		}
	}
	return v.function.add(v.Type, dims, "stablehlo.slice %s [%s] : %s", v.name, strings.Join(ranges, ", "), signature(v.Type, dims, v))
}

// SliceDim returns the elements from … before to of one dimension.
func (v *Value) SliceDim(dim, from, to int) *Value {
	first, last, step := make([]int, len(v.Dims)), slices.Clone(v.Dims), make([]int, len(v.Dims))
	for i := range step {
		step[i] = 1
	}
	first[dim], last[dim] = from, to
	return v.Slice(first, last, step)
}

// Pad puts zeros before, behind and between the elements of each dimension.
func (v *Value) Pad(low, high, interior []int) *Value {
	dims := make([]int, len(low))
	for i, d := range v.Dims {
		dims[i] = low[i] + high[i] + d + max(d-1, 0)*interior[i]
	}
	zero := v.function.Constant(v.Type, 0)
	return v.function.add(v.Type, dims, "stablehlo.pad %s, %s, low = [%s], high = [%s], interior = [%s] : %s",
		v.name, zero.name, list(low), list(high), list(interior), signature(v.Type, dims, v, zero))
}

// Concatenate joins tensors along a dimension.
func Concatenate(dim int, parts ...*Value) *Value {
	if len(parts) == 1 {
		return parts[0]
	}
	dims, names := slices.Clone(parts[0].Dims), make([]string, len(parts))
	dims[dim] = 0
	for i, p := range parts {
		dims[dim] += p.Dims[dim]
		names[i] = p.name
	}
	f, t := parts[0].function, parts[0].Type
	return f.add(t, dims, "stablehlo.concatenate %s, dim = %d : %s", strings.Join(names, ", "), dim, signature(t, dims, parts...))
}

// Part returns count elements of the first dimension, from a scalar index on.
func (v *Value) Part(from *Value, count int) *Value {
	dims := slices.Clone(v.Dims)
	dims[0] = count
	zero := v.function.Constant(from.Type, 0)
	operands, names := []*Value{v, from}, from.name
	for range v.Dims[1:] {
		operands, names = append(operands, zero), names+", "+zero.name
	}
	return v.function.add(v.Type, dims, "stablehlo.dynamic_slice %s, %s, sizes = [%s] : %s",
		v.name, names, list(dims), signature(v.Type, dims, operands...))
}
