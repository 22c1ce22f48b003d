package stablehlotest

import "testing"

const threeByFourByTwo = `%a = stablehlo.constant dense<[[[1, 2], [3, 4], [5, 6], [7, 8]],
  [[9, 10], [11, 12], [13, 14], [15, 16]], [[17, 18], [19, 20], [21, 22], [23, 24]]]> : tensor<3x4x2xi32>
`

// The examples of the specification (with integers of 32 bits).
func TestGather(t *testing.T) {
	equal(t, evaluate(t, threeByFourByTwo+`%i = stablehlo.constant dense<[[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]]> : tensor<2x3x2xi64>
%b = "stablehlo.gather"(%a, %i) <{
  dimension_numbers = #stablehlo.gather<
    offset_dims = [2, 3],
    collapsed_slice_dims = [0],
    start_index_map = [1, 0],
    index_vector_dim = 2>,
  slice_sizes = array<i64: 1, 2, 2>,
  indices_are_sorted = false
}> : (tensor<3x4x2xi32>, tensor<2x3x2xi64>) -> tensor<2x3x2x2xi32>
return %b : tensor<2x3x2x2xi32>`), 0, values("i32", []int{2, 3, 2, 2}, 1, 2, 3, 4, 3, 4, 5, 6, 13, 14, 15, 16,
		9, 10, 11, 12, 11, 12, 13, 14, 17, 18, 19, 20))
}

// Rows of a table: an index that is not a vector.
func TestGatherRows(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
%i = stablehlo.constant dense<[[2, 0], [1, -5]]> : tensor<2x2xi32>
%b = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2>} : (tensor<3x2xf32>, tensor<2x2xi32>) -> tensor<2x2x2xf32>
return %b : tensor<2x2x2xf32>`), 0, values("f32", []int{2, 2, 2}, 5, 6, 1, 2, 3, 4, 1, 2))
}

// One element of each row, with batching dimensions.
func TestGatherBatch(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xui64>
%i = stablehlo.constant dense<[[2, 0], [1, 9]]> : tensor<2x2xi32>
%b = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<operand_batching_dims = [0], start_indices_batching_dims = [1], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xui64>, tensor<2x2xi32>) -> tensor<2x2xui64>
return %b : tensor<2x2xui64>`), 0, bits("ui64", []int{2, 2}, 3, 4, 2, 6))
	// The dimension of the index vector before the batching dimension.
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
%i = stablehlo.constant dense<[[2, 1]]> : tensor<1x2xi32>
%b = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<operand_batching_dims = [0], start_indices_batching_dims = [1], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xi32>, tensor<1x2xi32>) -> tensor<2xi32>
return %b : tensor<2xi32>`), 0, vector("i32", 3, 5))
}

const adds = `({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %z = stablehlo.add %x, %y : tensor<i32>
    stablehlo.return %z : tensor<i32>
  })`

func TestScatter(t *testing.T) {
	equal(t, evaluate(t, threeByFourByTwo+`%i = stablehlo.constant dense<[[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]]> : tensor<2x3x2xi64>
%u = stablehlo.constant dense<1> : tensor<2x3x2x2xi32>
%b = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
  update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 2>,
  indices_are_sorted = false, unique_indices = false}> `+adds+` : (tensor<3x4x2xi32>, tensor<2x3x2xi64>, tensor<2x3x2x2xi32>) -> tensor<3x4x2xi32>
return %b : tensor<3x4x2xi32>`), 0, values("i32", []int{3, 4, 2},
		1, 2, 5, 6, 7, 8, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 21, 22, 23, 24))
}

// The gradient of rows of a table; a region of more than one operation.
func TestScatterRows(t *testing.T) {
	for _, test := range []struct {
		region string
		want   []float64
	}{
		{"%z = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %z : tensor<f32>", []float64{7, 8, 0, 0, 6, 8}},
		{"stablehlo.return %y : tensor<f32>", []float64{7, 8, 0, 0, 5, 6}},
		{"%w = stablehlo.negate %y : tensor<f32>\n%z = stablehlo.add %w, %x : tensor<f32>\nstablehlo.return %z : tensor<f32>",
			[]float64{-7, -8, 0, 0, -6, -8}},
	} {
		equal(t, evaluate(t, `%a = stablehlo.constant dense<0.0> : tensor<3x2xf32>
%i = stablehlo.constant dense<[2, 3, 0, 2]> : tensor<4xi32>
%u = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [7.0, 8.0], [5.0, 6.0]]> : tensor<4x2xf32>
%b = "stablehlo.scatter"(%a, %i, %u) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    `+test.region+`
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<3x2xf32>, tensor<4xi32>, tensor<4x2xf32>) -> tensor<3x2xf32>
return %b : tensor<3x2xf32>`), 0, values("f32", []int{3, 2}, test.want...))
	}
}

func TestReduceWindow(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
%s = stablehlo.constant dense<0> : tensor<i32>
%b = "stablehlo.reduce_window"(%a, %s) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 4, 1>,
  base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 3, 1>, padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>}> `+adds+` : (tensor<3x2xi32>, tensor<i32>) -> tensor<2x2xi32>
%c = "stablehlo.reduce_window"(%a, %s) `+adds+` {window_dimensions = array<i64: 2, 2>, padding = dense<0> : tensor<2x2xi64>} : (tensor<3x2xi32>, tensor<i32>) -> tensor<2x1xi32>
return %b, %c : tensor<2x2xi32>, tensor<2x1xi32>`), 0, values("i32", []int{2, 2}, 0, 0, 3, 4), values("i32", []int{2, 1}, 10, 18))
}

func TestSelectAndScatter(t *testing.T) {
	for direction, want := range map[string][]float64{"GE": {0, 0, 0, 0, 5, 14, 7, 0}, "GT": {0, 0, 0, 0, 5, 14, 7, 0}} {
		equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1, 5], [2, 5], [3, 6], [4, 4]]> : tensor<4x2xi32>
%u = stablehlo.constant dense<[[5, 6], [7, 8]]> : tensor<2x2xi32>
%s = stablehlo.constant dense<0> : tensor<i32>
%b = "stablehlo.select_and_scatter"(%a, %u, %s) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 2, 1>,
  padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %z = stablehlo.compare `+direction+`, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }, {
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %z = stablehlo.add %x, %y : tensor<i32>
    stablehlo.return %z : tensor<i32>
  }) : (tensor<4x2xi32>, tensor<2x2xi32>, tensor<i32>) -> tensor<4x2xi32>
return %b : tensor<4x2xi32>`), 0, values("i32", []int{4, 2}, want...))
	}
}

// Of equal elements GE takes the first and GT the last.
func TestSelectOfEqual(t *testing.T) {
	for direction, want := range map[string][]float64{"GE": {1, 0, 0, 0}, "GT": {0, 0, 0, 1}} {
		equal(t, evaluate(t, `%a = stablehlo.constant dense<[[2.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>
%u = stablehlo.constant dense<1.0> : tensor<1x1xf32>
%s = stablehlo.constant dense<0.0> : tensor<f32>
%b = "stablehlo.select_and_scatter"(%a, %u, %s) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.compare `+direction+`, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) {window_dimensions = array<i64: 2, 2>} : (tensor<2x2xf32>, tensor<1x1xf32>, tensor<f32>) -> tensor<2x2xf32>
return %b : tensor<2x2xf32>`), 0, values("f32", []int{2, 2}, want...))
	}
}
