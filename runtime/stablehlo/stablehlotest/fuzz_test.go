package stablehlotest

import (
	"strings"
	"testing"
)

// FuzzParse looks for texts that make Parse panic or never end.
func FuzzParse(f *testing.F) {
	for _, body := range []string{
		"%a = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>\nreturn %a : tensor<2x2xi32>",
		twoByThree + "%b = stablehlo.slice %a [1:2, 0:3:2] : (tensor<2x3xi32>) -> tensor<1x2xi32>\nreturn %b : tensor<1x2xi32>",
		threeByFourByTwo + `%b = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>`,
		`%r:2 = "stablehlo.scatter"(%a, %i) <{indices_are_sorted = false}> ` + adds + " : (tensor<2xf32>) -> tensor<f32>\nreturn",
		"%0:2 = stablehlo.while(%i = %n, %v = %s) : tensor<i32>, tensor<f32>\ncond {\n} do {\n}",
		"%c = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 0]]} {batch_group_count = 1 : i64}",
	} {
		f.Add(program("%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}", body))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := Parse(text); err == nil {
			p.Arguments()
		} else if !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("an error without a line: %v", err)
		}
	})
}

// Each text that begins like a valid program, or lacks one token, ends with an
// error or a program.
func TestBrokenTexts(t *testing.T) {
	text := program("%a: tensor<2x3xf32>, %i: tensor<2x3xi32>, %s: tensor<f32>, %zero: tensor<i32>, %k: tensor<1x3x2xf32>", `%0 = stablehlo.add %a, %a : tensor<2x3xf32>
%1:2 = stablehlo.reduce(%a init: %s), (%i init: %zero) across dimensions = [0] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
 reducer(%x: tensor<f32>, %y: tensor<f32>) (%j: tensor<i32>, %k2: tensor<i32>) {
  stablehlo.return %x, %j : tensor<f32>, tensor<i32>
 }
%2:2 = stablehlo.while(%n = %zero, %v = %s) : tensor<i32>, tensor<f32>
cond {
  %more = stablehlo.compare LT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %more : tensor<i1>
} do {
  %next = func.call @f(%n) : (tensor<i32>) -> tensor<i32>
  stablehlo.return %next, %v : tensor<i32>, tensor<f32>
}
%3 = stablehlo.slice %a [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>
%4 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
%5 = stablehlo.pad %a, %s, low = [0, -1], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x2xf32>
%6 = stablehlo.dynamic_slice %a, %zero, %zero, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
%7 = stablehlo.dynamic_update_slice %a, %6, %zero, %zero : (tensor<2x3xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
%8 = stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
%9 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
%10 = stablehlo.convolution(%9, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<1x2x3xf32>, tensor<1x3x2xf32>) -> tensor<1x2x2xf32>
%11 = "stablehlo.reduce_window"(%i, %zero) <{window_dimensions = array<i64: 2, 1>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>}> `+adds+` : (tensor<2x3xi32>, tensor<i32>) -> tensor<1x3xi32>
%12 = "stablehlo.gather"(%a, %zero) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 0>, slice_sizes = array<i64: 1, 3>, indices_are_sorted = false}> : (tensor<2x3xf32>, tensor<i32>) -> tensor<3xf32>
%13 = stablehlo.select %14, %a, %a : tensor<2x3xi1>, tensor<2x3xf32>
return %0 : tensor<2x3xf32>`)
	text = strings.Replace(text, "{\n", "{\nfunc.func private @f(%a: tensor<i32>) -> tensor<i32> {\nreturn %a : tensor<i32>\n}\n", 1)
	text = strings.Replace(text, "%13 =", "%14 = stablehlo.compare EQ, %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>\n%13 =", 1)
	if _, err := Parse(text); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(text); i += 3 {
		if _, err := Parse(text[:i]); err == nil && i < len(text)-1 {
			t.Fatalf("the first %d bytes are accepted", i)
		}
		for length := 1 + i%3; length < 40 && i+length < len(text); length += 19 {
			_, _ = Parse(text[:i] + text[i+length:])
		}
	}
}
