package cpu

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// The three products that the layers need, on row-major matrices. gonum's
// Sgemm starts goroutines of its own from four 64 × 64 blocks of C on; the
// tiles below stay under that, so that a call uses the one core that it was
// given, and keep C's tile in the nearest cache. Its kernels skip zeros of A:
// callers put the sparse side (rectified, dropped or blank values) there.

const (
	tile     = 64  // gonum's block
	longTile = 192 // three blocks
)

// Kernel names the matrix products that the layers are made of, for benchmarks.
const Kernel = "gonum Sgemm"

var level3 gonum.Implementation

// tiles cuts an m × n matrix into pieces that gonum computes serially.
func tiles(n int) (rows, columns int) {
	if n <= tile {
		return longTile, tile
	}
	return tile, longTile
}

// mulAdd computes C += A·B with A m×k, B k×n.
func mulAdd(m, n, k int, a []float32, b []float32, c []float32) {
	multiply(blas.NoTrans, blas.NoTrans, m, n, k, matrix{a, k}, matrix{b, n}, matrix{c, n})
}

// mulAddTA computes C += Aᵀ·B with A k×m, B k×n.
func mulAddTA(m, n, k int, a []float32, b []float32, c []float32) {
	multiply(blas.Trans, blas.NoTrans, m, n, k, matrix{a, m}, matrix{b, n}, matrix{c, n})
}

// mulAddTB computes C += A·Bᵀ with A m×k, B n×k.
func mulAddTB(m, n, k int, a []float32, b []float32, c []float32) {
	multiply(blas.NoTrans, blas.Trans, m, n, k, matrix{a, k}, matrix{b, k}, matrix{c, n})
}

// matrix is a matrix whose rows begin stride elements apart: it may be some columns of a
// wider one.
type matrix struct {
	data   []float32
	stride int
}

// multiply computes C += A·B, A and B transposed where their values say so. C is m×n.
func multiply(turnA, turnB blas.Transpose, m, n, k int, a, b, c matrix) {
	rows, columns := tiles(n)
	for i := 0; i < m; i += rows {
		atA := i * a.stride
		if turnA == blas.Trans {
			atA = i
		}
		for j := 0; j < n; j += columns {
			atB := j
			if turnB == blas.Trans {
				atB = j * b.stride
			}
			level3.Sgemm(turnA, turnB, min(rows, m-i), min(columns, n-j), k,
				1, a.data[atA:], a.stride, b.data[atB:], b.stride, 1, c.data[i*c.stride+j:], c.stride)
		}
	}
}

// addRow adds a row to an accumulator of the same length.
func addRow(row, accumulator []float32) {
	level3.Saxpy(len(row), 1, row, 1, accumulator, 1)
}

// addTransposed adds the transpose of a matrix of so many rows to an accumulator.
func addTransposed(a []float32, rows int, accumulator []float32) {
	columns := len(a) / rows
	for i := range columns {
		row := accumulator[i*rows : (i+1)*rows]
		for j := range row {
			row[j] += a[j*columns+i]
		}
	}
}

// transpose writes the rows × columns matrix a into t as columns × rows.
func transpose(rows, columns int, a, t []float32) {
	for i := range rows {
		for j, v := range a[i*columns : (i+1)*columns] {
			t[j*rows+i] = v
		}
	}
}
