package stablehlotest

import (
	"strings"
	"testing"
)

func TestRefusedReductions(t *testing.T) {
	refuse(t, program("%a: tensor<2x3xf32>, %i: tensor<2x3xi32>, %s: tensor<f32>, %z: tensor<i32>, %h: tensor<bf16>",
		`%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
%1:2 = stablehlo.reduce(%a init: %s), (%i init: %z) across dimensions = [0] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
 reducer(%x: tensor<f32>, %y: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
  %v = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %v, %j : tensor<f32>, tensor<i32>
 }
return %0 : tensor<2xf32>`), []refusal{
		{"applies stablehlo.add", "applies stablehlo.subtract", "a reduction by stablehlo.subtract"},
		{"applies stablehlo.add", "applies stablehlo.exponential", "a reduction by"},
		{"applies stablehlo.add", "applies add", "a reduction by"},
		{"applies stablehlo.add", "applies stablehlo.and", "not defined for f32"},
		{"dimensions = [1]", "dimensions = [2]", "reduced over [2]"},
		{"dimensions = [1]", "dimensions = [1, 1]", "reduced over"},
		{"dimensions = [1]", "dimensions = [0]", "the result is [tensor<3xf32>]"},
		{"(%a init: %s) applies", "(%a init: %h) applies", "operand 1 is a tensor<bf16>"},
		{"(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>)", "(%a init: %h) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<bf16>)", "the result is"},
		{"(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>)", "(%a init: %a) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xf32>)", "the result is"},
		{"(%i init: %z) across dimensions = [0] : (tensor<2x3xf32>, tensor<2x3xi32>,", "(%z init: %z) across dimensions = [0] : (tensor<2x3xf32>, tensor<i32>,", "are reduced together"},
		{"reducer(%x: tensor<f32>, %y: tensor<f32>)", "reducer(%x: tensor<f32>, %y: tensor<i32>)", "line 4: parameter 0 of the region is a tensor<i32>"},
		{"(%j: tensor<i32>, %k: tensor<i32>)", "", "want ("},
		{"(%j: tensor<i32>, %k: tensor<i32>)", "(%x: tensor<i32>, %k: tensor<i32>)", "%x is defined twice"},
		{"(%j: tensor<i32>, %k: tensor<i32>)", "(%a: tensor<i32>, %k: tensor<i32>)", "%a is defined twice"},
		{"add %x, %y : tensor", "add %x, %s : tensor", "line 4: the region uses a value from outside"},
		{"%v, %j : tensor<f32>, tensor<i32>", "%v : tensor<f32>", "the result is"},
		{"%v, %j : tensor<f32>, tensor<i32>", "%j, %v : tensor<i32>, tensor<f32>", "the result is"},
		{"  stablehlo.return %v, %j", "  return %v, %j", "unknown operation return"},
		{"return %0", "%2 = stablehlo.add %v, %v : tensor<f32>\nreturn %0", "%v is used before its definition"},
	})
}

func TestRefusedLoops(t *testing.T) {
	refuse(t, program("%n: tensor<i32>, %s: tensor<f32>", `%0:2 = stablehlo.while(%i = %n, %v = %s) : tensor<i32>, tensor<f32>
cond {
  %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %more : tensor<i1>
} do {
  %next = func.call @f(%i) : (tensor<i32>) -> tensor<i32>
  stablehlo.return %next, %v : tensor<i32>, tensor<f32>
}
return %0 : tensor<i32>
}
func.func private @f(%n: tensor<i32>) -> tensor<i32> {
  return %n : tensor<i32>`), []refusal{
		{": tensor<i32>, tensor<f32>\ncond", ": tensor<i32>\ncond", "line 4: cond, want ,"},
		{": tensor<i32>, tensor<f32>\ncond", ": tensor<i32>, tensor<i32>\ncond", "operand 1 is a tensor<f32>"},
		{"%v = %s", "%n = %s", "%n is defined twice"},
		{"%v = %s", "%i = %s", "%i is defined twice"},
		{"return %more : tensor<i1>", "return %i : tensor<i32>", "the result is [tensor<i1>]"},
		{"return %next, %v : tensor<i32>, tensor<f32>", "return %v, %next : tensor<f32>, tensor<i32>", "the result is"},
		{"return %next, %v", "return %more, %v", "%more is used before its definition"},
		{"func.call @f", "call @f", "unknown operation call"},
		{"cond {", "cond attributes {", "want {"},
		{"} do {", "} {", "want do"},
		{"%0:2", "%0", "gives 2 results, 1 have a name"},
	})
}

