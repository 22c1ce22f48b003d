package xla

import (
	"fmt"
	"math"
	"slices"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// arithmetic is what a compute type means for programs.
type arithmetic struct {
	activations stablehlo.Type
	precision   stablehlo.Precision
}

// arithmetics are the compute types. Parameters, sums and losses are f32 in all of them.
var arithmetics = map[string]arithmetic{
	spec.ComputeF32:  {stablehlo.F32, stablehlo.Highest},
	spec.ComputeTF32: {stablehlo.F32, stablehlo.Default},
	spec.ComputeBF16: {stablehlo.BF16, stablehlo.Default},
}

// source writes the programs of a model for micro-batches of one size. Arguments that
// are a list have one tensor for each variable, in the order of the layout; stats are the
// sums of loss and metrics, f32.
type source struct {
	model *model.Model
	vars  []model.Var
	batch int // records
	arithmetic
	deterministic bool
}

// name returns the name of a program. It has the characters that an MLIR symbol may have.
func (s *source) name(program string) string {
	clean := []byte(s.model.Name)
	for i, c := range clean {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			clean[i] = '_'
		}
	}
	return fmt.Sprintf("%s_%s", clean, program)
}

// drops reports whether training needs keys for dropout.
func (s *source) drops() bool {
	return slices.ContainsFunc(s.model.Layers, func(l model.Layer) bool { return l.Op == model.Dropout && l.Rate > 0 })
}

// stats is how many numbers the stats have.
func (s *source) stats() int { return 1 + len(s.model.Metrics) }

// variables adds an argument for each variable.
func (s *source) variables(f *stablehlo.Function) []value {
	all := make([]value, len(s.vars))
	for i, v := range s.vars {
		all[i] = f.Argument(stablehlo.F32, v.Shape...)
	}
	return all
}

// elementOf is the type of a tensor of the dataset.
func elementOf(t model.DType) stablehlo.Type {
	switch t {
	case model.U8:
		return stablehlo.U8
	case model.I32:
		return stablehlo.I32
	case model.I64:
		return stablehlo.I64
	}
	return stablehlo.F32
}

// inputs are the tensors of a micro-batch, in the order of a program's arguments.
func (s *source) inputs(training bool) []tensor {
	answer, elements := s.model.Answer()
	all := []tensor{
		{elementOf(s.model.Input.Type), append([]int{s.batch}, s.model.Input.Shape...)},
		{elementOf(answer), []int{s.batch, elements}},
		{stablehlo.F32, []int{s.batch}},
	}
	if training && s.drops() {
		all = append(all, tensor{stablehlo.U64, []int{s.batch}})
	}
	return all
}

// tensor is the type of a tensor.
type tensor struct {
	of   stablehlo.Type
	dims []int
}

// size returns the bytes of a tensor.
func (t tensor) size() int {
	n := t.of.Size()
	for _, d := range t.dims {
		n *= d
	}
	return n
}

// network adds the arguments of a micro-batch to a function with variables.
func (s *source) network(f *stablehlo.Function, variables []value, training bool) *network {
	n := &network{
		Function: f, model: s.model, batch: s.batch, compute: s.activations, training: training, deterministic: s.deterministic,
		variables: make(map[string]value), sums: make(map[string]value),
	}
	for i, v := range s.vars {
		n.variables[v.Name] = variables[i]
	}
	var in []value
	for _, t := range s.inputs(training) {
		in = append(in, f.Argument(t.of, t.dims...))
	}
	n.features, n.labels, n.weights = in[0], in[1], in[2]
	if len(in) > 3 {
		n.keys = in[3]
	}
	return n
}

// step is (variables, sums, stats, micro-batch) → (sums, stats), both added up: forward
// and backward. With count > 1 the tensors of the micro-batch have count times as many
// records, which are computed one micro-batch after the other.
func (s *source) step(count int) (string, error) {
	f := stablehlo.New(s.precision)
	variables := s.variables(f)
	sums := s.variables(f)
	stats := f.Argument(stablehlo.F32, s.stats())
	n := s.network(f, variables, true)
	added, gradients, err := s.gradientsOf(n)
	if err != nil {
		return "", err
	}
	first := len(variables)
	var results []value
	for i, g := range gradients {
		results = append(results, sums[i].Add(g))
	}
	results = append(results, stats.Add(added))
	if count > 1 {
		return f.Loop(s.name("steps"), count, first, first+len(results), results...), nil
	}
	for i := range results {
		f.Donate(first+i, i)
	}
	return f.Text(s.name("step"), results...), nil
}

