package stablehlotest

import "math"

// forms are the operations of the package, by their names in the text; generic
// forms are quoted.
func forms() map[string]form {
	table := map[string]form{
		"func.call":                      callForm,
		"stablehlo.bitcast_convert":      bitcastForm,
		"stablehlo.broadcast_in_dim":     broadcastForm,
		"stablehlo.clamp":                clampForm,
		"stablehlo.compare":              compareForm,
		"stablehlo.concatenate":          concatenateForm,
		"stablehlo.constant":             constantForm,
		"stablehlo.convert":              convertForm,
		"stablehlo.convolution":          convolutionForm,
		"stablehlo.dot_general":          dotForm,
		"stablehlo.dynamic_slice":        dynamicSliceForm,
		"stablehlo.dynamic_update_slice": dynamicUpdateForm,
		"stablehlo.iota":                 iotaForm,
		"stablehlo.is_finite":            finiteForm,
		"stablehlo.pad":                  padForm,
		"stablehlo.reduce":               reduceForm,
		"stablehlo.reshape":              reshapeForm,
		"stablehlo.reverse":              reverseForm,
		"stablehlo.select":               selectForm,
		"stablehlo.slice":                sliceForm,
		"stablehlo.transpose":            transposeForm,
		"stablehlo.while":                whileForm,
		`"stablehlo.gather"`:             gatherForm,
		`"stablehlo.reduce"`:             genericReduceForm,
		`"stablehlo.reduce_window"`:      reduceWindowForm,
		`"stablehlo.scatter"`:            scatterForm,
		`"stablehlo.select_and_scatter"`: selectAndScatterForm,
	}
	for name, o := range binaries() {
		table["stablehlo."+name] = o.form(name)
	}
	for name, o := range unaries() {
		table["stablehlo."+name] = o.form()
	}
	return table
}

func convertForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	got := p.same(in)
	to := p.only(line, got)
	p.expect(line, got, in[0].t.with(to.Element))
	return operation{in: in, results: got, eval: func(f *frame, in []tensor) ([]tensor, error) {
		out, err := convert(in[0], to.Element, f.round)
		return []tensor{out}, err
	}}
}

// only is the one result of an operation that has one.
func (p *parser) only(line int, types []Type) Type {
	if p.err == nil && len(types) != 1 {
		p.fail(line, "%d results, want one", len(types))
	}
	if len(types) == 0 {
		return Type{}
	}
	return types[0]
}

// bitcastForm keeps the bits: between f32, i32 and ui32, and between integers of
// the same width.
func bitcastForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	got := p.signature(in)
	to, from := p.only(line, got), in[0].t
	p.expect(line, got, from.with(to.Element))
	if p.err == nil && bitsOf(from.Element) != bitsOf(to.Element) {
		p.fail(line, "a bitcast from %s to %s", from, to)
	}
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		out := newTensor(to)
		for i := range to.Size() {
			u := uint64(0)
			switch from.Element {
			case "f32":
				u = uint64(math.Float32bits(float32(in[0].f[i])))
			case "bf16":
				u = uint64(math.Float32bits(float32(roundBfloat(in[0].f[i]))) >> 16)
			default:
				u = in[0].bits(i)
			}
			switch to.Element {
			case "f32":
				out.f[i] = float64(math.Float32frombits(uint32(u)))
			case "bf16":
				out.f[i] = float64(math.Float32frombits(uint32(u) << 16))
			default:
				out.setBits(i, wrap(to.Element, u))
			}
		}
		return out
	})}
}

func finiteForm(p *parser) operation {
	line, in := p.line(), p.count(1)
	got := p.signature(in)
	p.expect(line, got, in[0].t.with("i1"))
	p.wantClass(line, in[0].t.Element, floats)
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		out := newTensor(in[0].t.with("i1"))
		for i, x := range in[0].f {
			if !math.IsInf(x, 0) && !math.IsNaN(x) {
				out.f[i] = 1
			}
		}
		return out
	})}
}