func TestRefusedProducts(t *testing.T) {
	refuse(t, program("%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %h: tensor<3x4xbf16>, %i: tensor<3x4xi32>",
		`%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
%1 = stablehlo.dot_general %h, %h, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x4xbf16>, tensor<3x4xbf16>) -> tensor<3xf32>
return %0 : tensor<2x4xf32>`), []refusal{
		{"contracting_dims = [1] x [0]", "contracting_dims = [0] x [0]", "sizes [2] and [3]"},
		{"contracting_dims = [1] x [0]", "contracting_dims = [1] x []", "sizes [3] and []"},
		{"contracting_dims = [1] x [0]", "contracting_dims = [2] x [0]", "contracting dimensions [2] of"},
		{"contracting_dims = [1] x [0],", "", "want contracting_dims"},
		{"precision = [HIGHEST, DEFAULT]", "precision = [HIGHEST]", "1 precisions"},
		{"precision = [HIGHEST, DEFAULT]", "precision = [HIGHEST, BEST]", "unknown precision BEST"},
		{"precision = [HIGHEST, DEFAULT]", "algorithm = x", "want precision"},
		{"-> tensor<2x4xf32>\n%1", "-> tensor<4x2xf32>\n%1", "the result is [tensor<2x4xf32>]"},
		{"-> tensor<2x4xf32>\n%1", "-> tensor<2x4xi32>\n%1", "the product of"},
		{"dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>)", "dot_general %a, %h, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xbf16>)", "the result is [tensor<f32>], its annotation says [tensor<bf16>]"},
		{"dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>)", "dot_general %i, %i, contracting_dims = [1] x [1] : (tensor<3x4xi32>, tensor<3x4xi32>)", "products of i32 are not supported"},
		{"batching_dims = [0] x [0]", "batching_dims = [1] x [0]", "batching dimensions [1] and contracting dimensions [1]"},
		{"batching_dims = [0] x [0]", "batching_dims = [0] x []", "sizes [3] and []"},
		{"-> tensor<3xf32>", "-> tensor<4xf32>", "the result is [tensor<3xf32>]"},
	})
}

func TestRefusedConvolutions(t *testing.T) {
	refuse(t, program("%a: tensor<2x5x5x4xf32>, %k: tensor<3x3x4x6xf32>, %h: tensor<3x3x4x6xbf16>",
		`%0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
  window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}
  {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}
  : (tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x3x3x6xf32>
return %0 : tensor<2x3x3x6xf32>`), []refusal{
		{"[b, 0, 1, f]x", "[b, 0, 0, f]x", "0 is not a dimension here"},
		{"[b, 0, 1, f]x", "[b, 0, 2, f]x", "spatial dimension 1 is missing"},
		{"[b, 0, 1, f]x", "[b, 0, 1, o]x", "o is not a dimension here"},
		{"[b, 0, 1, f]x", "[b, 0, 1]x", "dimension b or f is missing"},
		{"[b, 0, 1, f]x", "[b, 0, f]x", "line 3: 2 items of a window's attribute, want 1"},
		{"[0, 1, i, o]", "[0, 1, 2, i, o]", "line 3: dimension numbers of other ranks"},
		{"[0, 1, i, o]", "[1, 0, o, i]", "line 3: "},
		{"->[b, 0, 1, f]", "->[f, 0, 1, b]", "line 3: the result is [tensor<6x3x3x2xf32>]"},
		{"stride = [1, 1]", "stride = [1]", "line 3: 1 items"},
		{"stride = [1, 1]", "stride = [0, 1]", "line 3: 0 in a window"},
		{"stride = [1, 1]", "stride = [2, 1]", "line 3: the result is [tensor<2x2x3x6xf32>]"},
		{"stride = [1, 1]", "strides = [1, 1]", "unknown attribute strides"},
		{"stride = [1, 1]", "pad = [[0, 0], [0, 0]]", "attribute pad appears twice"},
		{"pad = [[0, 0], [0, 0]]", "pad = [[1, 0], [0, 0]]", "line 3: the result is [tensor<2x4x3x6xf32>]"},
		{"pad = [[0, 0], [0, 0]]", "pad = [0, 0]", "want ["},
		{"pad = [[0, 0], [0, 0]]", "pad = [[0, 0]]", "line 3: 1 items"},
		{"reverse = [false, false]", "reverse = [0, 0]", "want false"},
		{"batch_group_count = 1 : i64, ", "", "line 3: batch_group_count or feature_group_count is missing"},
		{", feature_group_count = 1 : i64", "", "line 3: batch_group_count or feature_group_count is missing"},
		{"feature_group_count = 1 : i64", "feature_group_count = 2 : i64", "line 3: "},
		{"feature_group_count = 1 : i64", "feature_group_count = 1 : i32", "want i64"},
		{"batch_group_count = 1 : i64", "batch_group_count = 4 : i64", "line 3: "},
		{"batch_group_count = 1 : i64", "batch_group_count = 0 : i64", "line 3: 0 batch groups"},
		{"batch_group_count = 1 : i64", "groups = 1 : i64", "unknown attribute groups"},
		{", #stablehlo<precision HIGHEST>]", "]", "1 precisions"},
		{"#stablehlo<precision HIGHEST>", "#stablehlo<precision BEST>", "unknown precision BEST"},
		{"#stablehlo<precision HIGHEST>", "#mhlo<precision HIGHEST>", "want #stablehlo"},
		{"(%a, %k)", "(%a, %k, %k)", "3 operands, want 2"},
		{"-> tensor<2x3x3x6xf32>", "-> tensor<2x3x3x6xbf16>", "line 3: the result is"},
		{"tensor<2x5x5x4xf32>, %k: tensor<3x3x4x6xf32>", "tensor<2x5x5x4xf32>, %k: tensor<3x3x4x6xbf16>", "line 6: operand 1"},
		{"(%a, %k) ", "(%a, %h) ", "line 6: operand 1 is a tensor<3x3x4x6xbf16>"},
	})
}

