package stablehlotest

import (
	"slices"
	"strconv"
)

func (p *parser) push() { p.scopes = append(p.scopes, map[string][]operand{}) }

func (p *parser) pop() {
	if len(p.scopes) > 0 {
		p.scopes = p.scopes[:len(p.scopes)-1]
	}
}

// define gives a name to new values. A name must not be visible already, outside
// of a region either.
func (p *parser) define(name token, types ...Type) []int {
	for _, scope := range p.scopes {
		if scope[name.text] != nil {
			p.fail(name.line, "%s is defined twice", name)
		}
	}
	var ids []int
	for _, t := range types {
		p.scopes[len(p.scopes)-1][name.text] = append(p.scopes[len(p.scopes)-1][name.text], operand{p.values, t})
		ids = append(ids, p.values)
		p.values++
	}
	return ids
}

// operand reads a use of a value: %name, or %name#1.
func (p *parser) operand() operand {
	name := p.take(value, "a value")
	number := 0
	if p.peek().kind == hash {
		t := p.next()
		n, err := strconv.ParseUint(t.text, 10, 16)
		if err != nil {
			p.fail(t.line, "%s, want the number of a result", t)
		}
		number = int(n)
	}
	if p.err != nil {
		return operand{}
	}
	for _, scope := range slices.Backward(p.scopes) {
		group := scope[name.text]
		switch {
		case group == nil:
			continue
		case number >= len(group):
			p.fail(name.line, "%s has %d results, not result %d", name, len(group), number)
			return operand{}
		}
		p.uses = append(p.uses, group[number].id)
		return group[number]
	}
	p.fail(name.line, "%s is used before its definition", name)
	return operand{}
}

// operands reads values with commas between them.
func (p *parser) operands() []operand {
	list := []operand{p.operand()}
	for p.accept(",") {
		list = append(list, p.operand())
	}
	return list
}

// count reads a number of operands.
func (p *parser) count(n int) []operand {
	var list []operand
	for i := range n {
		if i > 0 {
			p.want(",")
		}
		list = append(list, p.operand())
	}
	return list
}

// signature reads ": (types) -> types" and compares the operands with it.
func (p *parser) signature(in []operand) []Type {
	p.want(":")
	line := p.line()
	if !p.sees("(") {
		p.fail(line, "%s, want the types of the operands in parentheses", p.peek())
	}
	types := p.typeList()
	p.annotate(line, in, types)
	p.want("->")
	return p.typeList()
}

// annotate compares operands with the types in the text.
func (p *parser) annotate(line int, in []operand, types []Type) {
	if len(in) != len(types) {
		p.fail(line, "%d operands have %d types", len(in), len(types))
	}
	for i := range min(len(in), len(types)) {
		if !in[i].t.equal(types[i]) {
			p.fail(line, "operand %d is a %s, its annotation says %s", i, in[i].t, types[i])
		}
	}
}

// same reads the type of operands and result where all are of one type, or a
// signature.
func (p *parser) same(in []operand) []Type {
	if p.at+1 < len(p.tokens) && p.tokens[p.at+1].text == "(" {
		return p.signature(in)
	}
	p.want(":")
	line := p.line()
	t := p.tensorType()
	p.annotate(line, in, slices.Repeat([]Type{t}, len(in)))
	return []Type{t}
}

// expect compares the types of results in the text with the operation's results.
func (p *parser) expect(line int, got []Type, want ...Type) {
	if p.err == nil && !slices.EqualFunc(got, want, Type.equal) {
		p.fail(line, "the result is %v, its annotation says %v", want, got)
	}
}

// block reads instructions up to a return, and the closing brace.
func (p *parser) block(parameters []int, outer bool, check func(line int, types []Type)) *block {
	b := &block{parameters: parameters}
	for p.err == nil {
		if !outer && p.accept("stablehlo.return") || outer && (p.accept("return") || p.accept("func.return")) {
			p.results(b, check)
			p.want("}")
			b.findLastUses()
			return b
		}
		if o := p.instruction(outer); o != nil {
			b.instructions = append(b.instructions, o)
		}
	}
	return b
}

// results reads the values that a block returns.
func (p *parser) results(b *block, check func(line int, types []Type)) {
	line := p.line()
	var types []Type
	if p.peek().kind == value {
		in := p.operands()
		p.want(":")
		for i, o := range in {
			if i > 0 {
				p.want(",")
			}
			types = append(types, p.tensorType())
			b.results = append(b.results, o.id)
		}
		p.annotate(line, in, types)
	}
	if p.err == nil {
		check(line, types)
	}
}

// instruction reads "%name = operation …".
func (p *parser) instruction(outer bool) *instruction {
	type group struct {
		name  token
		count int
	}
	var groups []group
	if p.peek().kind == value {
		for {
			g := group{p.take(value, "a name"), 1}
			if p.accept(":") {
				g.count = p.number()
			}
			if g.count < 1 {
				p.fail(g.name.line, "%s:%d", g.name, g.count)
			}
			groups = append(groups, g)
			if !p.accept(",") {
				break
			}
		}
		p.want("=")
	}
	name := p.next()
	key := name.text
	if name.kind == text {
		key = strconv.Quote(key)
	} else if key == "call" && outer {
		key = "func.call" // the dialect of a function's body needs no name
	}
	read := p.forms[key]
	if name.kind != word && name.kind != text || read == nil {
		p.fail(name.line, "unknown operation %s", name)
		return nil
	}
	before := p.uses
	p.uses = nil
	o := read(p)
	i := &instruction{name: o.kind, line: name.line, eval: o.eval, uses: p.uses}
	if i.name == "" {
		i.name = name.text
	}
	p.uses = append(before, p.uses...)
	for _, in := range o.in {
		i.in = append(i.in, in.id)
	}
	left := o.results
	for _, g := range groups {
		if p.err == nil && g.count > len(left) {
			p.fail(name.line, "%s gives %d results", name, len(o.results))
		}
		if p.err != nil {
			return nil
		}
		i.out = append(i.out, p.define(g.name, left[:g.count]...)...)
		left = left[g.count:]
	}
	if len(left) > 0 {
		p.fail(name.line, "%s gives %d results, %d have a name", name, len(o.results), len(o.results)-len(left))
	}
	return i
}
