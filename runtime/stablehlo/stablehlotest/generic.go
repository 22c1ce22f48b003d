package stablehlotest

// generic reads the attributes and regions of an operation in its generic form:
// "name"(operands) <{attributes}> ({region}, {region}) {attributes} : types.
// Attributes are allowed in both places, each once.
type generic struct {
	p     *parser
	line  int
	known map[string]func()
	found map[string]bool
	needs []string
}

// arguments reads operands in parentheses.
func (p *parser) arguments() []operand {
	var in []operand
	p.want("(")
	p.separated(")", func() { in = append(in, p.operand()) })
	return in
}

func (p *parser) generic(known map[string]func(), needs ...string) *generic {
	g := &generic{p: p, line: p.line(), known: known, found: map[string]bool{}, needs: needs}
	if p.accept("<") {
		g.read()
		p.want(">")
	}
	return g
}

func (g *generic) read() {
	g.p.want("{")
	g.p.separated("}", func() { g.p.attribute(g.known, g.found) })
}

// regions reads regions in parentheses.
func (g *generic) regions(read ...func()) {
	g.p.want("(")
	for i, r := range read {
		if i > 0 {
			g.p.want(",")
		}
		r()
	}
	g.p.want(")")
}

// end reads the attributes behind the regions.
func (g *generic) end() {
	if g.p.sees("{") {
		g.read()
	}
	for _, name := range g.needs {
		if !g.found[name] {
			g.p.fail(g.line, "attribute %s is missing", name)
		}
	}
}

// array64 reads array<i64: 1, 2>.
func (p *parser) array64() []int {
	list := []int{}
	p.want("array")
	p.want("<")
	p.want("i64")
	if p.accept(">") {
		return list
	}
	p.want(":")
	p.separated(">", func() { list = append(list, p.number()) })
	return list
}

// integer64 reads 1 : i64; the type may be left out.
func (p *parser) integer64() int {
	n := p.number()
	if p.accept(":") {
		p.want("i64")
	}
	return n
}

func (p *parser) boolean() bool {
	if p.accept("true") {
		return true
	}
	p.want("false")
	return false
}

// pairs reads dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>.
func (p *parser) pairs() [][2]int {
	l := p.dense()
	p.want(":")
	t := p.tensorType()
	if p.err == nil && (t.rank() != 2 || t.Dims[1] != 2 || t.Element != "i64" || t.Size() > 64) {
		p.fail(l.line, "%s, want pairs of i64", t)
	}
	v, _ := p.elements(l, t)
	if p.err != nil {
		return nil
	}
	v = v.view(t, v.strides(t), 0)
	var list [][2]int
	for i := range t.Dims[0] {
		list = append(list, [2]int{v.index(2 * i), v.index(2*i + 1)})
	}
	return list
}

// structure reads #stablehlo.NAME<key = value, …>.
func (p *parser) structure(name string, known map[string]func()) {
	t := p.take(hash, "#stablehlo."+name)
	if t.text != "stablehlo."+name {
		p.fail(t.line, "%s, want #stablehlo.%s", t, name)
	}
	p.dictionary("<", ">", known)
}
