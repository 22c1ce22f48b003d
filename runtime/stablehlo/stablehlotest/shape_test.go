package stablehlotest

import "testing"

func TestConstants(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1, -2], [0x10, 4294967295]]> : tensor<2x2xi32>
%b = stablehlo.constant dense<0xFF80> : tensor<2xbf16>
%c = stablehlo.constant dense<[1.5e+00, -2.500000000e-01, 3.]> : tensor<3xf32>
%d = stablehlo.constant dense<true> : tensor<2xi1>
%e = stablehlo.constant dense<[1, 0]> : tensor<2xi1>
%f = stablehlo.constant dense<-9223372036854775808> : tensor<2xi64>
%g = stablehlo.constant dense<> : tensor<0xf32>
return %a, %b, %c, %d, %e, %f, %g : tensor<2x2xi32>, tensor<2xbf16>, tensor<3xf32>, tensor<2xi1>, tensor<2xi1>, tensor<2xi64>, tensor<0xf32>`),
		0, values("i32", []int{2, 2}, 1, -2, 16, -1), vector("bf16", -inf, -inf), vector("f32", 1.5, -0.25, 3),
		vector("i1", 1, 1), vector("i1", 1, 0), bits("i64", []int{2}, 1<<63, 1<<63), values("f32", []int{0}))
}

func TestIota(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.iota dim = 1 : tensor<2x3xi32>
%b = stablehlo.iota dim = 0 : tensor<2x3xf32>
%c = stablehlo.iota dim = 1 : tensor<2x2x2xui64>
return %a, %b, %c : tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x2x2xui64>`), 0,
		values("i32", []int{2, 3}, 0, 1, 2, 0, 1, 2), values("f32", []int{2, 3}, 0, 0, 0, 1, 1, 1),
		bits("ui64", []int{2, 2, 2}, 0, 0, 1, 1, 0, 0, 1, 1))
}

const twoByThree = "%a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>\n"