// Operands of other types than f32, with annotations that are right.
func TestRefusedConvolutionTypes(t *testing.T) {
	refuse(t, program("%a: tensor<1x4x1xf32>, %k: tensor<1x1x2xf32>, %h: tensor<1x1x2xbf16>, %i: tensor<1x4x1xi32>, %j: tensor<1x1x2xi32>",
		`%0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<1x1x2xf32>) -> tensor<1x4x2xf32>
return %a : tensor<1x4x1xf32>`), []refusal{
		{"(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<1x1x2xf32>)",
			"(%a, %h) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<1x1x2xbf16>)", "the result is [tensor<f32>], its annotation says [tensor<bf16>]"},
		{"(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<1x1x2xf32>) -> tensor<1x4x2xf32>",
			"(%i, %j) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x1xi32>, tensor<1x1x2xi32>) -> tensor<1x4x2xi32>", "products of i32"},
	})
}

func TestRefusedBatches(t *testing.T) {
	refuse(t, program("%a: tensor<2x3xf32>, %i: tensor<2x4x1xi32>, %j: tensor<4x2xi32>", `%0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<operand_batching_dims = [0], start_indices_batching_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xf32>, tensor<2x4x1xi32>) -> tensor<2x4xf32>
%1 = "stablehlo.gather"(%a, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xf32>, tensor<4x2xi32>) -> tensor<4xf32>
return %0 : tensor<2x4xf32>`), []refusal{
		{"start_indices_batching_dims = [0]", "start_indices_batching_dims = [1]", "have different sizes"},
		{"start_indices_batching_dims = [0]", "start_indices_batching_dims = [2]", "batching dimensions [2] of"},
		{"start_indices_batching_dims = [0], ", "", "batching dimensions [0] and []"},
		{"collapsed_slice_dims = [0, 1]", "collapsed_slice_dims = [1, 0]", "not in order"},
		{"(%a, %j)", "(%a)", "1 operands, want 2"},
	})
}

