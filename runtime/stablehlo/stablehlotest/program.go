package stablehlotest

import (
	"fmt"
	"maps"
	"slices"
)

// Program is a parsed and checked program.
type Program struct {
	name      string
	functions map[string]*function
	main      *function
	round     bool
}

// Options of a program.
type Options struct {
	// Round rounds arguments and the results of all operations with the types
	// f32 and bf16 to their type. Sums within one operation stay float64.
	Round bool
}

// Set changes the options.
func (p *Program) Set(o Options) { p.round = o.Round }

// Name is the module's name, "" if it has none.
func (p *Program) Name() string { return p.name }

// Arguments are the types of main's arguments.
func (p *Program) Arguments() []Type { return slices.Clone(p.main.arguments) }

// Results are the types of main's results.
func (p *Program) Results() []Type { return slices.Clone(p.main.results) }

// Donated has, for each donated argument, the result that takes its memory.
func (p *Program) Donated() map[int]int { return maps.Clone(p.main.donated) }

// Run computes main. Arguments are only read.
func (p *Program) Run(arguments []Tensor) ([]Tensor, error) {
	if len(arguments) != len(p.main.arguments) {
		return nil, fmt.Errorf("%d arguments, want %d", len(arguments), len(p.main.arguments))
	}
	in := make([]tensor, len(arguments))
	for i, a := range arguments {
		var err error
		if in[i], err = a.check(p.main.arguments[i]); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		if p.round {
			in[i].f = slices.Clone(in[i].f)
			in[i].round()
		}
	}
	out, err := p.main.run(in, p.round)
	if err != nil {
		return nil, err
	}
	results := make([]Tensor, len(out))
	for i, v := range out {
		results[i] = Tensor{v.t.Element, slices.Clone(v.t.Dims), slices.Clone(v.f), slices.Clone(v.u)}
	}
	return results, nil
}

// function is one function of a program.
type function struct {
	name      string
	line      int
	public    bool
	arguments []Type
	results   []Type
	donated   map[int]int
	body      *block
	values    int         // number of values in the body and its regions
	calls     []*function // functions that the body calls
}

// block is a list of instructions. Values have numbers that are unique within a
// function.
type block struct {
	parameters   []int
	instructions []*instruction
	results      []int
}

// evaluator computes the results of an instruction.
type evaluator func(f *frame, in []tensor) ([]tensor, error)

type instruction struct {
	name    string
	line    int
	in, out []int
	eval    evaluator
	uses    []int // values used here and in regions
	release []int // values that nothing uses later
}

// frame holds the values of one call of a function.
type frame struct {
	values []tensor
	round  bool
}

func (fn *function) run(in []tensor, round bool) ([]tensor, error) {
	f := &frame{values: make([]tensor, fn.values), round: round}
	return f.run(fn.body, in)
}

// run computes a block.
func (f *frame) run(b *block, parameters []tensor) ([]tensor, error) {
	for i, id := range b.parameters {
		f.values[id] = parameters[i]
	}
	for _, o := range b.instructions {
		in := make([]tensor, len(o.in))
		for i, id := range o.in {
			in[i] = f.values[id]
		}
		out, err := o.eval(f, in)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", o.line, o.name, err)
		}
		for i, v := range out {
			if f.round {
				v.round()
			}
			f.values[o.out[i]] = v
		}
		for _, id := range o.release {
			f.values[id] = tensor{}
		}
	}
	results := make([]tensor, len(b.results))
	for i, id := range b.results {
		results[i] = f.values[id]
	}
	return results, nil
}

// findLastUses notes for each instruction the block's values that end with it.
func (b *block) findLastUses() {
	own := map[int]bool{}
	for _, id := range b.parameters {
		own[id] = true
	}
	for _, o := range b.instructions {
		for _, id := range o.out {
			own[id] = true
		}
	}
	for _, id := range b.results {
		delete(own, id)
	}
	for _, o := range slices.Backward(b.instructions) {
		for _, id := range slices.Concat(o.uses, o.out) {
			if own[id] {
				o.release = append(o.release, id)
				delete(own, id)
			}
		}
	}
}
