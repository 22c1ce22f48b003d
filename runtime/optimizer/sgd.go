package optimizer

import (
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// Recipe is stochastic gradient descent for one update: the learning rate is
// what its schedule says at that point.
type Recipe struct {
	LearningRate float32 `json:"learning_rate"`
	Momentum     float32 `json:"momentum,omitempty"` // 0: none, and no slots
	Nesterov     bool    `json:"nesterov,omitempty"`
	WeightDecay  float32 `json:"weight_decay,omitempty"` // L2, of the Vars with Decay
	ClipNorm     float32 `json:"clip_norm,omitempty"`    // of the global mean gradient; 0: none
}

// Validate reports a recipe that cannot train.
func (r Recipe) Validate() error {
	switch {
	case !(r.LearningRate > 0) || math.IsInf(float64(r.LearningRate), 0):
		return fmt.Errorf("learning rate %v: want above 0", r.LearningRate)
	case !(r.Momentum >= 0 && r.Momentum < 1):
		return fmt.Errorf("momentum %v: want at least 0 and below 1", r.Momentum)
	case r.Nesterov && r.Momentum == 0:
		return fmt.Errorf("nesterov needs a momentum above 0")
	case !(r.WeightDecay >= 0 && r.WeightDecay < 1):
		return fmt.Errorf("weight decay %v: want at least 0 and below 1", r.WeightDecay)
	case !(r.ClipNorm >= 0) || math.IsInf(float64(r.ClipNorm), 0):
		return fmt.Errorf("clip norm %v: want 0 (none) or above", r.ClipNorm)
	}
	return nil
}

// Slots is how many vectors as long as the parameters the optimizer keeps.
func (r Recipe) Slots() int {
	if r.Momentum == 0 {
		return 0
	}
	return 1
}

// Update applies one committed update to a vector, or to the span of it that
// vars (see Cut) lay out: sums are the summed gradients of all its records,
// weight their summed weights. Trained variables follow
//
//	g = sums/weight + decay·w;  v = momentum·v + g;  w -= rate·v  (nesterov: rate·(g + momentum·v))
//
// and moments running = m·running + (1-m)·sums/weight. slots has the vector's
// length, or is nil without momentum. An update of weight 0 changes nothing.
//
// With ClipNorm it clips by the norm of what it was given. Where several
// servers hold parts of a vector, the norm is decided once for all: add their
// SquaredNorm and use UpdateScaled.
func Update(vector, slots, sums []float32, weight float64, vars []model.Var, r Recipe) {
	scale := 1.0
	if r.ClipNorm > 0 {
		scale = r.ClipScale(SquaredNorm(sums, weight, vars))
	}
	UpdateScaled(vector, slots, sums, weight, vars, r, scale)
}

// UpdateScaled is Update with the clipping decided: mean gradients are
// multiplied by scale, moments are not.
func UpdateScaled(vector, slots, sums []float32, weight float64, vars []model.Var, r Recipe, scale float64) {
	if weight <= 0 {
		return
	}
	mean := float32(1 / weight)
	gradient := float32(scale / weight)
	for _, v := range vars {
		w, s := vector[v.Offset:v.Offset+v.Len], sums[v.Offset:v.Offset+v.Len]
		if v.Kind == model.Moment {
			for i := range w {
				w[i] = v.Momentum*w[i] + (1-v.Momentum)*(s[i]*mean)
			}
			continue
		}
		decay := float32(0)
		if v.Decay {
			decay = r.WeightDecay
		}
		if r.Momentum == 0 {
			for i := range w {
				w[i] -= r.LearningRate * (s[i]*gradient + decay*w[i])
			}
			continue
		}
		slot := slots[v.Offset : v.Offset+v.Len]
		s, slot = s[:len(w)], slot[:len(w)] // which spares the loop its checks
		rate, momentum := r.LearningRate, r.Momentum
		if r.Nesterov {
			for i, x := range w {
				g := s[i]*gradient + decay*x
				m := momentum*slot[i] + g
				slot[i], w[i] = m, x-rate*(g+momentum*m)
			}
			continue
		}
		for i, x := range w {
			m := momentum*slot[i] + (s[i]*gradient + decay*x)
			slot[i], w[i] = m, x-rate*m
		}
	}
}

// SquaredNorm is the squared Euclidean norm of the trained variables' mean
// gradient; it adds up over spans.
func SquaredNorm(sums []float32, weight float64, vars []model.Var) float64 {
	if weight <= 0 {
		return 0
	}
	total := 0.0
	for _, v := range vars {
		if v.Kind == model.Moment {
			continue
		}
		total += squares(sums[v.Offset : v.Offset+v.Len])
	}
	return total / (weight * weight)
}

// squares adds up squares in four rows, so that an addition need not wait for
// the one before it.
func squares(v []float32) float64 {
	var a, b, c, d float64
	for ; len(v) >= 4; v = v[4:] {
		a += float64(v[0]) * float64(v[0])
		b += float64(v[1]) * float64(v[1])
		c += float64(v[2]) * float64(v[2])
		d += float64(v[3]) * float64(v[3])
	}
	for _, x := range v {
		a += float64(x) * float64(x)
	}
	return a + b + (c + d)
}

// ClipScale is the factor that brings a mean gradient of the given squared
// norm down to ClipNorm: at most 1.
func (r Recipe) ClipScale(squaredNorm float64) float64 {
	norm := math.Sqrt(squaredNorm)
	if r.ClipNorm <= 0 || norm <= float64(r.ClipNorm) {
		return 1
	}
	return float64(r.ClipNorm) / norm
}

// Finite says whether no element is NaN or infinite. It looks at all of them
// before it decides, which is faster than a decision for each: an element minus
// itself is 0, or NaN, which no addition takes back.
func Finite(v []float32) bool {
	var a, b, c, d float32
	for ; len(v) >= 4; v = v[4:] {
		a += v[0] - v[0]
		b += v[1] - v[1]
		c += v[2] - v[2]
		d += v[3] - v[3]
	}
	for _, x := range v {
		a += x - x
	}
	return a+b+c+d == 0
}
