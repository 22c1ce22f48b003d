package stablehlo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/stablehlo"
	"github.com/stokehq/stoke/runtime/stablehlo/stablehlotest"
)

// run parses a program and runs it on vectors of f32, or of i32.
func run(t *testing.T, text string, arguments ...stablehlotest.Tensor) [][]float64 {
	t.Helper()
	p, err := stablehlotest.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	results, err := p.Run(arguments)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var all [][]float64
	for _, r := range results {
		all = append(all, r.Values)
	}
	return all
}

func tensor(t stablehlo.Type, dims []int, values ...float64) stablehlotest.Tensor {
	return stablehlotest.Tensor{Type: string(t), Dims: dims, Values: values}
}

// Operations on shapes and rows give what their names say; the engine's tests compare
// the others with the CPU engine.
func TestShapesAndRows(t *testing.T) {
	f := stablehlo.New(stablehlo.Highest)
	x := f.Argument(stablehlo.F32, 2, 3)
	ids := f.Argument(stablehlo.I32, 3)
	at := f.Argument(stablehlo.I32)
	text := f.Text("shapes",
		x.Transpose(1, 0), x.SliceDim(1, 1, 3), x.Pad([]int{1, 0}, []int{0, 1}, []int{0, 1}), x.Reverse(1),
		stablehlo.Concatenate(0, x, x.Scale(2)), x.Gather(ids), x.ScatterAdd(ids, f.Fill(stablehlo.F32, 1, 3, 3)), x.Part(at, 1),
		x.Largest(1), x.Convert(stablehlo.I32).Least(9, 0), x.Dot(x, stablehlo.Product{Left: []int{1}, Right: []int{1}}, stablehlo.F32))
	got := run(t, text, tensor(stablehlo.F32, []int{2, 3}, 1, 2, 3, 4, 5, 6), tensor(stablehlo.I32, []int{3}, 1, 0, 1), tensor(stablehlo.I32, nil, 1))
	for i, want := range [][]float64{
		{1, 4, 2, 5, 3, 6}, {2, 3, 5, 6}, {0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}, {3, 2, 1, 6, 5, 4},
		{1, 2, 3, 4, 5, 6, 2, 4, 6, 8, 10, 12}, {4, 5, 6, 1, 2, 3, 4, 5, 6}, {2, 3, 4, 6, 7, 8}, {4, 5, 6},
		{3, 6}, {1, 2, 3}, {14, 32, 32, 77},
	} {
		if !slices.Equal(got[i], want) {
			t.Errorf("result %d is %v, want %v", i, got[i], want)
		}
	}
}

// A loop calls the function for each part of the cut arguments, and carries the others.
func TestLoop(t *testing.T) {
	f := stablehlo.New(stablehlo.Default)
	factor := f.Argument(stablehlo.F32)
	total, count := f.Argument(stablehlo.F32), f.Argument(stablehlo.F32)
	part := f.Argument(stablehlo.F32, 2)
	text := f.Loop("loop", 3, 1, 3, total.Add(part.Sum(0).Multiply(factor)), count.Plus(1))
	got := run(t, text, tensor(stablehlo.F32, nil, 10), tensor(stablehlo.F32, nil, 0.5), tensor(stablehlo.F32, nil, 0),
		tensor(stablehlo.F32, []int{6}, 1, 2, 3, 4, 5, 6))
	if got[0][0] != 210.5 || got[1][0] != 3 {
		t.Errorf("the loop gave %v", got)
	}
	if all := stablehlo.Donated(text); !slices.Equal(all, []int{1, 2}) {
		t.Errorf("donated arguments %v of\n%s", all, text)
	}
}

// Shapes that do not fit are a mistake of the caller, and name the operation.
func TestMistakes(t *testing.T) {
	f := stablehlo.New(stablehlo.Highest)
	x, y := f.Argument(stablehlo.F32, 2, 3), f.Argument(stablehlo.F32, 3, 2)
	for want, mistake := range map[string]func(){
		"add":         func() { x.Add(y) },
		"reshape":     func() { x.Reshape(7) },
		"broadcast":   func() { x.Broadcast([]int{2, 4}, []int{0, 1}) },
		"comparison":  func() { x.Compare(stablehlo.Equal, y) },
		"select":      func() { x.Select(x, x) },
		"product":     func() { x.Dot(y, stablehlo.Product{Left: []int{1}, Right: []int{1}}, stablehlo.F32) },
		"convolution": func() { convolve(f) },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, want) {
					t.Errorf("%s: %v", want, text)
				}
			}()
			mistake()
		}()
	}
}

func convolve(f *stablehlo.Function) {
	w := stablehlo.Window{Stride: 1, Dilate: 1, Spread: 1}
	f.Argument(stablehlo.F32, 1, 4, 4, 3).Convolve(f.Argument(stablehlo.F32, 2, 2, 2, 5),
		stablehlo.Convolution{Height: w, Width: w, Input: "b01f", Kernel: "01io", Output: "b01f"})
}
