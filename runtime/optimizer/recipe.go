package optimizer

import (
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/model"
)

// The optimizers that a Recipe names. A recipe without a name is of SGD.
const (
	SGD     = "sgd"
	Adam    = "adam"    // weight decay is a part of the gradient
	AdamW   = "adamw"   // weight decay is apart from the gradient
	Adagrad = "adagrad" // sums begin as zeros
)

// Recipe is an optimizer for one update: the learning rate is what its schedule
// says at that point. Optimizers compute as the ones of PyTorch do, in 32 bits.
type Recipe struct {
	Name         string  `json:"name,omitempty"` // "": SGD
	LearningRate float32 `json:"learning_rate"`
	Momentum     float32 `json:"momentum,omitempty"` // of SGD; 0: none, and no slots
	Nesterov     bool    `json:"nesterov,omitempty"`
	WeightDecay  float32 `json:"weight_decay,omitempty"` // of the Vars with Decay
	ClipNorm     float32 `json:"clip_norm,omitempty"`    // of the global mean gradient; 0: none

	Beta1   float64 `json:"beta1,omitempty"`   // of Adam: of the mean gradient that it keeps
	Beta2   float64 `json:"beta2,omitempty"`   // of Adam: of the mean square
	Epsilon float64 `json:"epsilon,omitempty"` // of Adam and Adagrad: added to the divisor
	Step    int64   `json:"step,omitempty"`    // of Adam: the number of the applied update, from 1
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
	return r.validateName()
}

// validateName reports numbers that the named optimizer lacks or does not have.
func (r Recipe) validateName() error {
	below1 := func(beta float64) bool { return beta >= 0 && float32(beta) < 1 }
	switch r.Name {
	case "", SGD:
		if r.Beta1 != 0 || r.Beta2 != 0 || r.Epsilon != 0 {
			return fmt.Errorf("betas %v and %v, epsilon %v: sgd has none", r.Beta1, r.Beta2, r.Epsilon)
		}
		return nil
	case Adam, AdamW:
		if !below1(r.Beta1) || !below1(r.Beta2) {
			return fmt.Errorf("betas %v and %v: want at least 0 and below 1", r.Beta1, r.Beta2)
		}
		if r.Step < 1 {
			return fmt.Errorf("step %d: want the number of the update, from 1", r.Step)
		}
	case Adagrad:
		if r.Beta1 != 0 || r.Beta2 != 0 {
			return fmt.Errorf("betas %v and %v: adagrad has none", r.Beta1, r.Beta2)
		}
	default:
		return fmt.Errorf("unknown optimizer %q", r.Name)
	}
	if epsilon := float32(r.Epsilon); !(epsilon > 0) || math.IsInf(float64(epsilon), 0) {
		return fmt.Errorf("epsilon %v: want above 0", r.Epsilon)
	}
	if r.Momentum != 0 {
		return fmt.Errorf("momentum %v: %s has none", r.Momentum, r.Name)
	}
	return nil
}

// Slots is how many vectors as long as the parameters the optimizer keeps.
func (r Recipe) Slots() int {
	switch {
	case r.Name == Adam || r.Name == AdamW:
		return 2
	case r.Name == Adagrad || r.Momentum != 0:
		return 1
	}
	return 0
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

// squareRows is in how many rows squares adds up: an addition need not wait for the one before it.
const squareRows = 16

// squares adds up squares in rows, and the rows by halves.
func squares(v []float32) float64 {
	var rows [squareRows]float64
	for i, x := range v[squaresFirst(v, &rows):] {
		rows[i%squareRows] += float64(x) * float64(x)
	}
	for half := squareRows / 2; half > 0; half /= 2 {
		for i := range half {
			rows[i] += rows[i+half]
		}
	}
	return rows[0]
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
	a, n := finiteFirst(v)
	var b, c, d float32
	for v = v[n:]; len(v) >= 4; v = v[4:] {
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
