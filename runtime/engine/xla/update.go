package xla

import (
	"errors"
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// Update implements engine.Updater: parameters and slots stay on the device. The next call
// returns an error of the run itself, and the parameters are lost with it.
func (r *replica) Update(sums []float32, weight float64, recipe optimizer.Recipe) error {
	err := recipe.Validate()
	switch {
	case r.closed.Load():
		err = errClosed
	case err != nil:
	case len(sums) != len(r.vector):
		err = fmt.Errorf("%d sums for a vector of %d elements", len(sums), len(r.vector))
	case !(weight >= 0) || math.IsInf(weight, 0):
		err = fmt.Errorf("weight %v: want a number of records", weight)
	case weight > 0:
		err = r.update(sums, weight, recipe)
	}
	if err != nil {
		return fmt.Errorf("update: %w", r.explain(err))
	}
	return nil
}

func (r *replica) update(sums []float32, weight float64, recipe optimizer.Recipe) error {
	scale := 1.0
	if recipe.ClipNorm > 0 {
		scale = recipe.ClipScale(optimizer.SquaredNorm(sums, weight, r.vars))
	}
	kind := updateOf(recipe)
	program, err := r.program("update "+string(kind), func() (string, error) { return r.updating(kind), nil })
	if err != nil {
		return err
	}
	if r.stale {
		if err := errors.Join(r.load(), waitAll(r.variables)); err != nil {
			r.stale = true
			return err
		}
	}
	if err := r.placeSlots(kind.slots()); err != nil {
		return err
	}
	gradients, err := r.uploadFloats(sums)
	if err != nil {
		return err
	}
	defer gradients.Close()
	numbers, err := r.uploadFloats(kind.numbers(recipe, weight, scale))
	if err != nil {
		return err
	}
	arguments := append([]Buffer(nil), r.variables...)
	for _, slot := range r.updated[:kind.slots()] {
		arguments = append(arguments, slot...)
	}
	results, err := program.Run(append(arguments, gradients, numbers)...)
	if err = errors.Join(err, numbers.Close()); err != nil {
		return err
	}
	n := len(r.vars)
	r.variables, r.ahead = results[:n:n], true
	for i := range kind.slots() {
		r.updated[i] = results[(i+1)*n : (i+2)*n : (i+2)*n]
	}
	return nil
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
func (r *replica) fetch() error {
	if !r.ahead {
		return nil
	}
	pack, err := r.program("pack", func() (string, error) { return r.pack(), nil })
	if err != nil {
		return err
	}
	for i, from := range append([][]Buffer{r.variables}, r.updated...) {
		flat, err := pack.Run(from...)
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
type updateKind string

const (
	plainUpdate    updateKind = "sgd"
	momentumUpdate updateKind = "momentum"
	nesterovUpdate updateKind = "nesterov"
	adagradUpdate  updateKind = "adagrad"
	adamUpdate     updateKind = "adam" // and AdamW, which shrinks the parameters in place of a decay
)

func updateOf(r optimizer.Recipe) updateKind {
	switch {
	case r.Name == optimizer.Adam || r.Name == optimizer.AdamW:
		return adamUpdate
	case r.Name == optimizer.Adagrad:
		return adagradUpdate
	case r.Momentum == 0:
		return plainUpdate
	case r.Nesterov:
		return nesterovUpdate
	}
	return momentumUpdate
}

// slots returns how many slots the update keeps.
func (k updateKind) slots() int {
	switch k {
	case plainUpdate:
		return 0
	case adamUpdate:
		return 2
	}
	return 1
}

// The places of an update's numbers.
const (
	numberMean     = iota // 1/weight
	numberGradient        // the clipping's factor/weight
	numberRate
	numberDecay // added to the gradient of variables that decay, times the variable
	numberShrink
	numberFirst  // momentum, or β₁
	numberSecond // β₂
	numberRestFirst
	numberRestSecond
	numberEpsilon
	numberCorrection // of the second slot's root
	numbersOfUpdate
)

// numbers are the arguments of an update; see optimizer.Update.
func (k updateKind) numbers(r optimizer.Recipe, weight, scale float64) []float32 {
	n := make([]float32, numbersOfUpdate)
	n[numberMean], n[numberGradient] = float32(1/weight), float32(scale/weight)
	n[numberRate], n[numberDecay], n[numberShrink] = r.LearningRate, r.WeightDecay, 1
	n[numberFirst], n[numberEpsilon] = r.Momentum, float32(r.Epsilon)
	if k != adamUpdate {
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

// updating is (variables, slots, vector of sums, numbers) → (variables, slots). The sums
// are taken apart here: a run before this one could fail late, when the variables have
// been donated already.
func (s *source) updating(k updateKind) string {
	f := stablehlo.New(s.precision)
	before := s.variables(f)
	var slots [][]value
	for range k.slots() {
		slots = append(slots, s.variables(f))
	}
	sums := f.Argument(stablehlo.F32, model.Length(s.vars))
	all := f.Argument(stablehlo.F32, numbersOfUpdate)
	after := make([]value, len(before))
	for i, v := range s.vars {
		u := updating{like: before[i], all: all}
		sum := sums.SliceDim(0, v.Offset, v.Offset+v.Len).Reshape(v.Shape...)
		own := make([]value, len(slots))
		for j, slot := range slots {
			own[j] = slot[i]
		}
		if v.Kind == model.Moment {
			kept := float64(v.Momentum)
			after[i] = before[i].Scale(kept).Add(sum.Multiply(u.number(numberMean)).Scale(float64(1 - v.Momentum)))
			continue
		}
		g := sum.Multiply(u.number(numberGradient))
		if v.Decay {
			g = g.Add(u.number(numberDecay).Multiply(before[i]))
		}
		after[i] = u.apply(k, before[i], g, v.Decay, own)
		for j := range slots {
			slots[j][i] = own[j]
		}
	}
	results := after
	for _, slot := range slots {
		results = append(results, slot...)
	}
	for i := range results {
		f.Donate(i, i)
	}
	return f.Text(s.name("update_"+string(k)), results...)
}

// updating is the update of one variable.
type updating struct {
	like value // of the variable's shape
	all  value
}

// number returns a number of the update in the variable's shape.
func (u updating) number(i int) value { return u.all.SliceDim(0, i, i+1).Reshape().Like(u.like) }

// apply returns the variable after the update, and changes its slots.
func (u updating) apply(k updateKind, w, g value, decays bool, slots []value) value {
	rate := u.number(numberRate)
	switch k {
	case adamUpdate:
		m := u.number(numberFirst).Multiply(slots[0]).Add(u.number(numberRestFirst).Multiply(g))
		v := u.number(numberSecond).Multiply(slots[1]).Add(u.number(numberRestSecond).Multiply(g.Multiply(g)))
		slots[0], slots[1] = m, v
		if decays {
			w = w.Multiply(u.number(numberShrink))
		}
		return w.Subtract(rate.Multiply(m.Divide(v.Sqrt().Divide(u.number(numberCorrection)).Add(u.number(numberEpsilon)))))
	case adagradUpdate:
		v := slots[0].Add(g.Multiply(g))
		slots[0] = v
		return w.Subtract(rate.Multiply(g.Divide(u.number(numberEpsilon).Add(v.Sqrt()))))
	case plainUpdate:
		return w.Subtract(rate.Multiply(g))
	}
	m := u.number(numberFirst).Multiply(slots[0]).Add(g)
	slots[0] = m
	if k == nesterovUpdate {
		return w.Subtract(rate.Multiply(g.Add(u.number(numberFirst).Multiply(m))))
	}
	return w.Subtract(rate.Multiply(m))
}
