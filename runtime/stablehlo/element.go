package stablehlo

import (
	"fmt"
	"slices"
)

// binary adds an operation of two tensors of one type, element by element.
func combine(op string, v, w *Value) *Value {
	if v.Type != w.Type || !slices.Equal(v.Dims, w.Dims) {
		panic(fmt.Sprintf("stablehlo: %s of %s and %s", op, typeOf(v), typeOf(w)))
	}
	return v.function.add(v.Type, v.Dims, "stablehlo.%s %s, %s : %s", op, v.name, w.name, typeOf(v))
}

// Add returns v + w.
func (v *Value) Add(w *Value) *Value { return combine("add", v, w) }

// Subtract returns v - w.
func (v *Value) Subtract(w *Value) *Value { return combine("subtract", v, w) }

// Multiply returns v · w.
func (v *Value) Multiply(w *Value) *Value { return combine("multiply", v, w) }

// Divide returns v / w.
func (v *Value) Divide(w *Value) *Value { return combine("divide", v, w) }

// Maximum returns the larger of v and w.
func (v *Value) Maximum(w *Value) *Value { return combine("maximum", v, w) }

// Bits is an operation on the bits of two integers.
type Bits string

// The operations on bits. ShiftRight takes the number of places from its second operand;
// zeros come in.
const (
	And        Bits = "and"
	Or         Bits = "or"
	Xor        Bits = "xor"
	ShiftRight Bits = "shift_right_logical"
)

// Bits returns the operation on v and w, which may be booleans.
func (v *Value) Bits(op Bits, w *Value) *Value { return combine(string(op), v, w) }

// Scale returns v · x.
func (v *Value) Scale(x float64) *Value { return v.Multiply(v.Fill(x)) }

// Plus returns v + x.
func (v *Value) Plus(x float64) *Value { return v.Add(v.Fill(x)) }

// Fill returns a tensor of v's type and shape, of one number.
func (v *Value) Fill(x float64) *Value { return v.function.Fill(v.Type, x, v.Dims...) }

func apply(op string, v *Value) *Value {
	return v.function.add(v.Type, v.Dims, "stablehlo.%s %s : %s", op, v.name, typeOf(v))
}

// Negate returns -v.
func (v *Value) Negate() *Value { return apply("negate", v) }

// Abs returns |v|.
func (v *Value) Abs() *Value { return apply("abs", v) }

// Exp returns eᵛ.
func (v *Value) Exp() *Value { return apply("exponential", v) }

// Log returns the natural logarithm.
func (v *Value) Log() *Value { return apply("log", v) }

// Sqrt returns the square root.
func (v *Value) Sqrt() *Value { return apply("sqrt", v) }

// Rsqrt returns 1/√v.
func (v *Value) Rsqrt() *Value { return apply("rsqrt", v) }

// Tanh returns the hyperbolic tangent.
func (v *Value) Tanh() *Value { return apply("tanh", v) }

// Logistic returns 1/(1 + e⁻ᵛ).
func (v *Value) Logistic() *Value { return apply("logistic", v) }

// Convert returns the elements as another type.
func (v *Value) Convert(t Type) *Value {
	if v.Type == t {
		return v
	}
	return v.function.add(t, v.Dims, "stablehlo.convert %s : %s", v.name, signature(t, v.Dims, v))
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
		panic(fmt.Sprintf("stablehlo: comparison of %s and %s", typeOf(v), typeOf(w)))
	}
	return v.function.add(Bool, v.Dims, "stablehlo.compare %s, %s, %s : %s", d, v.name, w.name, signature(Bool, v.Dims, v, w))
}

// Select returns a where v holds, else b.
func (v *Value) Select(a, b *Value) *Value {
	if v.Type != Bool || a.Type != b.Type || !slices.Equal(a.Dims, b.Dims) || !slices.Equal(a.Dims, v.Dims) {
		panic(fmt.Sprintf("stablehlo: select by %s of %s and %s", typeOf(v), typeOf(a), typeOf(b)))
	}
	return v.function.add(a.Type, a.Dims, "stablehlo.select %s, %s, %s : %s, %s", v.name, a.name, b.name, typeOf(v), typeOf(a))
}

// FillUnsigned returns a tensor of v's shape, of one number of 64 bits.
func (v *Value) FillUnsigned(x uint64) *Value { return v.function.Unsigned(x).Broadcast(v.Dims, nil) }
