package stablehlotest

import (
	"fmt"
	"slices"
	"strconv"
)

// operand is a value in the text, with its number and type.
type operand struct {
	id int
	t  Type
}

// form parses what follows an operation's name, and checks it.
type form func(p *parser) operation

// operation is a checked operation.
type operation struct {
	in      []operand
	results []Type
	eval    evaluator
	kind    string // for regions of one operation: add, compare GE …
}

// parser checks a program while it reads it. After the first error it sees
// nothing but the end of the text, so that all loops stop.
type parser struct {
	tokens  []token
	at      int
	err     error
	program *Program
	forms   map[string]form

	function *function
	scopes   []map[string][]operand
	values   int
	uses     []int
	pending  []func() // checks of calls, after all functions
}

// Parse reads a program and checks it.
func Parse(source string) (*Program, error) {
	tokens, err := scan(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, forms: forms(), program: &Program{functions: map[string]*function{}}}
	p.module()
	for _, check := range p.pending {
		if p.err == nil {
			check()
		}
	}
	if p.err == nil {
		p.checkFunctions()
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.program, nil
}

func (p *parser) fail(line int, format string, values ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: "+format, append([]any{line}, values...)...)
	}
}

func (p *parser) peek() token {
	if p.err != nil {
		return token{line: p.line()}
	}
	return p.tokens[p.at]
}

func (p *parser) line() int { return p.tokens[p.at].line }

func (p *parser) next() token {
	t := p.peek()
	if t.kind != end {
		p.at++
	}
	return t
}

// sees reports whether a word or a mark is next.
func (p *parser) sees(s string) bool {
	t := p.peek()
	return (t.kind == word || t.kind == punctuation) && t.text == s
}

// accept takes a word or a mark if it is next.
func (p *parser) accept(s string) bool {
	if !p.sees(s) {
		return false
	}
	p.at++
	return true
}

func (p *parser) want(s string) {
	if !p.accept(s) {
		p.fail(p.line(), "%s, want %s", p.peek(), s)
	}
}

// take is the next token, which must be of a kind.
func (p *parser) take(k kind, name string) token {
	t := p.next()
	if t.kind != k {
		p.fail(t.line, "%s, want %s", t, name)
	}
	return t
}

// separated reads a list up to its closing mark, which is taken too.
func (p *parser) separated(closing string, item func()) {
	if p.accept(closing) {
		return
	}
	for {
		item()
		if !p.accept(",") {
			break
		}
	}
	p.want(closing)
}

// number is an integer, possibly negative.
func (p *parser) number() int {
	sign := ""
	if p.accept("-") {
		sign = "-"
	}
	t := p.take(integer, "an integer")
	n, err := strconv.ParseInt(sign+t.text, 10, 32)
	if err != nil {
		p.fail(t.line, "%s%s is not a number of 32 bits", sign, t)
	}
	return int(n)
}

// list is [1, 2, 3].
func (p *parser) list() []int {
	list := []int{}
	p.want("[")
	p.separated("]", func() { list = append(list, p.number()) })
	return list
}

// setting is a list with its name: dims = [0, 1].
func (p *parser) setting(name string) []int {
	p.want(name)
	p.want("=")
	return p.list()
}

func (p *parser) tensorType() Type { return p.take(tensorType, "a tensor's type").t }

// typeList is one type, or several in parentheses.
func (p *parser) typeList() []Type {
	if !p.accept("(") {
		return []Type{p.tensorType()}
	}
	types := []Type{}
	p.separated(")", func() { types = append(types, p.tensorType()) })
	return types
}

func (p *parser) module() {
	p.want("module")
	if p.peek().kind == symbol {
		p.program.name = p.next().text
	}
	p.want("{")
	for !p.accept("}") {
		if p.err != nil {
			return
		}
		p.readFunction()
	}
	if t := p.peek(); t.kind != end {
		p.fail(t.line, "%s behind the module", t)
	}
}

