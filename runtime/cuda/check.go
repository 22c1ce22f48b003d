package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/pjrt"
)

// trial is a program whose result is compared with a result that Go computes. The
// three trials need parts that may be missing or broken: ptxas, cuBLAS, cuDNN.
type trial struct {
	name   string
	text   string
	shapes [][]int64
	result func(in [][]float64) []float64
}

func trials() []trial {
	const n, c, h, k = 2, 16, 8, 32 // records, channels, height and width, filters
	return []trial{
		{"exponential", `module @check_exp {
  func.func public @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {
    %0 = stablehlo.exponential %a : tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
}
`, [][]int64{{1000}}, func(in [][]float64) []float64 {
			out := make([]float64, len(in[0]))
			for i, x := range in[0] {
				out[i] = math.Exp(x)
			}
			return out
		}},
		{"product", `module @check_product {
  func.func public @main(%a: tensor<64x32xf32>, %b: tensor<32x48xf32>) -> tensor<64x48xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : ` +
			`(tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32>
    return %0 : tensor<64x48xf32>
  }
}
`, [][]int64{{64, 32}, {32, 48}}, func(in [][]float64) []float64 { return multiply(in[0], in[1], 64, 32, 48) }},
		{"convolution", fmt.Sprintf(`module @check_convolution {
  func.func public @main(%%a: tensor<%[1]s>, %%b: tensor<%[2]s>) -> tensor<%[3]s> {
    %%0 = stablehlo.convolution(%%a, %%b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], `+
			`window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} `+
			`{batch_group_count = 1 : i64, feature_group_count = 1 : i64, `+
			`precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : `+
			`(tensor<%[1]s>, tensor<%[2]s>) -> tensor<%[3]s>
    return %%0 : tensor<%[3]s>
  }
}
`, "2x8x8x16xf32", "3x3x16x32xf32", "2x8x8x32xf32"), [][]int64{{n, h, h, c}, {3, 3, c, k}},
			func(in [][]float64) []float64 { return convolve(in[0], in[1], n, h, c, k) }},
	}
}

// multiply returns the product of matrices of m×l and l×n numbers.
func multiply(a, b []float64, m, l, n int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range l {
			for k := range n {
				out[i*n+k] += a[i*l+j] * b[j*n+k]
			}
		}
	}
	return out
}

// convolve slides k filters of 3×3 over n images of h×h with c channels, whose
// edges are padded by zeros.
func convolve(x, filters []float64, n, h, c, k int) []float64 {
	out := make([]float64, n*h*h*k)
	for at := range n * h * h {
		image, row, column := at/h/h, at/h%h, at%h
		for tap := range 9 {
			y, z := row+tap/3-1, column+tap%3-1
			if y < 0 || y >= h || z < 0 || z >= h {
				continue
			}
			for channel := range c {
				v := x[((image*h+y)*h+z)*c+channel]
				for f := range k {
					out[at*k+f] += v * filters[(tap*c+channel)*k+f]
				}
			}
		}
	}
	return out
}

// run runs the trial and reports a result that differs from Go's result. The
// tolerance allows for sums of float32 numbers in any order.
func (t trial) run(c *Client) (err error) {
	e, err := c.Compile(t.text, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var in [][]float64
	var arguments []*pjrt.Buffer
	for _, dims := range t.shapes {
		values := ramp(dims)
		data := make([]byte, 0, 4*len(values))
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
		}
		b, err := c.Upload(pjrt.F32, dims, data)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		in, arguments = append(in, values), append(arguments, b)
	}
	out, err := e.Execute(arguments...)
	if err != nil {
		return err
	}
	for _, b := range out {
		defer func() { err = errors.Join(err, b.Close()) }()
	}
	want := t.result(in)
	got := make([]byte, 4*len(want))
	if err := out[0].Download(got); err != nil {
		return err
	}
	scale := 0.0
	for _, w := range want {
		scale = max(scale, math.Abs(w))
	}
	for i, w := range want {
		g := float64(math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])))
		if !(math.Abs(g-w) <= 1e-4*scale) {
			return fmt.Errorf("element %d is %g, and Go computes %g", i, g, w)
		}
	}
	return nil
}

// ramp returns numbers between -0.5 and 0.5 that float32 holds exactly.
func ramp(dims []int64) []float64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i%17)/16 - 0.5
	}
	return values
}
