package stablehlotest

import "strings"

// region reads { ^bb0(%x: type, …): … } with a number of scalars, whose types are
// given, and compares the types of the results.
func (p *parser) region(parameters, results []Type) *block {
	line := p.line()
	p.want("{")
	p.take(caret, "^bb0")
	p.push()
	var ids []int
	p.want("(")
	p.separated(")", func() { ids = append(ids, p.parameter(line, len(ids), parameters)...) })
	p.want(":")
	return p.closedBody(line, ids, parameters, results)
}

// closedBody reads the rest of a region that uses no values from outside: XLA
// makes a function of it.
func (p *parser) closedBody(line int, ids []int, parameters, results []Type) *block {
	uses := len(p.uses)
	b := p.regionBody(line, ids, parameters, results)
	for _, id := range p.uses[min(uses, len(p.uses)):] {
		if len(ids) > 0 && id < ids[0] {
			p.fail(line, "the region uses a value from outside")
		}
	}
	return b
}

// parameter reads "%x: type".
func (p *parser) parameter(line, number int, types []Type) []int {
	name := p.take(value, "a parameter")
	p.want(":")
	t := p.tensorType()
	if p.err == nil && (number >= len(types) || !t.equal(types[number])) {
		p.fail(line, "parameter %d of the region is a %s, want %v", number, t, types)
	}
	return p.define(name, t)
}

// regionBody reads the rest of a region, in the scope that its parameters opened.
func (p *parser) regionBody(line int, ids []int, parameters, results []Type) *block {
	if p.err == nil && len(ids) != len(parameters) {
		p.fail(line, "the region has %d parameters, want %v", len(ids), parameters)
	}
	b := p.block(ids, false, func(line int, types []Type) { p.expect(line, types, results...) })
	p.pop()
	return b
}

// reducer is a region of two scalars of one type with one result.
type reducer struct {
	body    *block
	element string
	kind    string // of a region of one operation on its parameters in order
}

func newReducer(b *block, element string) reducer {
	r := reducer{body: b, element: element}
	if len(b.instructions) == 1 && len(b.parameters) == 2 {
		o := b.instructions[0]
		if equalInts(o.in, b.parameters) && equalInts(o.out, b.results) {
			r.kind = o.name
		}
	}
	return r
}

// regionReducer reads a region that makes one scalar of two.
func (p *parser) regionReducer(t Type, result string) reducer {
	b := p.region([]Type{t.scalar(), t.scalar()}, []Type{{Element: result}})
	if p.err != nil {
		return reducer{}
	}
	return newReducer(b, t.Element)
}

// bind makes a function of a region. It computes a single operation that is
// always defined without the region, and does not round its result then: sums
// within one operation stay float64. After an error it returns zeros.
func (r reducer) bind(f *frame, failed *error) func(x, y float64) float64 {
	name := trim(r.kind)
	if o, ok := binaries()[name]; ok && name != "divide" && name != "remainder" {
		return o.scalar(r.element)
	}
	if direction, ok := strings.CutPrefix(r.kind, "compare "); ok && isFloat(r.element) {
		holds := directions()[direction]
		return func(x, y float64) float64 {
			if holds(x < y, x == y, x > y) {
				return 1
			}
			return 0
		}
	}
	return func(x, y float64) float64 {
		if *failed != nil {
			return 0
		}
		t := Type{Element: r.element}
		out, err := f.run(r.body, []tensor{{t, []float64{x}, nil}, {t, []float64{y}, nil}})
		if err != nil {
			*failed = err
			return 0
		}
		return out[0].f[0]
	}
}

// trim is the operation's name without its dialect.
func trim(name string) string {
	const dialect = "stablehlo."
	if len(name) > len(dialect) && name[:len(dialect)] == dialect {
		return name[len(dialect):]
	}
	return ""
}
