package stablehlotest

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type is the type of a tensor.
type Type struct {
	Element string // f32 bf16 i1 i32 i64 ui8 ui32 ui64
	Dims    []int
}

// maxElements keeps the product of dimensions away from overflows.
const maxElements = 1 << 31

func (t Type) String() string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, d := range t.Dims {
		fmt.Fprintf(&b, "%dx", d)
	}
	return b.String() + t.Element + ">"
}

// Size is the number of elements.
func (t Type) Size() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

func (t Type) equal(o Type) bool { return t.Element == o.Element && slices.Equal(t.Dims, o.Dims) }

func (t Type) rank() int { return len(t.Dims) }

func (t Type) scalar() Type { return Type{Element: t.Element} }

// with is a type of the same shape.
func (t Type) with(element string) Type { return Type{element, t.Dims} }

func isFloat(element string) bool { return element == "f32" || element == "bf16" }

// isInteger reports whether a type is one of the specification's integers;
// booleans are not.
func isInteger(element string) bool { return !isFloat(element) && element != "i1" }

func isSigned(element string) bool { return element == "i32" || element == "i64" }

// isWide reports whether values are kept as bits, because float64 cannot hold
// them.
func isWide(element string) bool { return element == "i64" || element == "ui64" }

// bitsOf is the width of a type, 0 for an unknown one.
func bitsOf(element string) int {
	switch element {
	case "i1":
		return 1
	case "ui8":
		return 8
	case "bf16":
		return 16
	case "i32", "ui32", "f32":
		return 32
	case "i64", "ui64":
		return 64
	}
	return 0
}

// wrap cuts an integer to the width of its type: the result is the value in two's
// complement, extended to 64 bits.
func wrap(element string, u uint64) uint64 {
	switch element {
	case "i1":
		return u & 1
	case "ui8":
		return u & 0xFF
	case "ui32":
		return u & 0xFFFFFFFF
	case "i32":
		return uint64(int64(int32(u)))
	}
	return u
}

// toBits and fromBits are the way of integers of at most 32 bits, which are kept
// as float64, through arithmetic in two's complement.
func toBits(x float64) uint64 { return uint64(int64(x)) }

func fromBits(element string, u uint64) float64 { return float64(int64(wrap(element, u))) }

// Tensor is a value. Integers of 64 bits are in Bits, exactly; all others in
// Values, booleans as 0 and 1.
type Tensor struct {
	Type   string
	Dims   []int
	Values []float64
	Bits   []uint64
}

// tensor is a value of a running program. Its elements are never changed.
type tensor struct {
	t Type
	f []float64
	u []uint64
}

func newTensor(t Type) tensor {
	if isWide(t.Element) {
		return tensor{t: t, u: make([]uint64, t.Size())}
	}
	return tensor{t: t, f: make([]float64, t.Size())}
}

// bits is an element of an integer or boolean.
func (v tensor) bits(i int) uint64 {
	if v.u != nil {
		return v.u[i]
	}
	return toBits(v.f[i])
}

func (v tensor) setBits(i int, u uint64) {
	if v.u != nil {
		v.u[i] = u
		return
	}
	v.f[i] = fromBits(v.t.Element, u)
}

// element is one element as a scalar.
func (v tensor) element(i int) tensor {
	if v.u != nil {
		return tensor{v.t.scalar(), nil, v.u[i : i+1]}
	}
	return tensor{v.t.scalar(), v.f[i : i+1], nil}
}

// index is an integer as an index. Numbers beyond the int's range are clamped.
func (v tensor) index(i int) int {
	u := v.bits(i)
	if v.t.Element == "ui64" && u > math.MaxInt64 {
		return math.MaxInt64
	}
	return int(int64(u))
}

// check converts an argument, and reports where it is not of its type.
func (a Tensor) check(t Type) (tensor, error) {
	if given := (Type{a.Type, a.Dims}); !given.equal(t) {
		return tensor{}, fmt.Errorf("it is a %s, want %s", given, t)
	}
	n := t.Size()
	if isWide(t.Element) {
		if len(a.Bits) != n || a.Values != nil {
			return tensor{}, fmt.Errorf("it has %d values and %d bits, want %d bits", len(a.Values), len(a.Bits), n)
		}
		return tensor{t: t, u: a.Bits}, nil
	}
	if len(a.Values) != n || a.Bits != nil {
		return tensor{}, fmt.Errorf("it has %d values and %d bits, want %d values", len(a.Values), len(a.Bits), n)
	}
	if !isFloat(t.Element) {
		for i, x := range a.Values {
			if x != math.Trunc(x) || math.Abs(x) > 1<<32 || fromBits(t.Element, toBits(x)) != x {
				return tensor{}, fmt.Errorf("element %d is %v, which is not a value of %s", i, x, t.Element)
			}
		}
	}
	return tensor{t: t, f: a.Values}, nil
}
