package xla

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// Update implements engine.Updater: parameters and slots stay on the device. The next call
// returns an error of the run itself, and the parameters are lost with it.
func (r *replica) Update(sums []float32, weight float64, recipe optimizer.Recipe) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := engine.CheckUpdate(sums, weight, recipe, len(r.vector), r.sums != nil)
	switch {
	case r.closed.Load():
		err = errClosed
	case err == nil && weight > 0:
		err = r.update(sums, weight, recipe)
	}
	if err != nil {
		return fmt.Errorf("update: %w", r.explain(err))
	}
	return nil
}

func (r *replica) update(sums []float32, weight float64, recipe optimizer.Recipe) error {
	kind := updateOf(recipe)
	kind.resident = sums == nil
	if kind.resident && r.deferred != nil && kind == r.newest {
		return trainDeferred(r, kind, weight, recipe)
	}
	if err := beginDeferred(r); err != nil {
		return err
	}
	program, err := r.compileText(kind.program(), func() string { return r.source.updating(kind) })
	if err != nil {
		return err
	}
	if r.stale {
		if err := errors.Join(r.load(), waitAll(r.variables)); err != nil {
			r.stale = true
			return err
		}
	}
	if err := placeForUpdate(r, kind, weight, recipe); err != nil {
		return err
	}
	n := len(r.vars)
	arguments := stateOf(r, kind)
	if kind.resident {
		arguments = append(append(arguments, r.sums[:n]...), r.numbers, r.valid)
	} else {
		vector, err := r.uploadFloats(sums)
		if err != nil {
			return err
		}
		defer closeAll([]Buffer{vector})
		arguments = append(arguments, vector, r.numbers)
	}
	results, err := program.Run(arguments...)
	if err != nil {
		return err
	}
	results = keepState(r, kind, results)
	if kind.resident {
		copy(r.sums, results)
		r.single, r.begun, r.newest = r.begun == 1, 0, kind
	}
	return nil
}

// placeForUpdate copies slots and numbers to the device that it does not have.
func placeForUpdate(r *replica, kind updateKind, weight float64, recipe optimizer.Recipe) error {
	if err := r.placeSlots(kind.slots()); err != nil {
		return err
	}
	return r.placeNumbers(kind.numbers(recipe, weight))
}

// stateOf returns variables and slots, the first arguments of an update.
func stateOf(r *replica, kind updateKind) []Buffer {
	all := append([]Buffer(nil), r.variables...)
	for _, slot := range r.updated[:kind.slots()] {
		all = append(all, slot...)
	}
	return all
}

// keepState keeps the first results of an update, and returns the others.
func keepState(r *replica, kind updateKind, results []Buffer) []Buffer {
	n := len(r.vars)
	r.variables, results = results[:n:n], results[n:]
	for i := range kind.slots() {
		r.updated[i], results = results[:n:n], results[n:]
	}
	r.ahead = true
	return results
}

// placeNumbers copies the numbers of an update to the device, unless it has them.
func (r *replica) placeNumbers(numbers []float32) error {
	if r.numbers != nil && slices.Equal(numbers, r.placed) {
		return nil
	}
	b, err := r.uploadFloats(numbers)
	if err != nil {
		return err
	}
	if r.numbers != nil {
		err = r.numbers.Close()
	}
	r.numbers, r.placed = b, numbers
	return err
}

