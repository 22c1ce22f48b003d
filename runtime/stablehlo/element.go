package stablehlo

import (
	"fmt"
	"slices"
)

// binary adds an operation of two tensors of one type, element by element.
func (v *Value) binary(op string, w *Value) *Value {
	if v.Type != w.Type || !slices.Equal(v.Dims, w.Dims) {
		panic(fmt.Sprintf("stablehlo: %s of %s and %s", op, v.tensor(), w.tensor()))
	}
	return v.function.add(v.Type, v.Dims, fmt.Sprintf("stablehlo.%s %s, %s : %s", op, v.name, w.name, v.tensor()))
}

// Add returns v + w.
func (v *Value) Add(w *Value) *Value { return v.binary("add", w) }

// Subtract returns v - w.
func (v *Value) Subtract(w *Value) *Value { return v.binary("subtract", w) }

// Multiply returns v · w.
func (v *Value) Multiply(w *Value) *Value { return v.binary("multiply", w) }

// Divide returns v / w.
func (v *Value) Divide(w *Value) *Value { return v.binary("divide", w) }

// Maximum returns the larger of v and w.
func (v *Value) Maximum(w *Value) *Value { return v.binary("maximum", w) }

// And returns the bits that v and w have.
func (v *Value) And(w *Value) *Value { return v.binary("and", w) }

// Or returns the bits that v or w has.
func (v *Value) Or(w *Value) *Value { return v.binary("or", w) }

// Xor returns the bits in which v and w differ.
func (v *Value) Xor(w *Value) *Value { return v.binary("xor", w) }

// ShiftRight returns the bits of v, w places lower; zeros come in.
func (v *Value) ShiftRight(w *Value) *Value { return v.binary("shift_right_logical", w) }

// Scale returns v · x.
func (v *Value) Scale(x float64) *Value { return v.Multiply(v.Fill(x)) }

// Plus returns v + x.
func (v *Value) Plus(x float64) *Value { return v.Add(v.Fill(x)) }

// Fill returns a tensor of v's type and shape, of one number.
func (v *Value) Fill(x float64) *Value { return v.function.Fill(v.Type, x, v.Dims...) }

func (v *Value) unary(op string) *Value {
	return v.function.add(v.Type, v.Dims, fmt.Sprintf("stablehlo.%s %s : %s", op, v.name, v.tensor()))
}

// Negate returns -v.
func (v *Value) Negate() *Value { return v.unary("negate") }

// Abs returns |v|.
func (v *Value) Abs() *Value { return v.unary("abs") }

// Exp returns eᵛ.
func (v *Value) Exp() *Value { return v.unary("exponential") }

// Log returns the natural logarithm.
func (v *Value) Log() *Value { return v.unary("log") }

// Sqrt returns the square root.
func (v *Value) Sqrt() *Value { return v.unary("sqrt") }

// Rsqrt returns 1/√v.
func (v *Value) Rsqrt() *Value { return v.unary("rsqrt") }

// Tanh returns the hyperbolic tangent.
func (v *Value) Tanh() *Value { return v.unary("tanh") }

// Logistic returns 1/(1 + e⁻ᵛ).
func (v *Value) Logistic() *Value { return v.unary("logistic") }

// Convert returns the elements as another type.
func (v *Value) Convert(t Type) *Value {
	if v.Type == t {
		return v
	}
	return v.function.add(t, v.Dims, fmt.Sprintf("stablehlo.convert %s : %s", v.name, signature(t, v.Dims, v)))
}

// Direction is a comparison.
type Direction string

// The comparisons. A NaN is not equal to anything.
const (
	Equal          Direction = "EQ"
	Less           Direction = "LT"
	LessOrEqual    Direction = "LE"
	Greater        Direction = "GT"
	GreaterOrEqual Direction = "GE"
)

// Compare returns where the comparison of v and w holds.
func (v *Value) Compare(d Direction, w *Value) *Value {
	if v.Type != w.Type || !slices.Equal(v.Dims, w.Dims) {
		panic(fmt.Sprintf("stablehlo: comparison of %s and %s", v.tensor(), w.tensor()))
	}
	return v.function.add(Bool, v.Dims, fmt.Sprintf("stablehlo.compare %s, %s, %s : %s", d, v.name, w.name, signature(Bool, v.Dims, v, w)))
}

// Select returns a where v holds, else b.
func (v *Value) Select(a, b *Value) *Value {
	if v.Type != Bool || a.Type != b.Type || !slices.Equal(a.Dims, b.Dims) || !slices.Equal(a.Dims, v.Dims) {
		panic(fmt.Sprintf("stablehlo: select by %s of %s and %s", v.tensor(), a.tensor(), b.tensor()))
	}
	return v.function.add(a.Type, a.Dims, fmt.Sprintf("stablehlo.select %s, %s, %s : %s, %s", v.name, a.name, b.name, v.tensor(), a.tensor()))
}

// Of returns a tensor of v's shape, of one number of 64 bits.
func (v *Value) Of(x uint64) *Value { return v.function.Unsigned(x).Broadcast(v.Dims, nil) }
