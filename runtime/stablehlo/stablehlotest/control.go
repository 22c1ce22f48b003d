package stablehlotest

import "slices"

// callForm reads func.call @name(operands) : types. The function may follow later.
func callForm(p *parser) operation {
	name := p.take(symbol, "a function's name")
	in := p.arguments()
	got := p.signature(in)
	var types []Type
	for _, o := range in {
		types = append(types, o.t)
	}
	caller := p.function
	var called *function
	p.pending = append(p.pending, func() {
		called = p.program.functions[name.text]
		switch {
		case called == nil:
			p.fail(name.line, "unknown function @%s", name.text)
			return
		case !slices.EqualFunc(types, called.arguments, Type.equal):
			p.fail(name.line, "@%s is called with %v, want %v", name.text, types, called.arguments)
		case !slices.EqualFunc(got, called.results, Type.equal):
			p.fail(name.line, "@%s returns %v, the annotation says %v", name.text, called.results, got)
		}
		caller.calls = append(caller.calls, called)
	})
	return operation{in: in, results: got, eval: func(f *frame, in []tensor) ([]tensor, error) {
		return called.run(in, f.round)
	}}
}

// whileForm reads stablehlo.while(%i = %start, …) : types cond { … } do { … }.
func whileForm(p *parser) operation {
	line := p.line()
	var names []token
	var in []operand
	p.want("(")
	p.separated(")", func() {
		names = append(names, p.take(value, "a name"))
		p.want("=")
		in = append(in, p.operand())
	})
	p.want(":")
	var types []Type
	for i := range in {
		if i > 0 {
			p.want(",")
		}
		types = append(types, p.tensorType())
	}
	p.annotate(line, in, types)
	read := func(keyword string, results ...Type) *block {
		p.want(keyword)
		p.want("{")
		p.push()
		var ids []int
		for i, name := range names {
			if p.err == nil {
				ids = append(ids, p.define(name, types[i])...)
			}
		}
		return p.regionBody(line, ids, types, results)
	}
	condition := read("cond", Type{Element: "i1"})
	body := read("do", types...)
	return operation{in: in, results: types, eval: func(f *frame, in []tensor) ([]tensor, error) {
		for {
			more, err := f.run(condition, in)
			if err != nil {
				return nil, err
			}
			if more[0].f[0] == 0 {
				return in, nil
			}
			if in, err = f.run(body, in); err != nil {
				return nil, err
			}
		}
	}}
}
