package optimizer

import (
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// Update applies one committed update to a vector, or to the span of it that
// vars (see Cut) lay out: sums are the summed gradients of all its records,
// weight their summed weights. Moments follow
//
//	running = m·running + (1-m)·sums/weight
//
// and trained variables the optimizer, where g = scale·sums/weight + decay·w
// (AdamW: without decay):
//
//	sgd      w -= rate·g
//	momentum v = momentum·v + g;  w -= rate·v  (nesterov: rate·(g + momentum·v));
//	         a v below 2⁻¹²⁶ is 0
//	adagrad  v = v + g²;  w -= rate·g/(√v + epsilon)
//	adam     m = β₁·m + (1-β₁)·g;  v = β₂·v + (1-β₂)·g²
//	         w -= rate·m/(1-β₁ᵗ)/(√(v/(1-β₂ᵗ)) + epsilon)  (adamw: of w·(1-rate·decay))
//
// slots has Recipe.Slots() vectors of the vector's length, or more. An update of
// weight 0 changes nothing.
//
// With ClipNorm it clips by the norm of what it was given. Where several
// servers hold parts of a vector, the norm is decided once for all: add their
// SquaredNorm and use UpdateScaled.
func Update(vector []float32, slots [][]float32, sums []float32, weight float64, vars []model.Var, r Recipe) {
	scale := 1.0
	if r.ClipNorm > 0 {
		scale = r.ClipScale(SquaredNorm(sums, weight, vars))
	}
	UpdateScaled(vector, vector, slots, sums, weight, vars, r, scale)
}

// UpdateScaled is Update with the clipping decided: mean gradients are
// multiplied by scale, moments are not. The updated vector is written to into,
// which may be vector; slots are updated where they are. Elements of no variable
// are not written.
func UpdateScaled(into, vector []float32, slots [][]float32, sums []float32, weight float64, vars []model.Var, r Recipe, scale float64) {
	if weight <= 0 {
		copy(into, vector)
		return
	}
	mean := float32(1 / weight)
	gradient := float32(scale / weight)
	for _, v := range vars {
		from, to := v.Offset, v.Offset+v.Len
		into, w, s := into[from:to], vector[from:to], sums[from:to]
		if v.Kind == model.Moment {
			for i := range w {
				into[i] = v.Momentum*w[i] + (1-v.Momentum)*(s[i]*mean)
			}
			continue
		}
		decay := float32(0)
		if v.Decay {
			decay = r.WeightDecay
		}
		switch {
		case r.Name == Adam || r.Name == AdamW:
			r.updateAdam(into, w, slots[0][from:to], slots[1][from:to], s, gradient, decay)
		case r.Name == Adagrad:
			r.updateAdagrad(into, w, slots[0][from:to], s, gradient, decay)
		case r.Momentum == 0:
			r.updateSGD(into, w, s, gradient, decay)
		default:
			r.updateMomentum(into, w, slots[0][from:to], s, gradient, decay)
		}
	}
}

// Add sets each element of into to left + right, which have its length; into may be one of
// them.
func Add(into, left, right []float32) {
	left, right = left[:len(into)], right[:len(into)]
	for i := addFirst(into, left, right); i < len(into); i++ {
		into[i] = left[i] + right[i]
	}
}

// updateSGD is SGD without a slot.
func (r Recipe) updateSGD(into, w, s []float32, gradient, decay float32) {
	into, s = into[:len(w)], s[:len(w)] // which spares the loop its checks
	for i := r.sgdFirst(into, w, s, gradient, decay); i < len(w); i++ {
		into[i] = w[i] - r.LearningRate*(s[i]*gradient+decay*w[i])
	}
}

// normal returns 0 for a number that is too small for all bits of a float32. The
// momentum of a weight that gets no gradients would become such a number and remain
// one: a processor takes a hundred times as long for it, and no weight above 1e-30
// has a digit for it.
func normal(m float32) float32 {
	if m > -0x1p-126 && m < 0x1p-126 {
		return 0
	}
	return m
}

// updateMomentum is SGD with a slot.
func (r Recipe) updateMomentum(into, w, slot, s []float32, gradient, decay float32) {
	into, s, slot = into[:len(w)], s[:len(w)], slot[:len(w)]
	n := r.momentumFirst(into, w, slot, s, gradient, decay)
	into, w, slot, s = into[n:], w[n:], slot[n:], s[n:]
	rate, momentum := r.LearningRate, r.Momentum
	if r.Nesterov {
		for i, x := range w {
			g := s[i]*gradient + decay*x
			m := normal(momentum*slot[i] + g)
			slot[i], into[i] = m, x-rate*(g+momentum*m)
		}
		return
	}
	for i, x := range w {
		m := normal(momentum*slot[i] + (s[i]*gradient + decay*x))
		slot[i], into[i] = m, x-rate*m
	}
}

// updateAdagrad keeps the sum of the squared gradients.
func (r Recipe) updateAdagrad(into, w, sum, s []float32, gradient, decay float32) {
	into, s, sum = into[:len(w)], s[:len(w)], sum[:len(w)]
	rate, epsilon := r.LearningRate, float32(r.Epsilon)
	for i, x := range w {
		g := s[i]*gradient + decay*x
		v := sum[i] + g*g
		sum[i] = v // first: the root then reuses its register, and waits for no earlier one
		into[i] = x - rate*(g/(epsilon+root(v)))
	}
}

// updateAdam keeps the running means of gradient and squared gradient. They
// begin as zeros, which the factors of an update correct.
func (r Recipe) updateAdam(into, w, means, squares, s []float32, gradient, decay float32) {
	into, s, means, squares = into[:len(w)], s[:len(w)], means[:len(w)], squares[:len(w)]
	shrink := float32(1)
	if r.Name == AdamW {
		shrink, decay = float32(1-float64(r.LearningRate)*float64(decay)), 0
	}
	step := float64(r.Step)
	rate := float32(float64(r.LearningRate) / (1 - math.Pow(r.Beta1, step)))
	correction := float32(math.Sqrt(1 - math.Pow(r.Beta2, step)))
	beta1, rest1, beta2, rest2 := float32(r.Beta1), float32(1-r.Beta1), float32(r.Beta2), float32(1-r.Beta2)
	epsilon := float32(r.Epsilon)
	for i, x := range w {
		g := s[i]*gradient + decay*x
		m := beta1*means[i] + rest1*g
		v := beta2*squares[i] + rest2*(g*g)
		means[i], squares[i] = m, v
		into[i] = x*shrink - rate*(m/(root(v)/correction+epsilon))
	}
}

// root is the square root in 32 bits, which is one instruction.
func root(x float32) float32 { return float32(math.Sqrt(float64(x))) }
