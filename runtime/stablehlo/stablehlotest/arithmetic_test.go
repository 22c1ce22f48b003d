package stablehlotest

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// binaryBody is one operation on two constants.
func binaryBody(operation, t, a, b string) string {
	return fmt.Sprintf(`%%a = stablehlo.constant dense<%[3]s> : %[2]s
%%b = stablehlo.constant dense<%[4]s> : %[2]s
%%c = stablehlo.%[1]s %%a, %%b : %[2]s
return %%c : %[2]s`, operation, t, a, b)
}

func TestBinary(t *testing.T) {
	const f, i, u, b = "tensor<4xf32>", "tensor<4xi32>", "tensor<4xui8>", "tensor<4xi1>"
	for _, test := range []struct {
		operation, t, a, b string
		want               Tensor
	}{
		{"add", f, "[1.0, 2.5, -0.0, 0x7F800000]", "[2.0, -2.5, 0.0, 0xFF800000]", vector("f32", 3, 0, 0, nan)},
		{"add", i, "[2147483647, -1, 5, 0]", "[1, -1, -6, 0]", vector("i32", -2147483648, -2, -1, 0)},
		{"add", u, "[255, 1, 0, 200]", "[1, 1, 0, 100]", vector("ui8", 0, 2, 0, 44)},
		{"add", b, "[true, true, false, false]", "[true, false, true, false]", vector("i1", 1, 1, 1, 0)},
		{"subtract", f, "[1.0, 2.0, 3.0, 4.0]", "[4.0, 3.0, 2.0, 1.0]", vector("f32", -3, -1, 1, 3)},
		{"subtract", u, "[0, 1, 2, 3]", "[1, 1, 1, 1]", vector("ui8", 255, 0, 1, 2)},
		{"multiply", f, "[1.5, -2.0, 0.0, 3.0]", "[2.0, 2.0, 0x7F800000, 0.5]", vector("f32", 3, -4, nan, 1.5)},
		{"multiply", i, "[65536, -3, 46341, 2]", "[65536, 5, 46341, 3]", vector("i32", 0, -15, -2147479015, 6)},
		{"multiply", b, "[true, true, false, false]", "[true, false, true, false]", vector("i1", 1, 0, 0, 0)},
		{"divide", f, "[17.1, -17.1, 1.0, 0.0]", "[3.0, 3.0, 0.0, 0.0]", vector("f32", 17.1/3, -17.1/3, inf, nan)},
		{"divide", i, "[17, -17, 17, -17]", "[3, 3, -3, -3]", vector("i32", 5, -5, -5, 5)},
		{"divide", u, "[255, 200, 7, 0]", "[2, 10, 8, 3]", vector("ui8", 127, 20, 0, 0)},
		{"remainder", i, "[17, -17, 17, -17]", "[3, 3, -3, -3]", vector("i32", 2, -2, 2, -2)},
		{"remainder", f, "[17.5, -17.5, 17.5, -17.5]", "[3.0, 3.0, -3.0, -3.0]", vector("f32", 2.5, -2.5, 2.5, -2.5)},
		{"maximum", f, "[1.0, 2.0, 0x7FC00000, 0x7F800000]", "[2.0, 1.0, 1.0, 0x7FC00000]", vector("f32", 2, 2, nan, nan)},
		{"minimum", f, "[1.0, 2.0, 0x7FC00000, 0xFF800000]", "[2.0, 1.0, 1.0, 0x7FC00000]", vector("f32", 1, 1, nan, nan)},
		{"maximum", i, "[-1, 2, 0, 3]", "[1, -2, 0, 4]", vector("i32", 1, 2, 0, 4)},
		{"minimum", u, "[255, 2, 0, 3]", "[1, 2, 1, 4]", vector("ui8", 1, 2, 0, 3)},
		{"maximum", b, "[true, true, false, false]", "[true, false, true, false]", vector("i1", 1, 1, 1, 0)},
		{"power", f, "[-2.0, -36.0, 5.0, 3.0]", "[2.0, 1.1, 2.0, -1.0]", vector("f32", 4, nan, 25, 1.0/3)},
		{"power", i, "[2, -1, 3, -1]", "[10, -3, -1, -2]", vector("i32", 1024, -1, 0, 1)},
		{"and", i, "[-1, 12, 5, 0]", "[255, 10, -2, 1]", vector("i32", 255, 8, 4, 0)},
		{"or", u, "[240, 12, 5, 0]", "[15, 10, 2, 1]", vector("ui8", 255, 14, 7, 1)},
		{"xor", b, "[true, true, false, false]", "[true, false, true, false]", vector("i1", 0, 1, 1, 0)},
		{"xor", i, "[-1, 12, 5, 0]", "[0, 10, -1, 1]", vector("i32", -1, 6, -6, 1)},
		{"shift_left", i, "[-1, 0, 1, 1]", "[1, 2, 31, 32]", vector("i32", -2, 0, -2147483648, 0)},
		{"shift_left", u, "[255, 1, 1, 1]", "[4, 7, 8, 200]", vector("ui8", 240, 128, 0, 0)},
		{"shift_right_logical", i, "[-1, 8, -1, -1]", "[1, 3, 31, 32]", vector("i32", 2147483647, 1, 1, 0)},
		{"shift_right_logical", i, "[-1, 8, 5, 6]", "[-1, 0, 1, 1]", vector("i32", 0, 8, 2, 3)},
	} {
		t.Run(test.operation+" "+test.t, func(t *testing.T) {
			equal(t, evaluate(t, binaryBody(test.operation, test.t, test.a, test.b)), 1e-15, test.want)
		})
	}
}

