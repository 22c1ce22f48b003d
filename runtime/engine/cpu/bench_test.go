package cpu_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
)

var digits = model.Features{Type: model.U8, Shape: []int{28, 28}}

// pictures makes n records of 28 × 28 with the share of blank pixels that
// drawn digits have.
func pictures(n int) *engine.Batch {
	random := rand.New(rand.NewPCG(1, 2))
	b := &engine.Batch{Seed: 3, Epoch: 1}
	pixels := make([]byte, n*28*28)
	for i := range pixels {
		if random.Uint32()%5 == 0 {
			pixels[i] = byte(random.Uint32())
		}
	}
	labels := make([]byte, 4*n)
	for i := range n {
		b.Records = append(b.Records, int64(i))
		b.Weights = append(b.Weights, 1)
		binary.LittleEndian.PutUint32(labels[4*i:], random.Uint32()%10)
	}
	b.Inputs = []engine.Input{
		{Type: model.U8, Shape: []int{n, 28, 28}, Data: pixels},
		{Type: model.I32, Shape: []int{n}, Data: labels},
	}
	return b
}

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"softmax", "mlp", "mnist-cnn", "resnet20"} {
		for _, batch := range []int{16, 32, 64} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/batch=%d/threads=%d", name, batch, threads), func(b *testing.B) {
					m, err := zoo.Model(name, model.Data{Input: digits, Classes: 10})
					if err != nil {
						b.Fatal(err)
					}
					r, err := cpu.New().Build(m, engine.Options{Threads: threads, MicroBatch: batch})
					if err != nil {
						b.Fatal(err)
					}
					defer r.Close()
					s, err := r.Stage(context.Background(), pictures(batch), nil)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportAllocs()
					values := make([]float32, 1)
					for b.Loop() {
						// A change of parameters belongs to every update.
						r.Get(0, 0, values)
						r.Put(0, 0, values)
						if _, err := r.Step(context.Background(), s, engine.Pass{First: true, Last: true}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(batch)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
				})
			}
		}
	}
}
