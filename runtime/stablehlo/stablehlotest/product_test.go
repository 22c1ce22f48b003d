package stablehlotest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestDot(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>
%b = stablehlo.constant dense<[[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]> : tensor<2x2x2xf32>
%c = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
%d = stablehlo.dot_general %a, %a, contracting_dims = [0, 1, 2] x [0, 1, 2] : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<f32>
return %c, %d : tensor<2x2x2xf32>, tensor<f32>`), 0, values("f32", []int{2, 2, 2}, 1, 2, 3, 4, 6, 5, 8, 7), values("f32", nil, 204))
}

// Products with a dimension after the other, of both sides, against sums written
// out; a result of another type.
func TestDotOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a, b := random(r, 3*2*4*5), random(r, 4*6*5*3)
	for i := range 2 { // order of the contracting dimensions
		left, right := []int{2, 3}, []int{0, 2}
		if i == 1 {
			slices.Reverse(left)
			slices.Reverse(right)
		}
		text := program("%a: tensor<3x2x4x5xbf16>, %b: tensor<4x6x5x3xbf16>", fmt.Sprintf(`%%c = stablehlo.dot_general %%a, %%b, batching_dims = [0] x [3], contracting_dims = [%s] x [%s] : (tensor<3x2x4x5xbf16>, tensor<4x6x5x3xbf16>) -> tensor<3x2x6xf32>
return %%c : tensor<3x2x6xf32>`, joined(left), joined(right)))
		want := make([]float64, 3*2*6)
		for n := range 3 {
			for m := range 2 {
				for o := range 6 {
					for k := range 4 {
						for l := range 5 {
							want[(n*2+m)*6+o] += a[((n*2+m)*4+k)*5+l] * b[((k*6+o)*5+l)*3+n]
						}
					}
				}
			}
		}
		equal(t, run(t, text, values("bf16", []int{3, 2, 4, 5}, a...), values("bf16", []int{4, 6, 5, 3}, b...)), 1e-12,
			values("f32", []int{3, 2, 6}, want...))
	}
}

func random(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 2*r.Float64() - 1
	}
	return v
}

func joined(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}

func run(t *testing.T, text string, arguments ...Tensor) []Tensor {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out, err := p.Run(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The example of the specification.
func TestConvolutionExample(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[[[1.0], [2.0], [5.0], [6.0]], [[3.0], [4.0], [7.0], [8.0]],
  [[10.0], [11.0], [14.0], [15.0]], [[12.0], [13.0], [16.0], [17.0]]]]> : tensor<1x4x4x1xf32>
%k = stablehlo.constant dense<1.0> : tensor<3x3x1x1xf32>
%c = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
  window = {stride = [4, 4], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x2x2x1xf32>
return %c : tensor<1x2x2x1xf32>`), 0, values("f32", []int{1, 2, 2, 1}, 10, 26, 46, 62))
}

// convolved is one convolution for the comparison with the definition.
type convolved struct {
	input, kernel          []int // batch, space, feature; space, input and output feature
	stride, dilate, spread []int
	pad                    [][2]int
	reverse                []bool
	features, batches      int
	orders                 [3]string // of dimensions in the text
}