// Integers of 64 bits are exact and wrap around.
func TestBinaryWide(t *testing.T) {
	for _, test := range []struct {
		operation, t, a, b string
		want               Tensor
	}{
		{"add", "tensor<2xui64>", "[18446744073709551615, 9007199254740993]", "[2, 0]", bits("ui64", []int{2}, 1, 9007199254740993)},
		{"multiply", "tensor<2xui64>", "[11400714819323198485, 3]", "[13787848793156543929, 5]",
			bits("ui64", []int{2}, golden*mixer, 15)},
		{"multiply", "tensor<2xi64>", "[-3, 4611686018427387904]", "[5, 2]", bits("i64", []int{2}, negative(-15), 1<<63)},
		{"divide", "tensor<2xi64>", "[-17, 17]", "[3, -3]", bits("i64", []int{2}, negative(-5), negative(-5))},
		{"divide", "tensor<2xui64>", "[18446744073709551615, 17]", "[2, 3]", bits("ui64", []int{2}, 1<<63-1, 5)},
		{"remainder", "tensor<2xi64>", "[-17, 17]", "[3, -3]", bits("i64", []int{2}, negative(-2), 2)},
		{"maximum", "tensor<2xi64>", "[-1, 7]", "[1, 8]", bits("i64", []int{2}, 1, 8)},
		{"maximum", "tensor<2xui64>", "[18446744073709551615, 7]", "[1, 8]", bits("ui64", []int{2}, 1<<64-1, 8)},
		{"minimum", "tensor<2xi64>", "[-1, 7]", "[1, 8]", bits("i64", []int{2}, negative(-1), 7)},
		{"shift_right_logical", "tensor<3xi64>", "[-1, 0, 8]", "[1, 2, 3]", bits("i64", []int{3}, 1<<63-1, 0, 1)},
		{"shift_left", "tensor<3xi64>", "[-1, 0, 1]", "[1, 2, 64]", bits("i64", []int{3}, negative(-2), 0, 0)},
		{"xor", "tensor<2xui64>", "[18446744073709551615, 1]", "[1, 1]", bits("ui64", []int{2}, 1<<64-2, 0)},
		{"power", "tensor<2xui64>", "[3, 2]", "[41, 64]", bits("ui64", []int{2}, tripled(41), 0)},
	} {
		t.Run(test.operation+" "+test.t, func(t *testing.T) {
			equal(t, evaluate(t, binaryBody(test.operation, test.t, test.a, test.b)), 0, test.want)
		})
	}
}

// Constants as variables, because Go's constants do not wrap around.
var golden, mixer uint64 = 11400714819323198485, 13787848793156543929

func tripled(n int) uint64 {
	x := uint64(1)
	for range n {
		x *= 3
	}
	return x
}