func TestRefusedUpdates(t *testing.T) {
	const dimensions = "<{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
	const types = ": (tensor<3x2xi32>, tensor<4x1xi32>, tensor<4x2xi32>) -> tensor<3x2xi32>"
	wide := strings.ReplaceAll(adds, "i32", "i64")
	refuse(t, program("%a: tensor<3x2xi32>, %i: tensor<4x1xi32>, %u: tensor<4x2xi32>, %v: tensor<4x2xf32>, %w: tensor<5x2xi32>, %b: tensor<3x2xi64>, %c: tensor<4x2xi64>, %s: tensor<i32>, %f: tensor<f32>, %l: tensor<i64>",
		`%0 = "stablehlo.scatter"(%a, %i, %u) `+dimensions+adds+types+`
%1 = "stablehlo.reduce_window"(%a, %s) <{window_dimensions = array<i64: 1, 1>}> `+adds+`: (tensor<3x2xi32>, tensor<i32>) -> tensor<3x2xi32>
return %0 : tensor<3x2xi32>`), []refusal{
		{"(%a, %i, %u)", "(%a, %i)", "2 operands, want 3"},
		{"(%a, %i, %u) " + dimensions + adds + types,
			"(%a, %i, %v) " + dimensions + adds + ": (tensor<3x2xi32>, tensor<4x1xi32>, tensor<4x2xf32>) -> tensor<3x2xi32>", "the result is [tensor<i32>]"},
		{"(%a, %i, %u) " + dimensions + adds + types,
			"(%a, %i, %w) " + dimensions + adds + ": (tensor<3x2xi32>, tensor<4x1xi32>, tensor<5x2xi32>) -> tensor<3x2xi32>", "the result is [tensor<4x2xi32>]"},
		{"(%a, %i, %u) " + dimensions + adds + types,
			"(%b, %i, %c) " + dimensions + wide + ": (tensor<3x2xi64>, tensor<4x1xi32>, tensor<4x2xi64>) -> tensor<3x2xi64>", "not supported here"},
		{"(%a, %s)", "(%a)", "1 operands, want 2"},
		{"(%a, %s) <{window_dimensions = array<i64: 1, 1>}> " + adds + ": (tensor<3x2xi32>, tensor<i32>)",
			"(%a, %f) <{window_dimensions = array<i64: 1, 1>}> " + adds + ": (tensor<3x2xi32>, tensor<f32>)", "the result is [tensor<i32>]"},
		{"(%a, %s) <{window_dimensions = array<i64: 1, 1>}> " + adds + ": (tensor<3x2xi32>, tensor<i32>) -> tensor<3x2xi32>",
			"(%b, %l) <{window_dimensions = array<i64: 1, 1>}> " + wide + ": (tensor<3x2xi64>, tensor<i64>) -> tensor<3x2xi64>", "not supported here"},
	})
}

func TestRefusedGathers(t *testing.T) {
	refuse(t, program("%a: tensor<3x2xf32>, %i: tensor<4x1xi32>, %u: tensor<4x2xf32>, %f: tensor<4x1xf32>",
		`%0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false}> : (tensor<3x2xf32>, tensor<4x1xi32>) -> tensor<4x2xf32>
%1 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %z : tensor<f32>
}) : (tensor<3x2xf32>, tensor<4x1xi32>, tensor<4x2xf32>) -> tensor<3x2xf32>
return %0 : tensor<4x2xf32>`), []refusal{
		{"#stablehlo.gather<", "#stablehlo.scatter<", "want #stablehlo.gather"},
		{"offset_dims = [1]", "offset_dims = [2]", "window dimensions [2]"},
		{"offset_dims = [1]", "offset_dims = [0]", "the result is [tensor<2x4xf32>]"},
		{"offset_dims = [1]", "offset_dims = []", "parts of 0 dimensions"},
		{"collapsed_slice_dims = [0]", "collapsed_slice_dims = [1]", "a collapsed dimension of 2 elements"},
		{"collapsed_slice_dims = [0]", "collapsed_slice_dims = [2]", "collapsed or inserted dimensions"},
		{"collapsed_slice_dims = [0]", "collapsed_dims = [0]", "unknown attribute collapsed_dims"},
		{"start_index_map = [0]", "start_index_map = [0, 1]", "1 indices in"},
		{"start_index_map = [0]", "start_index_map = [2]", "indices of the dimensions [2]"},
		{"start_index_map = [0]", "start_index_map = [0], operand_batching_dims = [0]", "collapsed or inserted dimensions"},
		{"index_vector_dim = 1>, slice", "index_vector_dim = 3>, slice", "index_vector_dim 3"},
		{"index_vector_dim = 1>, slice", "index_vector_dim = 2>, slice", "parts of 1 dimensions"},
		{"slice_sizes = array<i64: 1, 2>", "slice_sizes = array<i64: 1, 1>", "the result is [tensor<4x1xf32>]"},
		{"slice_sizes = array<i64: 1, 2>", "slice_sizes = array<i64: 1, 3>", "a part of the sizes"},
		{"slice_sizes = array<i64: 1, 2>", "slice_sizes = array<i32: 1, 2>", "want i64"},
		{"slice_sizes = array<i64: 1, 2>, ", "", "attribute slice_sizes is missing"},
		{"indices_are_sorted = false", "sorted = false", "unknown attribute sorted"},
		{"indices_are_sorted = false", "indices_are_sorted = 0", "want false"},
		{"(%a, %i) <{", "(%a, %f) <{", "operand 1 is a"},
		{"\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false}> : (tensor<3x2xf32>, tensor<4x1xi32>)", "\"(%a, %f) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false}> : (tensor<3x2xf32>, tensor<4x1xf32>)", "indices of the type"},
		{"update_window_dims = [1]", "update_window_dims = [0]", "line 4: a part of the sizes [1 4]"},
		{"inserted_window_dims = [0]", "inserted_window_dims = []", "line 4: parts of 1 dimensions"},
		{"unique_indices = false}>", "unique_indices = false}> {}", "want ("},
		{"%y: tensor<f32>)", "%y: tensor<i32>)", "line 4: parameter 1"},
		{"%y: tensor<f32>)", "%y: tensor<f32>, %w: tensor<f32>)", "line 4: parameter 2"},
		{"(%x: tensor<f32>, %y: tensor<f32>):\n  %z = stablehlo.add %x, %y", "(%x: tensor<f32>):\n  %z = stablehlo.add %x, %x", "line 4: the region has 1 parameters"},
		{"^bb0(%x: tensor<f32>, %y: tensor<f32>):", "", "line 6: %z, want ^bb0"},
		{"return %z : tensor<f32>", "return %z, %z : tensor<f32>, tensor<f32>", "the result is"},
		{"-> tensor<3x2xf32>", "-> tensor<4x2xf32>", "line 4: the result is [tensor<3x2xf32>]"},
		{"add %x, %y : tensor<f32>", "compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>", "line 7: operand 0 is a tensor<i1>"},
	})
}

