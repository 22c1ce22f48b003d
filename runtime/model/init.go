package model

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Distribution is where initial values are drawn from.
type Distribution uint8

const (
	Zeros   Distribution = iota
	Ones                 //
	Uniform              // in [-Limit, Limit)
)

// Init says how the values of a variable, or of a table's row, begin.
type Init struct {
	Distribution Distribution
	Limit        float64 // of Uniform
}

// Row writes the initial values (Width elements) of a table's row: they follow
// from the seed, the table's name and the row's id only, so that whoever meets
// the id first draws the same.
func (t Table) Row(seed uint64, id int64, row []float32) {
	t.Init.fill(row, rand.NewPCG(seed^uint64(id)*Golden, nameHash(t.Name)))
}

// fill draws the values. It uses only single multiplications and additions,
// each rounded by a conversion, so that every architecture draws the same.
func (n Init) fill(span []float32, random *rand.PCG) {
	switch n.Distribution {
	case Uniform:
		for i := range span {
			u := float64(int64(random.Uint64())>>11) * 0x1p-52 // [-1, 1)
			span[i] = float32(float64(u * n.Limit))
		}
	case Ones:
		for i := range span {
			span[i] = 1
		}
	default:
		clear(span)
	}
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// glorot is for weights in general (Glorot and Bengio 2010).
func glorot(shape []int) Init {
	in, out := fans(shape)
	return Init{Uniform, math.Sqrt(6 / float64(in+out))}
}

// he is for weights that a ReLU follows (He et al. 2015).
func he(shape []int) Init {
	in, _ := fans(shape)
	return Init{Uniform, math.Sqrt(6 / float64(in))}
}

// embedded is for embeddings and positions: the standard deviation of 0.02 that GPT-2 has
// (Radford et al. 2019), here of a uniform distribution.
var embedded = Init{Uniform, 0.02 * math.Sqrt(3)}

// fans counts the inputs and outputs that one weight of this shape is between.
// A convolution's kernel positions count on both sides.
func fans(shape []int) (in, out int) {
	in = 1
	for _, d := range shape[:len(shape)-1] {
		in *= d
	}
	out = shape[len(shape)-1]
	if len(shape) == 4 { // height, width, channels, filters
		out *= shape[0] * shape[1]
	}
	return in, out
}