func TestUnary(t *testing.T) {
	const f = "tensor<3xf32>"
	for _, test := range []struct {
		operation, t, a string
		want            Tensor
	}{
		{"negate", f, "[1.0, -2.0, 0x7F800000]", vector("f32", -1, 2, -inf)},
		{"negate", "tensor<3xi32>", "[1, -2147483648, 0]", vector("i32", -1, -2147483648, 0)},
		{"negate", "tensor<2xui8>", "[1, 0]", vector("ui8", 255, 0)},
		{"not", "tensor<2xi1>", "[true, false]", vector("i1", 0, 1)},
		{"not", "tensor<2xi32>", "[0, -1]", vector("i32", -1, 0)},
		{"not", "tensor<2xui64>", "[0, 1]", bits("ui64", []int{2}, 1<<64-1, 1<<64-2)},
		{"abs", f, "[1.5, -2.5, 0xFF800000]", vector("f32", 1.5, 2.5, inf)},
		{"abs", "tensor<3xi32>", "[3, -3, 0]", vector("i32", 3, 3, 0)},
		{"abs", "tensor<2xi64>", "[-9007199254740993, 2]", bits("i64", []int{2}, 9007199254740993, 2)},
		{"sign", f, "[-3.5, 0.0, 0x7FC00000]", vector("f32", -1, 0, nan)},
		{"sign", "tensor<3xi32>", "[-3, 0, 9]", vector("i32", -1, 0, 1)},
		{"sign", "tensor<3xi64>", "[-3, 0, 9]", bits("i64", []int{3}, negative(-1), 0, 1)},
		{"exponential", f, "[0.0, 1.0, -1.0]", vector("f32", 1, math.E, 1/math.E)},
		{"exponential_minus_one", f, "[0.0, 1.0, 1.0e-10]", vector("f32", 0, math.E-1, 1.00000000005e-10)},
		{"log", f, "[1.0, 8.0, 0.0]", vector("f32", 0, 3*math.Ln2, -inf)},
		{"log_plus_one", f, "[0.0, 1.0, 1.0e-10]", vector("f32", 0, math.Ln2, 0.99999999995e-10)},
		{"rsqrt", f, "[4.0, 0.25, 2.0]", vector("f32", 0.5, 2, 1/math.Sqrt2)},
		{"sqrt", f, "[4.0, 2.0, -1.0]", vector("f32", 2, math.Sqrt2, nan)},
		{"tanh", f, "[0.0, 0.5, -100.0]", vector("f32", 0, 0.46211715726000975, -1)},
		{"logistic", f, "[0.0, 2.0, -1000.0]", vector("f32", 0.5, 0.8807970779778823, 0)},
		{"floor", f, "[1.5, -1.5, 2.0]", vector("f32", 1, -2, 2)},
		{"ceil", f, "[1.5, -1.5, 2.0]", vector("f32", 2, -1, 2)},
		{"round_nearest_even", f, "[0.5, 1.5, -2.5]", vector("f32", 0, 2, -2)},
	} {
		t.Run(test.operation+" "+test.t, func(t *testing.T) {
			equal(t, evaluate(t, fmt.Sprintf(`%%a = stablehlo.constant dense<%[3]s> : %[2]s
%%b = stablehlo.%[1]s %%a : %[2]s
return %%b : %[2]s`, test.operation, test.t, test.a)), 1e-15, test.want)
		})
	}
}

