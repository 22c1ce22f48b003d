package stablehlotest

import (
	"fmt"
	"testing"
)

func TestReduce(t *testing.T) {
	for _, test := range []struct {
		operation, element, a, start, over, dims string
		want                                     Tensor
	}{
		{"add", "f32", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]", "0.5", "1", "2x", vector("f32", 6.5, 16)},
		{"add", "f32", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]", "0.0", "0", "3x", vector("f32", 5, 7, 9.5)},
		{"add", "f32", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]", "0.0", "0, 1", "", values("f32", nil, 21.5)},
		{"add", "f32", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]", "1.0", "", "2x3x", values("f32", []int{2, 3}, 2, 3, 4, 5, 6, 7.5)},
		{"maximum", "f32", "[[1.0, 7.0, 3.0], [4.0, 0x7FC00000, 6.5]]", "0xFF800000", "1", "2x", vector("f32", 7, nan)},
		{"minimum", "bf16", "[[1.0, 7.0, 3.0], [4.0, 9.0, 6.5]]", "0x7F80", "1", "2x", vector("bf16", 1, 4)},
		{"multiply", "i32", "[[65536, 65536, 1], [-2, 3, 4]]", "1", "1", "2x", vector("i32", 0, -24)},
		{"add", "ui8", "[[255, 1, 1], [2, 3, 4]]", "0", "1", "2x", vector("ui8", 1, 9)},
		{"and", "i1", "[[true, true, true], [true, false, true]]", "true", "1", "2x", vector("i1", 1, 0)},
		{"or", "i1", "[[false, false, false], [true, false, true]]", "false", "1", "2x", vector("i1", 0, 1)},
		{"add", "ui64", "[[18446744073709551615, 2, 0], [9007199254740993, 0, 0]]", "0", "1", "2x",
			bits("ui64", []int{2}, 1, 9007199254740993)},
	} {
		t.Run(test.operation+" "+test.element+" "+test.over, func(t *testing.T) {
			declarations := fmt.Sprintf(`%%a = stablehlo.constant dense<%s> : tensor<2x3x%[2]s>
%%s = stablehlo.constant dense<%[3]s> : tensor<%[2]s>
`, test.a, test.element, test.start)
			for _, form := range []string{`%%b = stablehlo.reduce(%%a init: %%s) applies stablehlo.%[1]s across dimensions = [%[3]s] : (tensor<2x3x%[2]s>, tensor<%[2]s>) -> tensor<%[4]s%[2]s>
return %%b : tensor<%[4]s%[2]s>`, `%%b = stablehlo.reduce(%%a init: %%s) across dimensions = [%[3]s] : (tensor<2x3x%[2]s>, tensor<%[2]s>) -> tensor<%[4]s%[2]s>
 reducer(%%x: tensor<%[2]s>, %%y: tensor<%[2]s>) {
  %%z = stablehlo.%[1]s %%x, %%y : tensor<%[2]s>
  stablehlo.return %%z : tensor<%[2]s>
}
return %%b : tensor<%[4]s%[2]s>`} {
				equal(t, evaluate(t, declarations+fmt.Sprintf(form, test.operation, test.element, test.over, test.dims)), 0, test.want)
			}
		})
	}
}

// argmax is the region that jax writes: the larger value, of equal ones the one
// with the lower index.
const argmax = `%g = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
%e = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
%l = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
%el = stablehlo.and %e, %l : tensor<i1>
%first = stablehlo.or %g, %el : tensor<i1>
%v = stablehlo.select %g, %x, %y : tensor<i1>, tensor<f32>
%n = stablehlo.select %first, %i, %j : tensor<i1>, tensor<i32>
stablehlo.return %v, %n : tensor<f32>, tensor<i32>
}`

// A region with two results: the largest value and its place.
func TestReduceTwo(t *testing.T) {
	const types = ": (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)"
	for name, form := range map[string]string{
		"printed": "%r:2 = stablehlo.reduce(%a init: %s), (%at init: %zero) across dimensions = [1] " + types +
			"\nreducer(%x: tensor<f32>, %y: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {\n" + argmax,
		"generic": `%r:2 = "stablehlo.reduce"(%a, %at, %s, %zero) <{dimensions = array<i64: 1>}> ({
^bb0(%x: tensor<f32>, %i: tensor<i32>, %y: tensor<f32>, %j: tensor<i32>):
` + argmax + ") " + types,
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1.0, 7.0, 7.0], [4.0, -1.0, 3.0]]> : tensor<2x3xf32>
%at = stablehlo.iota dim = 1 : tensor<2x3xi32>
%s = stablehlo.constant dense<0xFF800000> : tensor<f32>
%zero = stablehlo.constant dense<0> : tensor<i32>
`+form+`
return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>`), 0, vector("f32", 7, 4), vector("i32", 1, 0))
		})
	}
}