// definition pads and dilates the input into an array of its own, and adds up
// products window by window.
func (c convolved) definition(a, k []float64) (dims []int, out []float64) {
	n, f := c.input[0], c.input[3]
	size, from := [2]int{}, [2]int{}
	for i := range 2 {
		size[i] = (c.input[1+i]-1)*c.dilate[i] + 1 + c.pad[i][0] + c.pad[i][1]
		from[i] = (size[i]-(c.kernel[i]-1)*c.spread[i]-1)/c.stride[i] + 1
	}
	padded := map[[4]int]float64{}
	for b := range n {
		for y := range c.input[1] {
			for x := range c.input[2] {
				for g := range f {
					padded[[4]int{b, y*c.dilate[0] + c.pad[0][0], x*c.dilate[1] + c.pad[1][0], g}] =
						a[((b*c.input[1]+y)*c.input[2]+x)*f+g]
				}
			}
		}
	}
	filters := c.kernel[3]
	dims = []int{n / c.batches, from[0], from[1], filters}
	for b := range dims[0] {
		for y := range dims[1] {
			for x := range dims[2] {
				for o := range filters {
					sum := 0.0
					for ky := range c.kernel[0] {
						for kx := range c.kernel[1] {
							for i := range c.kernel[2] {
								record := b + o/(filters/c.batches)*dims[0]
								feature := i + o/(filters/c.features)*c.kernel[2]
								py, px := y*c.stride[0]+ky*c.spread[0], x*c.stride[1]+kx*c.spread[1]
								if py >= size[0] || px >= size[1] {
									panic("a window outside of the padded input")
								}
								wy, wx := ky, kx
								if c.reverse[0] {
									wy = c.kernel[0] - 1 - ky
								}
								if c.reverse[1] {
									wx = c.kernel[1] - 1 - kx
								}
								sum += padded[[4]int{record, py, px, feature}] * k[((wy*c.kernel[1]+wx)*c.kernel[2]+i)*filters+o]
							}
						}
					}
					out = append(out, sum)
				}
			}
		}
	}
	return dims, out
}

// arranged permutes an array so that dimension i is the one that names[i] has in
// standard.
func arranged(dims []int, v []float64, standard, names string) Tensor {
	x := tensor{t: Type{"f32", dims}, f: v}
	t, own := Type{Element: "f32"}, stridesOf(dims)
	var strides []int
	for _, c := range names {
		i := strings.IndexRune(standard, c)
		t.Dims, strides = append(t.Dims, dims[i]), append(strides, own[i])
	}
	return Tensor{"f32", t.Dims, x.view(t, strides, 0).f, nil}
}

func typed(dims []int) string { return Type{"f32", dims}.String() }

func (c convolved) text(dims []int) string {
	spaced := func(s string) string { return "[" + strings.Join(strings.Split(s, ""), ", ") + "]" }
	a := arranged(c.input, make([]float64, Type{Dims: c.input}.Size()), "b01f", c.orders[0])
	k := arranged(c.kernel, make([]float64, Type{Dims: c.kernel}.Size()), "01io", c.orders[1])
	out := arranged(dims, make([]float64, Type{Dims: dims}.Size()), "b01f", c.orders[2])
	return program(fmt.Sprintf("%%a: %s, %%k: %s", typed(a.Dims), typed(k.Dims)), fmt.Sprintf(
		`%%c = stablehlo.convolution(%%a, %%k) dim_numbers = %sx%s->%s, window = {stride = [%s], pad = [[%s], [%s]], lhs_dilate = [%s], rhs_dilate = [%s], reverse = [%t, %t]} {batch_group_count = %d : i64, feature_group_count = %d : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]} : (%s, %s) -> %[15]s
return %%c : %[15]s`, spaced(c.orders[0]), spaced(c.orders[1]), spaced(c.orders[2]), joined(c.stride), joined(c.pad[0][:]), joined(c.pad[1][:]),
		joined(c.dilate), joined(c.spread), c.reverse[0], c.reverse[1], c.batches, c.features, typed(a.Dims), typed(k.Dims), typed(out.Dims)))
}