// Long forms of the annotation are accepted too.
func TestLongAnnotations(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<2.0> : tensor<f32>
%b = stablehlo.add %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
%c = stablehlo.negate %b : (tensor<f32>) -> tensor<f32>
return %c : tensor<f32>`), 0, values("f32", nil, -4))
}

func TestConvert(t *testing.T) {
	for _, test := range []struct {
		from, a, to string
		want        Tensor
	}{
		{"tensor<3xf32>", "[1.9, -1.9, 0.0]", "tensor<3xi32>", vector("i32", 1, -1, 0)},
		{"tensor<2xf32>", "[255.9, 0.0]", "tensor<2xui8>", vector("ui8", 255, 0)},
		{"tensor<3xf32>", "[0.0, -0.5, 0x7FC00000]", "tensor<3xi1>", vector("i1", 0, 1, 1)},
		{"tensor<2xf32>", "[1.5, 1.001]", "tensor<2xbf16>", vector("bf16", 1.5, 1.001)},
		{"tensor<2xi1>", "[true, false]", "tensor<2xf32>", vector("f32", 1, 0)},
		{"tensor<2xi1>", "[true, false]", "tensor<2xui64>", bits("ui64", []int{2}, 1, 0)},
		{"tensor<3xi32>", "[-1, 300, 0]", "tensor<3xui8>", vector("ui8", 255, 44, 0)},
		{"tensor<3xi32>", "[-1, 300, 0]", "tensor<3xi1>", vector("i1", 1, 1, 0)},
		{"tensor<2xi32>", "[-1, 7]", "tensor<2xui64>", bits("ui64", []int{2}, 1<<64-1, 7)},
		{"tensor<2xi32>", "[-1, 7]", "tensor<2xi64>", bits("i64", []int{2}, negative(-1), 7)},
		{"tensor<2xui64>", "[18446744073709551615, 4294967297]", "tensor<2xi32>", vector("i32", -1, 1)},
		{"tensor<2xui64>", "[18446744073709551615, 3]", "tensor<2xf32>", vector("f32", 1<<64, 3)},
		{"tensor<2xi64>", "[-3, 3]", "tensor<2xf32>", vector("f32", -3, 3)},
		{"tensor<2xf32>", "[-9223372036854775808.0, 12.5]", "tensor<2xi64>", bits("i64", []int{2}, 1<<63, 12)},
		{"tensor<1xf32>", "[18446744073709549568.0]", "tensor<1xui64>", bits("ui64", []int{1}, 18446744073709549568)},
	} {
		t.Run(test.from+" "+test.to, func(t *testing.T) {
			equal(t, evaluate(t, fmt.Sprintf(`%%a = stablehlo.constant dense<%s> : %[2]s
%%b = stablehlo.convert %%a : (%[2]s) -> %[3]s
return %%b : %[3]s`, test.a, test.from, test.to)), 0, test.want)
		})
	}
}

// Results that the specification does not define are errors, with their line.
func TestUndefined(t *testing.T) {
	convert := func(a, from, to string) string {
		return fmt.Sprintf("%%a = stablehlo.constant dense<%s> : %s\n%%b = stablehlo.convert %%a : (%s) -> %s\nreturn %%b : %s", a, from, from, to, to)
	}
	for _, test := range []struct{ body, want string }{
		{binaryBody("divide", "tensor<1xi32>", "[1]", "[0]"), "line 5: stablehlo.divide: integers are divided by zero"},
		{binaryBody("remainder", "tensor<1xui64>", "[1]", "[0]"), "by zero"},
		{binaryBody("divide", "tensor<1xi32>", "[-2147483648]", "[-1]"), "does not fit"},
		{binaryBody("divide", "tensor<1xi64>", "[-9223372036854775808]", "[-1]"), "does not fit"},
		{convert("[3.0e9]", "tensor<1xf32>", "tensor<1xi32>"), "3e+09 does not fit into i32"},
		{convert("[-1.0]", "tensor<1xf32>", "tensor<1xui8>"), "does not fit"},
		{convert("[256.0]", "tensor<1xf32>", "tensor<1xui8>"), "does not fit"},
		{convert("[0x7FC00000]", "tensor<1xf32>", "tensor<1xi32>"), "does not fit"},
		{convert("[0x7F800000]", "tensor<1xf32>", "tensor<1xui64>"), "does not fit"},
		{convert("[9223372036854775808.0]", "tensor<1xf32>", "tensor<1xi64>"), "does not fit"},
	} {
		p, err := Parse(program("", test.body))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Run(nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v and the error %v, want %q, of\n%s", out, err, test.want, test.body)
		}
	}
}

func TestBitcast(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[1.0, -0.0]> : tensor<2xf32>
%b = stablehlo.bitcast_convert %a : (tensor<2xf32>) -> tensor<2xui32>
%c = stablehlo.bitcast_convert %a : (tensor<2xf32>) -> tensor<2xi32>
%d = stablehlo.bitcast_convert %b : (tensor<2xui32>) -> tensor<2xf32>
%e = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
%f = stablehlo.bitcast_convert %e : (tensor<ui64>) -> tensor<i64>
return %b, %c, %d, %f : tensor<2xui32>, tensor<2xi32>, tensor<2xf32>, tensor<i64>`), 0,
		vector("ui32", 0x3F800000, 0x80000000), vector("i32", 0x3F800000, -0x80000000), vector("f32", 1, math.Copysign(0, -1)),
		bits("i64", nil, 1<<64-1))
}

