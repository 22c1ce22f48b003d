package stablehlotest

import (
	"errors"
	"fmt"
	"math"
)

// class is a set of element types.
type class int

const (
	floats class = 1 << iota
	signed
	unsigned
	booleans
	integers = signed | unsigned
	all      = floats | integers | booleans
)

func classOf(element string) class {
	switch {
	case isFloat(element):
		return floats
	case element == "i1":
		return booleans
	case isSigned(element):
		return signed
	}
	return unsigned
}

// binary is an operation on two values of one type.
type binary struct {
	on      class
	float   func(x, y float64) float64
	integer func(element string, x, y uint64) uint64 // of booleans too
}

func integerOnly(f func(x, y uint64) uint64) func(string, uint64, uint64) uint64 {
	return func(_ string, x, y uint64) uint64 { return f(x, y) }
}

// less compares integers in two's complement.
func less(element string, x, y uint64) bool {
	if isSigned(element) {
		return int64(x) < int64(y)
	}
	return x < y
}

// binaries are the operations on two values, by their names in StableHLO.
func binaries() map[string]binary {
	and := func(x, y uint64) uint64 { return x & y }
	or := func(x, y uint64) uint64 { return x | y }
	return map[string]binary{
		"add": {all, func(x, y float64) float64 { return x + y }, func(element string, x, y uint64) uint64 {
			if element == "i1" {
				return x | y
			}
			return x + y
		}},
		"subtract": {floats | integers, func(x, y float64) float64 { return x - y },
			integerOnly(func(x, y uint64) uint64 { return x - y })},
		"multiply": {all, func(x, y float64) float64 { return x * y }, integerOnly(func(x, y uint64) uint64 { return x * y })},
		"divide":   {floats | integers, func(x, y float64) float64 { return x / y }, divide},
		"remainder": {floats | integers, math.Mod, func(element string, x, y uint64) uint64 {
			return x - divide(element, x, y)*y
		}},
		// Go's max and min return NaN where one value is NaN, as IEEE 754-2019
		// demands; math.Max does not.
		"maximum": {all, func(x, y float64) float64 { return max(x, y) }, func(element string, x, y uint64) uint64 {
			if less(element, x, y) {
				return y
			}
			return x
		}},
		"minimum": {all, func(x, y float64) float64 { return min(x, y) }, func(element string, x, y uint64) uint64 {
			if less(element, y, x) {
				return y
			}
			return x
		}},
		"power":               {floats | integers, math.Pow, power},
		"and":                 {integers | booleans, nil, integerOnly(and)},
		"or":                  {integers | booleans, nil, integerOnly(or)},
		"xor":                 {integers | booleans, nil, integerOnly(func(x, y uint64) uint64 { return x ^ y })},
		"shift_left":          {integers, nil, func(element string, x, y uint64) uint64 { return x << shift(element, y) }},
		"shift_right_logical": {integers, nil, shiftRight},
	}
}

func divide(element string, x, y uint64) uint64 {
	if isSigned(element) {
		return uint64(int64(x) / int64(y))
	}
	return x / y
}

// power is by squaring. Of negative exponents only ±1 has a whole power.
func power(element string, x, y uint64) uint64 {
	if isSigned(element) && int64(y) < 0 {
		switch int64(x) {
		case 1:
			return 1
		case -1:
			return 1 - y&1*2
		}
		return 0
	}
	result := uint64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			result *= x
		}
		x *= x
	}
	return result
}

// shift is a distance. Distances of the width or more leave nothing.
func shift(element string, y uint64) uint64 {
	if y >= uint64(bitsOf(element)) {
		return 64
	}
	return y
}

func shiftRight(element string, x, y uint64) uint64 {
	if element == "i32" {
		x = uint64(uint32(x))
	}
	return x >> shift(element, y)
}

// undefined reports divisions that the specification leaves to the
// implementation.
func undefined(name string, a, b tensor) error {
	if isFloat(a.t.Element) || name != "divide" && name != "remainder" {
		return nil
	}
	lowest := uint64(1) << 63
	if a.t.Element == "i32" {
		lowest = ^uint64(math.MaxInt32)
	}
	for i := range a.t.Size() {
		if b.bits(i) == 0 {
			return errors.New("integers are divided by zero")
		}
		if isSigned(a.t.Element) && a.bits(i) == lowest && int64(b.bits(i)) == -1 {
			return errors.New("the quotient of the lowest integer and -1 does not fit")
		}
	}
	return nil
}

// apply computes a binary operation element by element.
func (o binary) apply(a, b tensor) tensor {
	out := newTensor(a.t)
	switch {
	case isFloat(a.t.Element):
		for i, x := range a.f {
			out.f[i] = o.float(x, b.f[i])
		}
	default:
		for i := range a.t.Size() {
			out.setBits(i, wrap(a.t.Element, o.integer(a.t.Element, a.bits(i), b.bits(i))))
		}
	}
	return out
}

// scalar is a binary operation on values that are kept as float64.
func (o binary) scalar(element string) func(x, y float64) float64 {
	if isFloat(element) {
		return o.float
	}
	return func(x, y float64) float64 { return fromBits(element, o.integer(element, toBits(x), toBits(y))) }
}