// waitAll waits for tensors before an update donates them: their late errors would become
// errors of the parameters.
func waitAll(buffers []Buffer) error {
	for _, b := range buffers {
		if err := b.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// placeSlots copies the slots to the device that are not there yet.
func (r *replica) placeSlots(n int) error {
	r.keepSlots(n)
	for i := len(r.updated); i < len(r.slots); i++ {
		slot, err := r.place(r.slots[i])
		if err = errors.Join(err, waitAll(slot)); err != nil {
			closeAll(slot)
			return err
		}
		r.updated = append(r.updated, slot)
	}
	return nil
}

// dropUpdated closes the slots on the device.
func (r *replica) dropUpdated() {
	for _, slot := range r.updated {
		closeAll(slot)
	}
	r.updated = nil
}

// fetch copies parameters and slots from the device that were updated there.
func (r *replica) fetch() (err error) {
	if err := beginDeferred(r); err != nil {
		return r.explain(err)
	}
	if !r.ahead {
		return nil
	}
	for i, from := range append([][]Buffer{r.variables}, r.updated...) {
		flat, err := r.run("pack", r.pack, from...)
		if err != nil {
			return r.explain(err)
		}
		to := r.vector
		if i > 0 {
			to = r.slots[i-1]
		}
		if _, err := r.download(flat[0], len(to), to); err != nil {
			return r.explain(err)
		}
	}
	r.ahead = false
	return nil
}

// pack is (variables) → vector.
func (s *source) pack() string {
	f := stablehlo.New(s.precision)
	var parts []value
	for _, v := range s.variables(f) {
		parts = append(parts, v.Reshape(v.Size()))
	}
	return f.Text(s.name("pack"), stablehlo.Concatenate(0, parts...))
}

// updateKind is an update whose numbers are arguments, so that a schedule compiles
// nothing.
type updateKind struct {
	name     string
	clips    bool // the norm of the gradients
	resident bool // the sums of the running pass, which the program zeroes
	trains   bool // the program computes the sums
	tallies  bool // and their numbers
}

// The names of updates.
const (
	plainUpdate    = "sgd"
	momentumUpdate = "momentum"
	nesterovUpdate = "nesterov"
	adagradUpdate  = "adagrad"
	adamUpdate     = "adam" // and AdamW, which shrinks the parameters in place of a decay
)

func updateOf(r optimizer.Recipe) updateKind {
	k := updateKind{name: momentumUpdate, clips: r.ClipNorm > 0}
	switch {
	case r.Name == optimizer.Adam || r.Name == optimizer.AdamW:
		k.name = adamUpdate
	case r.Name == optimizer.Adagrad:
		k.name = adagradUpdate
	case r.Momentum == 0:
		k.name = plainUpdate
	case r.Nesterov:
		k.name = nesterovUpdate
	}
	return k
}

// slots returns how many slots the update keeps.
func (k updateKind) slots() int {
	switch k.name {
	case plainUpdate:
		return 0
	case adamUpdate:
		return 2
	}
	return 1
}

// program returns the name of the program.
func (k updateKind) program() string {
	name := "update_" + k.name
	if k.trains {
		name = "train_" + k.name
	}
	if k.clips {
		name += "_clipped"
	}
	switch {
	case k.tallies:
		name += "_tallied"
	case k.resident && !k.trains:
		name += "_resident"
	}
	return name
}

// The places of an update's numbers.
const (
	numberMean = iota // 1/weight
	numberRate
	numberDecay // added to the gradient of variables that decay, times the variable
	numberShrink
	numberFirst  // momentum, or β₁
	numberSecond // β₂
	numberRestFirst
	numberRestSecond
	numberEpsilon
	numberCorrection // of the second slot's root
	numberClip       // the largest norm of the mean gradient
	numbersOfUpdate
)

// numbers are the arguments of an update; see optimizer.Update.
func (k updateKind) numbers(r optimizer.Recipe, weight float64) []float32 {
	n := make([]float32, numbersOfUpdate)
	n[numberMean], n[numberClip] = float32(1/weight), r.ClipNorm
	n[numberRate], n[numberDecay], n[numberShrink] = r.LearningRate, r.WeightDecay, 1
	n[numberFirst], n[numberEpsilon] = r.Momentum, float32(r.Epsilon)
	if k.name != adamUpdate {
		return n
	}
	if r.Name == optimizer.AdamW {
		n[numberShrink], n[numberDecay] = float32(1-float64(r.LearningRate)*float64(r.WeightDecay)), 0
	}
	step := float64(r.Step)
	n[numberRate] = float32(float64(r.LearningRate) / (1 - math.Pow(r.Beta1, step)))
	n[numberCorrection] = float32(math.Sqrt(1 - math.Pow(r.Beta2, step)))
	n[numberFirst], n[numberRestFirst] = float32(r.Beta1), float32(1-r.Beta1)
	n[numberSecond], n[numberRestSecond] = float32(r.Beta2), float32(1-r.Beta2)
	return n
}

// updating is (variables, slots, vector of sums, numbers) → (variables, slots). Where the
// sums are resident, they are a list, the program has zeros in their place, and valid is its
// last argument: with 0 it leaves variables and slots as they are.
func (s *source) updating(k updateKind) string {
	f := stablehlo.New(s.precision)
	lists := s.stateOf(f, k) // results in the order of the arguments
	sums := s.gradients(f, k)
	numbers := f.Argument(stablehlo.F32, numbersOfUpdate)
	var valid value
	if k.resident {
		valid = f.Argument(stablehlo.F32)
	}
	s.updateAll(f, k, lists, sums, numbers, valid)
	var results []value
	for _, list := range lists {
		results = append(results, list...)
	}
	if k.resident {
		for _, sum := range sums {
			results = append(results, sum.Fill(0))
		}
	}
	for i := range results {
		f.Donate(i, i)
	}
	return f.Text(s.name(k.program()), results...)
}

// stateOf adds variables and slots as arguments, a list each.
func (s *source) stateOf(f *stablehlo.Function, k updateKind) (lists [][]value) {
	for range 1 + k.slots() {
		lists = append(lists, s.variables(f))
	}
	return lists
}

// updateAll puts updated variables and slots in place of those in the lists. Where valid is 0
// they stay as they are; nil: they are updated in any case.
func (s *source) updateAll(f *stablehlo.Function, k updateKind, lists [][]value, sums []value, numbers, valid value) {
	scalar := func(i int) value { return numbers.SliceDim(0, i, i+1).Reshape() }
	factor := scalar(numberMean)
	if k.clips {
		factor = factor.Multiply(s.clip(f, sums, factor, scalar(numberClip)))
	}
	for i, v := range s.vars {
		u := updating{like: sums[i], scalar: scalar}
		own := make([]value, len(lists))
		for j, list := range lists {
			own[j] = list[i]
		}
		if v.Kind == model.Moment {
			mean := sums[i].Multiply(u.number(numberMean))
			own[0] = own[0].Scale(float64(v.Momentum)).Add(mean.Scale(float64(1 - v.Momentum)))
		} else {
			g := sums[i].Multiply(factor.Like(sums[i]))
			if v.Decay {
				g = g.Add(u.number(numberDecay).Multiply(own[0]))
			}
			u.apply(k, own, g, v.Decay)
		}
		for j, list := range lists {
			if valid != nil {
				own[j] = valid.Like(own[j]).Compare(stablehlo.Greater, own[j].Fill(0)).Select(own[j], list[i])
			}
			list[i] = own[j]
		}
	}
}

// gradients adds the sums as arguments. A vector is cut in this program: a run before it
// could fail late, after the variables have been donated.
func (s *source) gradients(f *stablehlo.Function, k updateKind) []value {
	if k.resident {
		return s.variables(f)
	}
	vector := f.Argument(stablehlo.F32, model.Length(s.vars))
	all := make([]value, len(s.vars))
	for i, v := range s.vars {
		all[i] = vector.SliceDim(0, v.Offset, v.Offset+v.Len).Reshape(v.Shape...)
	}
	return all
}

// clip returns the factor that brings the norm of the mean gradient down to a limit: at
// most 1.
func (s *source) clip(f *stablehlo.Function, sums []value, mean, limit value) value {
	total := f.Constant(stablehlo.F32, 0)
	for i, v := range s.vars {
		if v.Kind != model.Moment {
			flat := sums[i].Reshape(v.Len)
			total = total.Add(flat.Multiply(flat).Sum(0))
		}
	}
	norm := total.Sqrt().Multiply(mean)
	return norm.Compare(stablehlo.Greater, limit).Select(limit.Divide(norm), norm.Fill(1))
}

// updating is the update of one variable.
type updating struct {
	like   value // of the variable's shape
	scalar func(i int) value
}

// number returns a number of the update in the variable's shape.
func (u updating) number(i int) value { return u.scalar(i).Like(u.like) }

// apply updates a variable and its slots, which follow it in own, by the mean gradient.
func (u updating) apply(k updateKind, own []value, g value, decays bool) {
	w, rate := own[0], u.number(numberRate)
	switch k.name {
	case adamUpdate:
		m := u.number(numberFirst).Multiply(own[1]).Add(u.number(numberRestFirst).Multiply(g))
		v := u.number(numberSecond).Multiply(own[2]).Add(u.number(numberRestSecond).Multiply(g.Multiply(g)))
		if decays {
			w = w.Multiply(u.number(numberShrink))
		}
		root := v.Sqrt().Divide(u.number(numberCorrection)).Add(u.number(numberEpsilon))
		own[0], own[1], own[2] = w.Subtract(rate.Multiply(m.Divide(root))), m, v
	case adagradUpdate:
		v := own[1].Add(g.Multiply(g))
		own[0], own[1] = w.Subtract(rate.Multiply(g.Divide(u.number(numberEpsilon).Add(v.Sqrt())))), v
	case plainUpdate:
		own[0] = w.Subtract(rate.Multiply(g))
	default:
		m := u.number(numberFirst).Multiply(own[1]).Add(g)
		step := m
		if k.name == nesterovUpdate {
			step = g.Add(u.number(numberFirst).Multiply(m))
		}
		own[0], own[1] = w.Subtract(rate.Multiply(step)), m
	}
}