func TestRefusedWindows(t *testing.T) {
	refuse(t, program("%a: tensor<4x2xf32>, %u: tensor<2x2xf32>, %s: tensor<f32>, %h: tensor<bf16>",
		`%0 = "stablehlo.reduce_window"(%a, %s) ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.maximum %x, %y : tensor<f32>
  stablehlo.return %z : tensor<f32>
}) {window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<4x2xf32>, tensor<f32>) -> tensor<2x2xf32>
%1 = "stablehlo.select_and_scatter"(%a, %u, %s) ({
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %z = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %z : tensor<i1>
}, {
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %z : tensor<f32>
}) {window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>} : (tensor<4x2xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x2xf32>
return %0 : tensor<2x2xf32>`), []refusal{
		{"window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, padding", "window_strides = array<i64: 2, 1>, padding", "line 3: attribute window_dimensions is missing"},
		{"window_dimensions = array<i64: 2, 1>", "window_dimensions = array<i64: 2>", "line 3: windows of 1 dimensions"},
		{"window_dimensions = array<i64: 2, 1>", "window_dimensions = array<i64: 2, 2>", "line 3: the result is [tensor<2x1xf32>]"},
		{"window_dimensions = array<i64: 2, 1>", "window_dimensions = array<i64: 2, 0>", "line 3: windows with [2 0]"},
		{"window_strides = array<i64: 2, 1>", "window_strides = array<i64: 1>", "line 3: windows with [1]"},
		{"window_strides = array<i64: 2, 1>", "strides = array<i64: 2, 1>", "unknown attribute strides"},
		{"[[0, 0], [0, 0]]> : tensor<2x2xi64>", "[[0, 0]]> : tensor<1x2xi64>", "line 3: windows of"},
		{"[[0, 0], [0, 0]]> : tensor<2x2xi64>", "[[0, 0], [0, 0]]> : tensor<2x2xi32>", "want pairs of i64"},
		{"-> tensor<2x2xf32>\n%1", "-> tensor<2x3xf32>\n%1", "line 3: the result is"},
		{"(%a, %u, %s)", "(%a, %u)", "2 operands, want 3"},
		{"(%a, %s) ({", "(%a, %h) ({", "line 7: operand 1 is a tensor<bf16>"},
		{"(%a, %u, %s)", "(%a, %a, %s)", "line 16: operand 1 is a tensor<4x2xf32>"},
		{"window_strides = array<i64: 2, 1>} : (tensor<4x2xf32>, tensor<2x2xf32>", "window_strides = array<i64: 1, 1>} : (tensor<4x2xf32>, tensor<2x2xf32>", "line 8: the result is [tensor<3x2xf32>]"},
		{"window_strides = array<i64: 2, 1>} : (tensor<4x2xf32>, tensor<2x2xf32>", "base_dilations = array<i64: 2, 1>} : (tensor<4x2xf32>, tensor<2x2xf32>", "unknown attribute base_dilations"},
		{"  stablehlo.return %z : tensor<i1>\n}, {", "  stablehlo.return %z : tensor<i1>\n}) ({", "line 12: ), want ,"},
		{"return %z : tensor<i1>", "return %p : tensor<f32>", "the result is [tensor<i1>]"},
		{"(%a, %u, %s)", "(%a, %u, %h)", "line 16: operand 2 is a tensor<bf16>"},
		{"tensor<2x2xf32>, tensor<f32>) -> tensor<4x2xf32>", "tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>", "line 8: the result is [tensor<4x2xf32>]"},
	})
}