func TestIsFinite(t *testing.T) {
	equal(t, evaluate(t, `%a = stablehlo.constant dense<[1.0, 0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<4xf32>
%b = stablehlo.is_finite %a : (tensor<4xf32>) -> tensor<4xi1>
return %b : tensor<4xi1>`), 0, vector("i1", 1, 0, 0, 0))
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		direction, t, a, b, kind string
		want                     []float64
	}{
		{"EQ", "tensor<4xf32>", "[1.0, 2.0, 3.0, 0x7FC00000]", "[1.0, 3.0, 2.0, 0x7FC00000]", "", []float64{1, 0, 0, 0}},
		{"NE", "tensor<4xf32>", "[1.0, 2.0, 3.0, 0x7FC00000]", "[1.0, 3.0, 2.0, 0x7FC00000]", ", FLOAT", []float64{0, 1, 1, 1}},
		{"LT", "tensor<4xf32>", "[1.0, 2.0, 3.0, 0x7FC00000]", "[1.0, 3.0, 2.0, 0x7FC00000]", "", []float64{0, 1, 0, 0}},
		{"LE", "tensor<4xf32>", "[1.0, 2.0, 3.0, 0x7FC00000]", "[1.0, 3.0, 2.0, 0x7FC00000]", "", []float64{1, 1, 0, 0}},
		{"GT", "tensor<4xf32>", "[1.0, 2.0, 3.0, 0x7FC00000]", "[1.0, 3.0, 2.0, 0x7FC00000]", "", []float64{0, 0, 1, 0}},
		{"GE", "tensor<4xf32>", "[1.0, 2.0, 3.0, 0x7FC00000]", "[1.0, 3.0, 2.0, 0x7FC00000]", "", []float64{1, 0, 1, 0}},
		{"LT", "tensor<2xi32>", "[-1, 1]", "[1, -1]", ", SIGNED", []float64{1, 0}},
		{"LT", "tensor<2xi64>", "[-1, 1]", "[1, -1]", "", []float64{1, 0}},
		{"LT", "tensor<2xui64>", "[18446744073709551615, 1]", "[1, 18446744073709551615]", ", UNSIGNED", []float64{0, 1}},
		{"GE", "tensor<2xi1>", "[true, false]", "[false, true]", ", UNSIGNED", []float64{1, 0}},
	} {
		t.Run(test.direction+" "+test.t, func(t *testing.T) {
			result := strings.NewReplacer("f32", "i1", "ui64", "i1", "i64", "i1", "i32", "i1").Replace(test.t)
			equal(t, evaluate(t, fmt.Sprintf(`%%a = stablehlo.constant dense<%[3]s> : %[2]s
%%b = stablehlo.constant dense<%[4]s> : %[2]s
%%c = stablehlo.compare %[1]s, %%a, %%b%[5]s : (%[2]s, %[2]s) -> %[6]s
return %%c : %[6]s`, test.direction, test.t, test.a, test.b, test.kind, result)), 0, vector("i1", test.want...))
		})
	}
}

func TestSelectAndClamp(t *testing.T) {
	equal(t, evaluate(t, `%p = stablehlo.constant dense<[true, false]> : tensor<2xi1>
%q = stablehlo.constant dense<false> : tensor<i1>
%a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
%b = stablehlo.constant dense<[3.0, 4.0]> : tensor<2xf32>
%c = stablehlo.select %p, %a, %b : tensor<2xi1>, tensor<2xf32>
%d = stablehlo.select %q, %a, %b : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
%n = stablehlo.constant dense<[1, 18446744073709551615]> : tensor<2xui64>
%m = stablehlo.constant dense<[3, 4]> : tensor<2xui64>
%e = stablehlo.select %p, %m, %n : tensor<2xi1>, tensor<2xui64>
return %c, %d, %e : tensor<2xf32>, tensor<2xf32>, tensor<2xui64>`), 0,
		vector("f32", 1, 4), vector("f32", 3, 4), bits("ui64", []int{2}, 3, 1<<64-1))
	equal(t, evaluate(t, `%low = stablehlo.constant dense<[5, 10, 15]> : tensor<3xi32>
%a = stablehlo.constant dense<[3, 13, 23]> : tensor<3xi32>
%high = stablehlo.constant dense<[10, 15, 20]> : tensor<3xi32>
%b = stablehlo.clamp %low, %a, %high : tensor<3xi32>
%c = stablehlo.constant dense<4> : tensor<i32>
%d = stablehlo.constant dense<20> : tensor<i32>
%e = stablehlo.clamp %c, %a, %d : (tensor<i32>, tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
return %b, %e : tensor<3xi32>, tensor<3xi32>`), 0, vector("i32", 5, 13, 20), vector("i32", 4, 13, 20))
}