func (p *parser) readFunction() {
	fn := &function{line: p.line(), public: true, donated: map[int]int{}}
	p.function, p.values, p.scopes = fn, 0, nil
	p.want("func.func")
	if p.accept("private") {
		fn.public = false
	} else {
		p.accept("public")
	}
	name := p.take(symbol, "a function's name")
	fn.name = name.text
	if p.program.functions[fn.name] != nil {
		p.fail(name.line, "function @%s is defined twice", fn.name)
	}
	p.program.functions[fn.name] = fn
	p.push()
	var parameters []int
	p.want("(")
	p.separated(")", func() {
		name := p.take(value, "an argument")
		p.want(":")
		t := p.tensorType()
		parameters = append(parameters, p.define(name, t)...)
		fn.arguments = append(fn.arguments, t)
		if p.sees("{") {
			p.donate(len(fn.arguments) - 1)
		}
	})
	if p.accept("->") {
		fn.results = p.typeList()
	}
	p.checkDonated()
	p.want("{")
	fn.body = p.block(parameters, true, func(line int, types []Type) {
		if !slices.EqualFunc(types, fn.results, Type.equal) {
			p.fail(line, "@%s returns %v, want %v", fn.name, types, fn.results)
		}
	})
	p.pop()
	fn.values = p.values
}

// donate reads the attributes of an argument.
func (p *parser) donate(argument int) {
	line := p.line()
	p.dictionary("{", "}", map[string]func(){"tf.aliasing_output": func() {
		n := p.number()
		p.want(":")
		p.want("i32")
		if !p.function.public {
			p.fail(line, "an argument of a private function is donated")
		}
		p.function.donated[argument] = n
	}})
}

// checkDonated compares donated arguments with the results that take their
// memory.
func (p *parser) checkDonated() {
	fn, taken := p.function, map[int]bool{}
	for a := range len(fn.arguments) {
		r, ok := fn.donated[a]
		switch {
		case !ok || p.err != nil:
		case r < 0 || r >= len(fn.results):
			p.fail(fn.line, "argument %d is donated to result %d of %d", a, r, len(fn.results))
		case taken[r]:
			p.fail(fn.line, "two arguments are donated to result %d", r)
		case !fn.arguments[a].equal(fn.results[r]):
			p.fail(fn.line, "argument %d, a %s, is donated to result %d, a %s", a, fn.arguments[a], r, fn.results[r])
		}
		if ok {
			taken[r] = true
		}
	}
}

// checkFunctions requires a public main, and that no function calls itself.
func (p *parser) checkFunctions() {
	p.program.main = p.program.functions["main"]
	if p.program.main == nil || !p.program.main.public {
		p.fail(p.line(), "the module has no public function @main")
	}
	const open, closed = 1, 2
	state := map[*function]int{}
	var visit func(fn *function)
	visit = func(fn *function) {
		if state[fn] == open {
			p.fail(fn.line, "function @%s calls itself", fn.name)
		}
		if state[fn] != 0 {
			return
		}
		state[fn] = open
		for _, called := range fn.calls {
			visit(called)
		}
		state[fn] = closed
	}
	for _, fn := range p.program.functions {
		visit(fn)
	}
}

// dictionary reads named attributes. Unknown ones are errors.
func (p *parser) dictionary(opening, closing string, known map[string]func()) (found map[string]bool) {
	found = map[string]bool{}
	p.want(opening)
	p.separated(closing, func() { p.attribute(known, found) })
	return found
}

// attribute reads one known attribute.
func (p *parser) attribute(known map[string]func(), found map[string]bool) {
	t := p.take(word, "an attribute's name")
	read := known[t.text]
	switch {
	case read == nil:
		p.fail(t.line, "unknown attribute %s", t)
		return
	case found[t.text]:
		p.fail(t.line, "attribute %s appears twice", t)
	}
	found[t.text] = true
	p.want("=")
	read()
}