// wide is a binary operation on integers of 64 bits.
func (o binary) wide(element string) func(x, y uint64) uint64 {
	return func(x, y uint64) uint64 { return o.integer(element, x, y) }
}

// unary is an operation on one value, with a result of the same type.
type unary struct {
	on      class
	float   func(x float64) float64
	integer func(element string, x uint64) uint64
}

func unaries() map[string]unary {
	return map[string]unary{
		"negate": {floats | integers, func(x float64) float64 { return -x }, func(_ string, x uint64) uint64 { return -x }},
		"not":    {integers | booleans, nil, func(_ string, x uint64) uint64 { return ^x }},
		"abs": {floats | signed, math.Abs, func(_ string, x uint64) uint64 {
			if int64(x) < 0 {
				return -x
			}
			return x
		}},
		"sign":                  {floats | signed, sign, func(_ string, x uint64) uint64 { return uint64(int64(x)>>63) | -x>>63 }},
		"exponential":           {floats, math.Exp, nil},
		"exponential_minus_one": {floats, math.Expm1, nil},
		"log":                   {floats, math.Log, nil},
		"log_plus_one":          {floats, math.Log1p, nil},
		"rsqrt":                 {floats, func(x float64) float64 { return 1 / math.Sqrt(x) }, nil},
		"sqrt":                  {floats, math.Sqrt, nil},
		"tanh":                  {floats, math.Tanh, nil},
		"logistic":              {floats, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, nil},
		"floor":                 {floats, math.Floor, nil},
		"ceil":                  {floats, math.Ceil, nil},
		"round_nearest_even":    {floats, math.RoundToEven, nil},
	}
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func (o unary) apply(a tensor) tensor {
	out := newTensor(a.t)
	if isFloat(a.t.Element) {
		for i, x := range a.f {
			out.f[i] = o.float(x)
		}
		return out
	}
	for i := range a.t.Size() {
		out.setBits(i, wrap(a.t.Element, o.integer(a.t.Element, a.bits(i))))
	}
	return out
}

// one makes an evaluator of a function with one result and no errors.
func one(f func(in []tensor) tensor) evaluator {
	return func(_ *frame, in []tensor) ([]tensor, error) { return []tensor{f(in)}, nil }
}

func (p *parser) wantClass(line int, element string, on class) {
	if p.err == nil && classOf(element)&on == 0 {
		p.fail(line, "the operation is not defined for %s", element)
	}
}

func (o binary) form(name string) form {
	return func(p *parser) operation {
		line, in := p.line(), p.count(2)
		got := p.same(in)
		p.expect(line, got, in[0].t)
		p.expect(line, []Type{in[1].t}, in[0].t)
		p.wantClass(line, in[0].t.Element, o.on)
		return operation{in: in, results: got, eval: func(_ *frame, in []tensor) ([]tensor, error) {
			if err := undefined(name, in[0], in[1]); err != nil {
				return nil, err
			}
			return []tensor{o.apply(in[0], in[1])}, nil
		}}
	}
}

func (o unary) form() form {
	return func(p *parser) operation {
		line, in := p.line(), p.count(1)
		got := p.same(in)
		p.expect(line, got, in[0].t)
		p.wantClass(line, in[0].t.Element, o.on)
		return operation{in: in, results: got, eval: one(func(in []tensor) tensor { return o.apply(in[0]) })}
	}
}

// convert changes the element type.
func convert(v tensor, to string, round bool) (tensor, error) {
	out := newTensor(v.t.with(to))
	from := v.t.Element
	for i := range v.t.Size() {
		switch {
		case isFloat(from) && isFloat(to):
			out.f[i] = v.f[i]
		case isFloat(from) && to == "i1":
			if v.f[i] != 0 {
				out.f[i] = 1
			}
		case isFloat(from):
			u, ok := truncate(to, v.f[i])
			if !ok {
				return out, fmt.Errorf("%v does not fit into %s", v.f[i], to)
			}
			out.setBits(i, u)
		case isFloat(to):
			out.f[i] = toFloat(from, v.bits(i), round)
		case to == "i1":
			out.setBits(i, min(v.bits(i), 1))
		default:
			out.setBits(i, wrap(to, v.bits(i)))
		}
	}
	return out, nil
}

// truncate is an integer of a value towards zero.
func truncate(to string, x float64) (u uint64, ok bool) {
	x = math.Trunc(x)
	width := bitsOf(to)
	if isSigned(to) {
		limit := math.Ldexp(1, width-1)
		return uint64(int64(x)), x >= -limit && x < limit
	}
	if x >= math.Ldexp(1, 63) {
		return uint64(x-math.Ldexp(1, 63)) + 1<<63, x < math.Ldexp(1, width)
	}
	return uint64(int64(x)), x >= 0 && x < math.Ldexp(1, width)
}

// toFloat is the value of an integer. If it will be rounded to a smaller type, it
// is rounded to odd here, so that it is rounded only once.
func toFloat(from string, u uint64, round bool) float64 {
	negative := isSigned(from) && int64(u) < 0
	if negative {
		u = -u
	}
	const low = 1<<11 - 1 // below the 53 bits of a float64
	if round && u>>53 != 0 && u&low != 0 {
		u = u&^low | 1<<11
	}
	if negative {
		return -float64(u)
	}
	return float64(u)
}
