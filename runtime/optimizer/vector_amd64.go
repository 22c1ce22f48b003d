//go:build amd64 && !amd64.v3

package optimizer

import "golang.org/x/sys/cpu"

// Loops over vectors with AVX, which round as the loops in Go do that they take the
// place of: GOAMD64=v3 lets Go round once where it multiplies and adds, these loops
// never do. Each does the first elements of its vectors and returns their number.

//go:noescape
func momentum8(into, w, slot, s *float32, n int, gradient, decay, momentum, rate float32)

//go:noescape
func nesterov8(into, w, slot, s *float32, n int, gradient, decay, momentum, rate float32)

//go:noescape
func sgd8(into, w, s *float32, n int, gradient, decay, rate float32)

//go:noescape
func add8(into, left, right *float32, n int)

//go:noescape
func squares16(v *float32, n int, rows *[squareRows]float64)

//go:noescape
func residues8(v *float32, n int, rows *[8]float32)

// countWhole returns how many of n elements a loop does that takes so many at a time.
func countWhole(n, at int) int {
	if !cpu.X86.HasAVX {
		return 0
	}
	return n - n%at
}

// momentumFirst begins updateMomentum. All vectors are as long as w.
func (r Recipe) momentumFirst(into, w, slot, s []float32, gradient, decay float32) int {
	n := countWhole(len(w), 8)
	switch {
	case n == 0:
	case r.Nesterov:
		nesterov8(&into[0], &w[0], &slot[0], &s[0], n, gradient, decay, r.Momentum, r.LearningRate)
	default:
		momentum8(&into[0], &w[0], &slot[0], &s[0], n, gradient, decay, r.Momentum, r.LearningRate)
	}
	return n
}

// sgdFirst begins updateSGD. All vectors are as long as w.
func (r Recipe) sgdFirst(into, w, s []float32, gradient, decay float32) int {
	n := countWhole(len(w), 8)
	if n > 0 {
		sgd8(&into[0], &w[0], &s[0], n, gradient, decay, r.LearningRate)
	}
	return n
}

// addFirst begins Add. All vectors are as long as into.
func addFirst(into, left, right []float32) int {
	n := countWhole(len(into), 8)
	if n > 0 {
		add8(&into[0], &left[0], &right[0], n)
	}
	return n
}

// squaresFirst begins squares: it sets the rows.
func squaresFirst(v []float32, rows *[squareRows]float64) int {
	n := countWhole(len(v), squareRows)
	if n > 0 {
		squares16(&v[0], n, rows)
	}
	return n
}

// finiteFirst begins Finite: not is 0 where all of the first n elements are finite,
// else NaN.
func finiteFirst(v []float32) (not float32, n int) {
	if n = countWhole(len(v), 16); n == 0 {
		return
	}
	var rows [8]float32
	residues8(&v[0], n, &rows)
	for _, r := range rows {
		not += r
	}
	return not, n
}