func TestMoves(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       Tensor
	}{
		{"reshape", `%b = stablehlo.reshape %a : (tensor<2x3xi32>) -> tensor<3x1x2xi32>
return %b : tensor<3x1x2xi32>`, values("i32", []int{3, 1, 2}, 1, 2, 3, 4, 5, 6)},
		{"transpose", `%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
return %b : tensor<3x2xi32>`, values("i32", []int{3, 2}, 1, 4, 2, 5, 3, 6)},
		{"transpose of three", `%b = stablehlo.reshape %a : (tensor<2x3xi32>) -> tensor<1x2x3xi32>
%c = stablehlo.transpose %b, dims = [2, 0, 1] : (tensor<1x2x3xi32>) -> tensor<3x1x2xi32>
return %c : tensor<3x1x2xi32>`, values("i32", []int{3, 1, 2}, 1, 4, 2, 5, 3, 6)},
		{"broadcast", `%b = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<2x3xi32>) -> tensor<2x2x3xi32>
return %b : tensor<2x2x3xi32>`, values("i32", []int{2, 2, 3}, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6)},
		{"broadcast across", `%b = stablehlo.broadcast_in_dim %a, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
return %b : tensor<3x2xi32>`, values("i32", []int{3, 2}, 1, 4, 2, 5, 3, 6)},
		{"broadcast of one", `%b = stablehlo.slice %a [1:2, 0:3] : (tensor<2x3xi32>) -> tensor<1x3xi32>
%c = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<1x3xi32>) -> tensor<2x3xi32>
return %c : tensor<2x3xi32>`, values("i32", []int{2, 3}, 4, 5, 6, 4, 5, 6)},
		{"reverse", `%b = stablehlo.reverse %a, dims = [1] : tensor<2x3xi32>
return %b : tensor<2x3xi32>`, values("i32", []int{2, 3}, 3, 2, 1, 6, 5, 4)},
		{"reverse of both", `%b = stablehlo.reverse %a, dims = [1, 0] : tensor<2x3xi32>
return %b : tensor<2x3xi32>`, values("i32", []int{2, 3}, 6, 5, 4, 3, 2, 1)},
		{"slice", `%b = stablehlo.slice %a [0:2, 1:3] : (tensor<2x3xi32>) -> tensor<2x2xi32>
return %b : tensor<2x2xi32>`, values("i32", []int{2, 2}, 2, 3, 5, 6)},
		{"slice with strides", `%b = stablehlo.slice %a [1:2, 0:3:2] : (tensor<2x3xi32>) -> tensor<1x2xi32>
return %b : tensor<1x2xi32>`, values("i32", []int{1, 2}, 4, 6)},
		{"slice of nothing", `%b = stablehlo.slice %a [1:1, 0:3] : (tensor<2x3xi32>) -> tensor<0x3xi32>
return %b : tensor<0x3xi32>`, values("i32", []int{0, 3})},
		{"concatenate", `%b = stablehlo.slice %a [1:2, 0:3] : (tensor<2x3xi32>) -> tensor<1x3xi32>
%c = stablehlo.concatenate %a, %b, %a, dim = 0 : (tensor<2x3xi32>, tensor<1x3xi32>, tensor<2x3xi32>) -> tensor<5x3xi32>
return %c : tensor<5x3xi32>`, values("i32", []int{5, 3}, 1, 2, 3, 4, 5, 6, 4, 5, 6, 1, 2, 3, 4, 5, 6)},
		{"concatenate columns", `%b = stablehlo.slice %a [0:2, 0:1] : (tensor<2x3xi32>) -> tensor<2x1xi32>
%c = stablehlo.concatenate %b, %a, dim = 1 : (tensor<2x1xi32>, tensor<2x3xi32>) -> tensor<2x4xi32>
return %c : tensor<2x4xi32>`, values("i32", []int{2, 4}, 1, 1, 2, 3, 4, 4, 5, 6)},
		{"pad", `%z = stablehlo.constant dense<0> : tensor<i32>
%b = stablehlo.pad %a, %z, low = [0, 1], high = [2, 1], interior = [1, 2] : (tensor<2x3xi32>, tensor<i32>) -> tensor<5x9xi32>
return %b : tensor<5x9xi32>`, values("i32", []int{5, 9},
			0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 5, 0, 0, 6, 0,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{"negative padding", `%z = stablehlo.constant dense<9> : tensor<i32>
%b = stablehlo.pad %a, %z, low = [1, -1], high = [0, -1], interior = [0, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<3x3xi32>
return %b : tensor<3x3xi32>`, values("i32", []int{3, 3}, 9, 9, 9, 9, 2, 9, 9, 5, 9)},
		{"padding that removes all", `%z = stablehlo.constant dense<9> : tensor<i32>
%b = stablehlo.pad %a, %z, low = [0, -3], high = [0, 2], interior = [0, 0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x2xi32>
return %b : tensor<2x2xi32>`, values("i32", []int{2, 2}, 9, 9, 9, 9)},
		{"padding far away", `%z = stablehlo.constant dense<9> : tensor<i32>
%b = stablehlo.pad %a, %z, low = [0, 2], high = [0, -4], interior = [0, 0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x1xi32>
return %b : tensor<2x1xi32>`, values("i32", []int{2, 1}, 9, 9)},
	} {
		t.Run(test.name, func(t *testing.T) { equal(t, evaluate(t, twoByThree+test.body), 0, test.want) })
	}
}

// Integers of 64 bits are moved as bits.
func TestMovesOfBits(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[1, 2], [18446744073709551615, 4]]> : tensor<2x2xui64>
%z = stablehlo.constant dense<7> : tensor<ui64>
%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x2xui64>) -> tensor<2x2xui64>
%c = stablehlo.pad %b, %z, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<2x2xui64>, tensor<ui64>) -> tensor<2x3xui64>
%d = stablehlo.concatenate %c, %c, dim = 1 : (tensor<2x3xui64>, tensor<2x3xui64>) -> tensor<2x6xui64>
return %d : tensor<2x6xui64>`), 0,
		bits("ui64", []int{2, 6}, 7, 1, 1<<64-1, 7, 1, 1<<64-1, 7, 2, 4, 7, 2, 4))
}

func TestDynamicSlices(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]> : tensor<4x4xi32>
%i = stablehlo.constant dense<-1> : tensor<i64>
%j = stablehlo.constant dense<3> : tensor<i64>
%b = stablehlo.dynamic_slice %a, %i, %j, sizes = [2, 2] : (tensor<4x4xi32>, tensor<i64>, tensor<i64>) -> tensor<2x2xi32>
%u = stablehlo.constant dense<[[5, 6], [7, 8]]> : tensor<2x2xi32>
%c = stablehlo.dynamic_update_slice %a, %u, %j, %i : (tensor<4x4xi32>, tensor<2x2xi32>, tensor<i64>, tensor<i64>) -> tensor<4x4xi32>
%far = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
%d = stablehlo.dynamic_slice %u, %far, %far, sizes = [1, 1] : (tensor<2x2xi32>, tensor<ui64>, tensor<ui64>) -> tensor<1x1xi32>
return %b, %c, %d : tensor<2x2xi32>, tensor<4x4xi32>, tensor<1x1xi32>`), 0,
		values("i32", []int{2, 2}, 1, 1, 1, 1),
		values("i32", []int{4, 4}, 0, 0, 1, 1, 0, 0, 1, 1, 5, 6, 0, 0, 7, 8, 0, 0),
		values("i32", []int{1, 1}, 8))
}
