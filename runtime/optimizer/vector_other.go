//go:build !amd64 || amd64.v3

package optimizer

// Without loops of their own all vectors are done in Go.

func (Recipe) momentumFirst(into, w, slot, s []float32, gradient, decay float32) int { return 0 }

func (Recipe) sgdFirst(into, w, s []float32, gradient, decay float32) int { return 0 }

func squaresFirst([]float32, *[squareRows]float64) int { return 0 }

func finiteFirst([]float32) (not float32, n int) { return }

func addFirst(into, left, right []float32) int { return 0 }
