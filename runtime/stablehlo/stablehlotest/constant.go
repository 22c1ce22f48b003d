package stablehlotest

import (
	"math"
	"strconv"
)

// literal is a dense attribute: numbers, and the shape of the brackets.
type literal struct {
	line    int
	shape   []int
	numbers []number
}

type number struct {
	token    token
	negative bool
}

// dense reads dense<…>.
func (p *parser) dense() literal {
	l := literal{line: p.line()}
	p.want("dense")
	p.want("<")
	if !p.sees(">") {
		l.shape = p.nested(&l, 0)
	} else {
		l.shape = []int{0}
	}
	p.want(">")
	return l
}

// nested reads a number, or a list of lists of the same shape.
func (p *parser) nested(l *literal, depth int) []int {
	if !p.accept("[") {
		n := number{negative: p.accept("-")}
		n.token = p.next()
		switch t := n.token; {
		case t.kind == integer, t.kind == hexadecimal, t.kind == decimal:
		case t.kind == word && (t.text == "true" || t.text == "false") && !n.negative:
		default:
			p.fail(t.line, "%s, want a number", t)
		}
		l.numbers = append(l.numbers, n)
		return nil
	}
	if depth > 16 {
		p.fail(l.line, "too many brackets")
	}
	var inner []int
	count := 0
	p.separated("]", func() {
		shape := p.nested(l, depth+1)
		if count > 0 && !equalInts(shape, inner) {
			p.fail(l.line, "lists of different lengths")
		}
		inner = shape
		count++
	})
	return append([]int{count}, inner...)
}

func equalInts(a, b []int) bool { return Type{Dims: a}.equal(Type{Dims: b}) }

// value is a number as a type has it.
func (p *parser) value(n number, element string) (f float64, u uint64) {
	t, width := n.token, bitsOf(element)
	bad := func(reason string) { p.fail(t.line, "%s as %s: %s", t, element, reason) }
	switch {
	case p.err != nil:
	case t.kind == word:
		if element != "i1" {
			bad("a boolean")
		}
		if t.text == "true" {
			return 1, 1
		}
	case isFloat(element) && t.kind == hexadecimal:
		u, err := strconv.ParseUint(t.text, 16, width)
		if err != nil || n.negative {
			bad("not the bits of such a value")
		}
		return float64(math.Float32frombits(uint32(u) << (32 - width))), 0
	case isFloat(element):
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil || t.kind != decimal || math.IsInf(roundTo(element, f), 0) {
			bad("not a number with a point, or too large")
		}
		if n.negative {
			f = -f
		}
		return f, 0
	default:
		u = p.integer(n, element)
		return float64(int64(u)), u
	}
	return 0, 0
}

func (p *parser) integer(n number, element string) uint64 {
	base, width := 10, bitsOf(element)
	if n.token.kind == hexadecimal {
		base = 16
	}
	u, err := strconv.ParseUint(n.token.text, base, width)
	switch {
	case err != nil || n.token.kind == decimal:
		p.fail(n.token.line, "%s is not a value of %s", n.token, element)
	case n.negative && (!isSigned(element) && element != "i1" || u > 1<<(width-1)):
		p.fail(n.token.line, "-%s is not a value of %s", n.token, element)
	case n.negative:
		u = -u
	}
	return wrap(element, u)
}

// elements are a literal's values as a tensor of a type; one number is repeated.
func (p *parser) elements(l literal, t Type) (v tensor, splat bool) {
	splat = len(l.shape) == 0
	if p.err == nil && !splat && !equalInts(l.shape, t.Dims) {
		p.fail(l.line, "values of the shape %v as %s", l.shape, t)
	}
	if p.err != nil {
		return tensor{}, splat
	}
	if splat {
		t = t.scalar()
	}
	v = newTensor(t)
	for i, n := range l.numbers {
		f, u := p.value(n, t.Element)
		if v.u != nil {
			v.u[i] = u
		} else {
			v.f[i] = f
		}
	}
	return v, splat
}

func constantForm(p *parser) operation {
	l := p.dense()
	p.want(":")
	t := p.tensorType()
	v, _ := p.elements(l, t)
	return operation{results: []Type{t}, eval: func(f *frame, _ []tensor) ([]tensor, error) {
		// Copied, because rounding is in place.
		return []tensor{v.view(t, v.strides(t), 0)}, nil
	}}
}

func iotaForm(p *parser) operation {
	line := p.line()
	p.want("dim")
	p.want("=")
	along := p.number()
	p.want(":")
	t := p.tensorType()
	if p.err == nil && (along < 0 || along >= t.rank()) {
		p.fail(line, "dimension %d of %s", along, t)
	}
	p.wantClass(line, t.Element, floats|integers)
	return operation{results: []Type{t}, eval: one(func([]tensor) tensor {
		out := newTensor(t)
		inner := Type{Dims: t.Dims[along+1:]}.Size()
		for i := range t.Size() {
			n := i / inner % t.Dims[along]
			if out.u != nil {
				out.u[i] = uint64(n)
			} else {
				out.f[i] = float64(n)
			}
		}
		return out
	})}
}
