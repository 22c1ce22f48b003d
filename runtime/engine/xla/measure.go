package xla

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

const (
	// period is how often the numbers of a measured matrix repeat: a product then has
	// period² different elements, which Go computes all.
	period = 16
	// window is how long a rate is measured at least.
	window = 200 * time.Millisecond
)

// Measure measures copies between host and device, and products of two square matrices
// with so many rows, a multiple of 16: it compares all elements of one product with numbers that Go computes.
// It takes seconds, and returns an error where the device fails or computes wrong numbers.
// With too little memory it is unable, without an error.
func (e *maker) Measure(ctx context.Context, rows int) (gpu.Measured, error) {
	m, err := e.measure(ctx, rows)
	if errors.Is(err, ErrMemory) {
		return gpu.Unmeasured(false, err.Error()), nil
	}
	return m, err
}

func (e *maker) measure(ctx context.Context, rows int) (m gpu.Measured, err error) {
	if rows < period || rows%period != 0 {
		return m, fmt.Errorf("matrices of %d rows: want a multiple of %d", rows, period)
	}
	memory, err := e.device.Host(2 * rows * rows)
	if err != nil {
		return m, err
	}
	var factors []Buffer
	defer func() {
		for _, b := range factors {
			err = errors.Join(err, b.Close())
		}
	}()
	for _, step := range []int{1, 3} {
		fillFactor(memory, rows, step)
		b, err := copyUp(e.device, rows, memory)
		if err != nil {
			return m, err
		}
		factors = append(factors, b)
	}
	f := stablehlo.New(stablehlo.Default)
	x, y := f.Argument(stablehlo.BF16, rows, rows), f.Argument(stablehlo.BF16, rows, rows)
	product := x.Dot(y, stablehlo.Product{Left: []int{1}, Right: []int{0}}, stablehlo.F32)
	p, err := e.device.Compile(f.Text("measure_product", product), nil)
	if err != nil {
		return m, err
	}
	if err := compareProduct(e.device, p, rows, factors); err != nil {
		return m, err
	}
	m.Size = rows
	n, bytes := float64(rows), float64(len(memory))
	if m.Product, err = rate(ctx, 2*n*n*n, func(count int) error { return multiply(p, factors, count) }); err != nil {
		return m, err
	}
	if m.Upload, err = rate(ctx, bytes, repeat(func() error {
		b, err := copyUp(e.device, rows, memory)
		if err == nil {
			err = b.Close()
		}
		return err
	})); err != nil {
		return m, err
	}
	m.Download, err = rate(ctx, bytes, repeat(func() error { return factors[0].Download(memory) }))
	return m, err
}

func repeat(do func() error) func(count int) error {
	return func(count int) error {
		for range count {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	}
}

// copyUp copies a matrix to the device, and waits for it.
func copyUp(d Device, rows int, data []byte) (Buffer, error) {
	copied := make(chan struct{})
	b, err := d.Upload(stablehlo.BF16, []int{rows, rows}, data, func() { close(copied) })
	if err != nil {
		return nil, err
	}
	<-copied
	if err := b.Wait(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// multiply computes so many products, and waits for the last one.
func multiply(p Program, factors []Buffer, count int) error {
	for i := range count {
		out, err := p.Run(factors...)
		if err != nil {
			return err
		}
		if i == count-1 {
			err = out[0].Wait()
		}
		if err = errors.Join(err, out[0].Close()); err != nil {
			return err
		}
	}
	return nil
}

// rate returns how much of a work is done in a second, in the best of three windows.
func rate(ctx context.Context, work float64, do func(count int) error) (float64, error) {
	count, best := 1, 0.0
	for windows := 0; windows < 3; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := do(count); err != nil {
			return 0, err
		}
		took := time.Since(began)
		if took < window/4 { // the count is for a window
			count *= 2
			continue
		}
		best = max(best, work*float64(count)/took.Seconds())
		windows++
	}
	return best, nil
}

// numberAt is the number of a factor whose indices add up to at: an eighth of a small
// number, so that each sum of products is exact in float32.
func numberAt(at, step int) float32 { return float32(at%period*step%period-period/2) / 8 }

// fillFactor writes a matrix of bfloat16 numbers.
func fillFactor(data []byte, rows, step int) {
	for i := range rows {
		for j := range rows {
			bits := math.Float32bits(numberAt(i+j, step))
			binary.LittleEndian.PutUint16(data[2*(i*rows+j):], uint16(bits>>16))
		}
	}
}

// compareProduct compares each element of a product with the number that Go computes.
func compareProduct(d Device, p Program, rows int, factors []Buffer) (err error) {
	out, err := p.Run(factors...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out[0].Close()) }()
	got, err := d.Host(4 * rows * rows)
	if err != nil {
		return err
	}
	if err := out[0].Download(got); err != nil {
		return err
	}
	var want [period][period]float32
	scale := 0.0
	for i := range period {
		for k := range period {
			for j := range period {
				want[i][k] += numberAt(i+j, 1) * numberAt(j+k, 3)
			}
			want[i][k] *= float32(rows / period)
			scale = max(scale, math.Abs(float64(want[i][k])))
		}
	}
	for i := range rows {
		for k := range rows {
			g := math.Float32frombits(binary.LittleEndian.Uint32(got[4*(i*rows+k):]))
			if w := want[i%period][k%period]; !(math.Abs(float64(g-w)) <= 1e-4*scale) {
				return fmt.Errorf("a product is wrong: element %d, %d is %g, and Go computes %g", i, k, g, w)
			}
		}
	}
	return nil
}