func TestRefusedTexts(t *testing.T) {
	valid := program("", "%a = stablehlo.constant dense<1.0> : tensor<f32> // a comment\nreturn %a : tensor<f32>")
	refuse(t, valid, []refusal{
		{"%a =", "% =", "% without a name"},
		{"%a =", "%a ;", "unexpected character ';'"},
		{"%a =", "a =", "unknown operation a"},
		{"@test", "@1test", "@ without a name"},
		{"@test", "\"test\"", "want {"},
		{"// a comment", "/ a comment", "unexpected character '/'"},
		{"dense<1.0>", "dense<\"0x00", "a string has no end"},
		{"dense<1.0>", "dense<\"0x00\">", "want a number"},
		{"dense<1.0>", "dense<[[[[[[[[[[[[[[[[[[1.0]]]]]]]]]]]]]]]]]]>", "too many brackets"},
		{"tensor<f32> //", "tensor<f32 //", "element type"},
		{"tensor<f32> //", "tensor<f32>> //", "unknown operation >"},
	})
}

func TestRefusedArguments(t *testing.T) {
	p, err := Parse(program("%a: tensor<2xf32>, %b: tensor<2xui8>, %c: tensor<2xi64>", "return %a, %b, %c : tensor<2xf32>, tensor<2xui8>, tensor<2xi64>"))
	if err != nil {
		t.Fatal(err)
	}
	f, u, i := vector("f32", 1.5, 2), vector("ui8", 0, 255), bits("i64", []int{2}, 1, 1<<63)
	got, err := p.Run([]Tensor{f, u, i})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, 0, f, u, i)
	for name, in := range map[string][]Tensor{
		"missing":       {f, u},
		"other type":    {vector("bf16", 1, 2), u, i},
		"other shape":   {vector("f32", 1, 2, 3), u, i},
		"few values":    {values("f32", []int{2}, 1), u, i},
		"too large":     {f, vector("ui8", 0, 256), i},
		"negative":      {f, vector("ui8", 0, -1), i},
		"not whole":     {f, vector("ui8", 0, 1.5), i},
		"not a number":  {f, vector("ui8", 0, nan), i},
		"values as i64": {f, u, vector("i64", 1, 2)},
		"bits as f32":   {bits("f32", []int{2}, 1, 2), u, i},
	} {
		if _, err := p.Run(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Whole texts of select_and_scatter with annotations that are right.
func TestRefusedSelections(t *testing.T) {
	text := program("%a: tensor<2xE>, %u: tensor<1xE>, %s: tensor<S>", `%0 = "stablehlo.select_and_scatter"(%a, %u, %s) ({
^bb0(%p: tensor<E>, %q: tensor<E>):
  %z = stablehlo.compare GE, %p, %q : (tensor<E>, tensor<E>) -> tensor<i1>
  stablehlo.return %z : tensor<i1>
}, {
^bb0(%x: tensor<E>, %y: tensor<E>):
  %z = stablehlo.add %x, %y : tensor<E>
  stablehlo.return %z : tensor<E>
}) {window_dimensions = array<i64: 2>} : (tensor<2xE>, tensor<1xE>, tensor<S>) -> tensor<2xE>
return %0 : tensor<2xE>`)
	fill := func(element, start string) string {
		return strings.NewReplacer("xE>", "x"+element+">", "<E>", "<"+element+">", "<S>", "<"+start+">").Replace(text)
	}
	for _, test := range []struct{ element, start, want string }{
		{"f32", "f32", ""},
		{"f32", "bf16", "line 3: the result is [tensor<f32>], its annotation says [tensor<bf16>]"},
		{"i64", "i64", "line 3: tensor<2xi64> is not supported here"},
	} {
		_, err := Parse(fill(test.element, test.start))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s and %s: %v, want %q", test.element, test.start, err, test.want)
		}
	}
}