func TestConvolution(t *testing.T) {
	usual := [3]string{"b01f", "01io", "b01f"}
	none, one := [][2]int{{0, 0}, {0, 0}}, []int{1, 1}
	straight := []bool{false, false}
	for name, c := range map[string]convolved{
		"plain":     {[]int{2, 5, 6, 3}, []int{3, 2, 3, 4}, one, one, one, none, straight, 1, 1, usual},
		"stride":    {[]int{2, 5, 6, 3}, []int{2, 2, 3, 4}, []int{2, 3}, one, one, none, straight, 1, 1, usual},
		"pad":       {[]int{2, 5, 6, 3}, []int{3, 3, 3, 2}, []int{2, 1}, one, one, [][2]int{{1, 2}, {0, 3}}, straight, 1, 1, usual},
		"cut":       {[]int{2, 5, 6, 3}, []int{2, 2, 3, 2}, one, one, one, [][2]int{{-1, 2}, {1, -2}}, straight, 1, 1, usual},
		"dilate":    {[]int{2, 3, 4, 3}, []int{2, 3, 3, 2}, one, []int{2, 3}, one, [][2]int{{1, -1}, {2, 0}}, straight, 1, 1, usual},
		"spread":    {[]int{2, 7, 6, 3}, []int{3, 2, 3, 2}, []int{1, 2}, one, []int{2, 3}, [][2]int{{1, 0}, {0, 1}}, straight, 1, 1, usual},
		"all":       {[]int{2, 4, 5, 3}, []int{2, 3, 3, 2}, []int{2, 3}, []int{3, 2}, []int{2, 2}, [][2]int{{2, -1}, {-1, 3}}, []bool{true, false}, 1, 1, usual},
		"reverse":   {[]int{1, 5, 5, 2}, []int{3, 2, 2, 2}, one, one, one, none, []bool{true, true}, 1, 1, usual},
		"groups":    {[]int{2, 5, 4, 6}, []int{3, 2, 2, 9}, one, one, one, [][2]int{{1, 1}, {0, 1}}, straight, 3, 1, usual},
		"depthwise": {[]int{2, 5, 4, 3}, []int{3, 2, 1, 3}, one, one, one, none, straight, 3, 1, usual},
		"batches":   {[]int{4, 5, 4, 3}, []int{3, 2, 3, 6}, []int{2, 1}, one, one, none, straight, 1, 2, usual},
		"weights":   {[]int{3, 6, 6, 2}, []int{5, 5, 2, 4}, one, one, one, [][2]int{{1, 1}, {1, 0}}, straight, 1, 1, [3]string{"f01b", "i01o", "01bf"}},
		"channels":  {[]int{2, 4, 5, 3}, []int{2, 2, 3, 4}, []int{2, 1}, one, one, none, straight, 1, 1, [3]string{"bf01", "oi01", "fb10"}},
		"swapped":   {[]int{2, 4, 5, 3}, []int{2, 3, 3, 4}, []int{2, 1}, one, one, [][2]int{{1, 0}, {0, 0}}, straight, 1, 1, [3]string{"b10f", "1i0o", "0b1f"}},
		"empty":     {[]int{2, 0, 5, 3}, []int{1, 2, 3, 4}, one, one, one, [][2]int{{0, 1}, {0, 0}}, straight, 1, 1, usual},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "empty" { // the dilated size of nothing is 0, not 1-1·dilation
				text := c.text([]int{2, 1, 4, 4})
				equal(t, run(t, text, values("f32", c.input), values("f32", c.kernel, make([]float64, 24)...)), 0,
					values("f32", []int{2, 1, 4, 4}, make([]float64, 32)...))
				return
			}
			r := rand.New(rand.NewPCG(3, 4))
			a, k := random(r, Type{Dims: c.input}.Size()), random(r, Type{Dims: c.kernel}.Size())
			dims, want := c.definition(a, k)
			got := run(t, c.text(dims), arranged(c.input, a, "b01f", c.orders[0]), arranged(c.kernel, k, "01io", c.orders[1]))
			equal(t, got, 1e-12, arranged(dims, want, "b01f", c.orders[2]))
		})
	}
}

// One and three spatial dimensions.
func TestConvolutionRanks(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[[1.0, 2.0, 3.0, 4.0]]]> : tensor<1x1x4xf32>
%k = stablehlo.constant dense<[[[1.0, -1.0]]]> : tensor<1x1x2xf32>
%c = stablehlo.convolution(%a, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x4xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
%v = stablehlo.reshape %a : (tensor<1x1x4xf32>) -> tensor<1x1x2x2x1xf32>
%w = stablehlo.constant dense<2.0> : tensor<1x2x2x1x1xf32>
%d = stablehlo.convolution(%v, %w) dim_numbers = [b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x2x2x1xf32>, tensor<1x2x2x1x1xf32>) -> tensor<1x1x1x1x1xf32>
return %c, %d : tensor<1x1x4xf32>, tensor<1x1x1x1x1xf32>`), 0,
		values("f32", []int{1, 1, 4}, -1, -1, -1, -1), values("f32", []int{1, 1, 1, 1, 1}, 20))
}