// directions are comparisons, as a function of less and equal; neither holds for
// NaN.
func directions() map[string]func(less, equal, greater bool) bool {
	return map[string]func(less, equal, greater bool) bool{
		"EQ": func(_, equal, _ bool) bool { return equal },
		"NE": func(_, equal, _ bool) bool { return !equal },
		"LT": func(less, _, _ bool) bool { return less },
		"LE": func(less, equal, _ bool) bool { return less || equal },
		"GT": func(_, _, greater bool) bool { return greater },
		"GE": func(_, equal, greater bool) bool { return greater || equal },
	}
}

// compareTypes has the comparison types that the specification allows.
func compareType(element string) string {
	switch classOf(element) {
	case floats:
		return "FLOAT"
	case signed:
		return "SIGNED"
	}
	return "UNSIGNED"
}

func compareForm(p *parser) operation {
	line, direction := p.line(), p.take(word, "a direction")
	holds := directions()[direction.text]
	if holds == nil {
		p.fail(line, "unknown direction %s", direction)
	}
	p.want(",")
	in := p.count(2)
	if p.accept(",") {
		if t := p.take(word, "a comparison type"); p.err == nil && t.text != compareType(in[0].t.Element) {
			p.fail(line, "comparison type %s of %s", t, in[0].t)
		}
	}
	got := p.signature(in)
	p.expect(line, []Type{in[1].t}, in[0].t)
	p.expect(line, got, in[0].t.with("i1"))
	return operation{in: in, results: got, kind: "compare " + direction.text, eval: one(func(in []tensor) tensor {
		out, element := newTensor(in[0].t.with("i1")), in[0].t.Element
		for i := range out.f {
			ok := false
			if isFloat(element) {
				x, y := in[0].f[i], in[1].f[i]
				ok = holds(x < y, x == y, x > y)
			} else {
				x, y := in[0].bits(i), in[1].bits(i)
				ok = holds(less(element, x, y), x == y, less(element, y, x))
			}
			if ok {
				out.f[i] = 1
			}
		}
		return out
	})}
}

func selectForm(p *parser) operation {
	line, in := p.line(), p.count(3)
	p.want(":")
	var got []Type
	if p.sees("(") {
		p.at--
		got = p.signature(in)
	} else {
		predicate := p.tensorType()
		p.want(",")
		t := p.tensorType()
		p.annotate(line, in, []Type{predicate, t, t})
		got = []Type{t}
	}
	p.expect(line, got, in[1].t)
	p.expect(line, []Type{in[2].t}, in[1].t)
	if c := in[0].t; p.err == nil && !c.equal(in[1].t.with("i1")) && !c.equal(Type{Element: "i1"}) {
		p.fail(line, "a choice by %s between values of %s", c, in[1].t)
	}
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		out := newTensor(in[1].t)
		for i := range in[1].t.Size() {
			from := in[2]
			if in[0].f[i%len(in[0].f)] != 0 {
				from = in[1]
			}
			if out.u != nil {
				out.u[i] = from.u[i]
			} else {
				out.f[i] = from.f[i]
			}
		}
		return out
	})}
}

func clampForm(p *parser) operation {
	line, in := p.line(), p.count(3)
	got := p.same(in)
	p.expect(line, got, in[1].t)
	for _, bound := range []operand{in[0], in[2]} {
		if p.err == nil && !bound.t.equal(in[1].t) && !bound.t.equal(in[1].t.scalar()) {
			p.fail(line, "%s is a bound of %s", bound.t, in[1].t)
		}
	}
	p.wantClass(line, in[1].t.Element, floats|integers)
	highest, lowest := binaries()["minimum"], binaries()["maximum"]
	return operation{in: in, results: got, eval: one(func(in []tensor) tensor {
		return highest.apply(lowest.apply(in[1], in[0].spread(in[1].t)), in[2].spread(in[1].t))
	})}
}

// spread repeats a scalar; other values are returned as they are.
func (v tensor) spread(t Type) tensor {
	if v.t.equal(t) {
		return v
	}
	return v.view(t, make([]int, t.rank()), 0)
}