// gradientsOf computes forward and backward. It returns the stats of the micro-batch, and the
// sums for each variable.
func (s *source) gradientsOf(n *network) (stats value, sums []value, err error) {
	outputs, back, err := n.forward()
	if err != nil {
		return nil, nil, err
	}
	stats, gradient := n.loss(outputs)
	back(gradient)
	for i, v := range s.vars {
		g := n.sums[v.Name]
		if g == nil { // the loss does not depend on it
			g = n.Fill(stablehlo.F32, 0, s.vars[i].Shape...)
		}
		sums = append(sums, g)
	}
	return stats, sums, nil
}

// evaluate is (variables, stats, micro-batch) → (stats, outputs): forward with running
// moments and without dropout.
func (s *source) evaluate() (string, error) {
	f := stablehlo.New(s.precision)
	variables := s.variables(f)
	stats := f.Argument(stablehlo.F32, s.stats())
	n := s.network(f, variables, false)
	outputs, _, err := n.forward()
	if err != nil {
		return "", err
	}
	added, _ := n.loss(outputs)
	f.Donate(len(variables), 0)
	rows := outputs.Reshape(s.batch, outputs.Size()/s.batch)
	counts := n.weights.Compare(stablehlo.Greater, n.weights.Fill(0)).Like(rows, 0)
	return f.Text(s.name("evaluate"), stats.Add(added), counts.Select(rows, rows.Fill(0))), nil
}

// begin is () → (sums, stats, valid): zeros, and a 1.
func (s *source) begin() string {
	f := stablehlo.New(s.precision)
	var results []value
	for _, v := range s.vars {
		results = append(results, f.Fill(stablehlo.F32, 0, v.Shape...))
	}
	return f.Text(s.name("begin"), append(results, f.Fill(stablehlo.F32, 0, s.stats()), f.Constant(stablehlo.F32, 1))...)
}

// split is (vector) → (variables).
func (s *source) split() string {
	f := stablehlo.New(s.precision)
	vector := f.Argument(stablehlo.F32, model.Length(s.vars))
	var results []value
	for _, v := range s.vars {
		results = append(results, vector.SliceDim(0, v.Offset, v.Offset+v.Len).Reshape(v.Shape...))
	}
	return f.Text(s.name("split"), results...)
}

// join is (sums, stats) → a vector of the sums with the stats behind them.
func (s *source) join() string {
	f := stablehlo.New(s.precision)
	var parts []value
	for _, v := range s.variables(f) {
		parts = append(parts, v.Reshape(v.Size()))
	}
	return f.Text(s.name("join"), stablehlo.Concatenate(0, append(parts, f.Argument(stablehlo.F32, s.stats()))...))
}

// tally is (sums, stats, valid) → (a vector, zeros in place of the stats, valid). Behind the
// stats, the vector has the sum of the squares of the trained variables' sums, the sum of
// the moments' sizes, and valid: a number that is not finite in any sum makes one of them not
// finite, and valid becomes 0 then, and stays 0.
func (s *source) tally() string {
	f := stablehlo.New(s.precision)
	sums := s.variables(f)
	stats, valid := f.Argument(stablehlo.F32, s.stats()), f.Argument(stablehlo.F32)
	f.Donate(len(s.vars), 1)
	f.Donate(len(s.vars)+1, 2)
	all, still := s.tallyOf(f, sums, stats, valid)
	return f.Text(s.name("tally"), all, stats.Fill(0), still)
}

// tallyOf returns the vector of tally, and valid.
func (s *source) tallyOf(f *stablehlo.Function, sums []value, stats, valid value) (all, still value) {
	trained, moments := f.Constant(stablehlo.F32, 0), f.Constant(stablehlo.F32, 0)
	for i, v := range sums {
		if flat := v.Reshape(v.Size()); s.vars[i].Kind == model.Moment {
			moments = moments.Add(flat.Abs().Sum(0))
		} else {
			trained = trained.Add(flat.Multiply(flat).Sum(0))
		}
	}
	size := stats.Abs().Sum(0).Add(trained).Add(moments)
	finite := size.Compare(stablehlo.LessOrEqual, f.Constant(stablehlo.F32, math.MaxFloat32))
	still = finite.Select(valid, valid.Fill(0))
	return stablehlo.Concatenate(0, stats, trained.Reshape(1), moments.Reshape(1), still.Reshape(1)), still
}

// extract is (count micro-batches, index) → the micro-batch of that index, without keys: an
// evaluation has no dropout.
func (s *source) extract(count int) string {
	f := stablehlo.New(s.precision)
	var many []value
	for _, t := range s.inputs(false) {
		many = append(many, f.Argument(t.of, times(t.dims, count)...))
	}
	from := f.Argument(stablehlo.I32).Multiply(f.Constant(stablehlo.I32, float64(s.batch)))
	var results []value
	for _, v := range many {
		results = append(results, v.Part(from, s.batch))
	}
	return f.Text(s.name("extract"), results...)
}

// times returns the dimensions of count micro-batches.
func times(dims []int, count int) []int {
	dims = slices.Clone(dims)
	dims[0] *= count
	return dims
}
