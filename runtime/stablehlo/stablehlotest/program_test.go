package stablehlotest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Loops, calls with two results, names in regions, donated arguments.
func TestProgram(t *testing.T) {
	p, err := Parse(`module @counts {
  // A function that is called before its definition.
  func.func public @main(%first: tensor<i32>, %v: tensor<2xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<i32>, tensor<2xf32>) {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %out:2 = stablehlo.while(%i = %first, %sum = %v) : tensor<i32>, tensor<2xf32>
    cond {
      %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %r:2 = func.call @step(%i, %sum) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
      stablehlo.return %r#0, %r#1 : tensor<i32>, tensor<2xf32>
    }
    return %out#0, %out#1 : tensor<i32>, tensor<2xf32>
  }
  func.func private @step(%i: tensor<i32>, %v: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %double = stablehlo.add %v, %v : tensor<2xf32>
    return %next, %double : tensor<i32>, tensor<2xf32>
  }
}
`)
	if err != nil {
		t.Fatal(err)
	}
	scalar, vector := Type{"i32", nil}, Type{"f32", []int{2}}
	if p.Name() != "counts" || !cmp.Equal(p.Arguments(), []Type{scalar, vector}) || !cmp.Equal(p.Results(), []Type{scalar, vector}) ||
		!cmp.Equal(p.Donated(), map[int]int{1: 1}) {
		t.Errorf("name %s, arguments %v, results %v, donated %v", p.Name(), p.Arguments(), p.Results(), p.Donated())
	}
	got, err := p.Run([]Tensor{{Type: "i32", Values: []float64{1}}, {Type: "f32", Dims: []int{2}, Values: []float64{1, -3}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{{Type: "i32", Values: []float64{3}}, {Type: "f32", Dims: []int{2}, Values: []float64{4, -12}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
