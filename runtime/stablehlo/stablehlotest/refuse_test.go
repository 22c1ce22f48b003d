package stablehlotest

import (
	"fmt"
	"strings"
	"testing"
)

// refusal is a change of a valid program that makes it invalid.
type refusal struct {
	old, new string
	want     string // in the error
}

// refuse checks that a text is valid, and that it is refused after each change, at
// the line of the change or at the line that is given in want.
func refuse(t *testing.T, valid string, changes []refusal) {
	t.Helper()
	if _, err := Parse(valid); err != nil {
		t.Fatalf("%v in\n%s", err, valid)
	}
	for _, c := range changes {
		before, after, ok := strings.Cut(valid, c.old)
		if !ok {
			t.Errorf("%q is not in the text", c.old)
			continue
		}
		_, err := Parse(before + c.new + after)
		if err == nil {
			t.Errorf("%q in place of %q is accepted", c.new, c.old)
			continue
		}
		want := c.want
		if !strings.HasPrefix(want, "line ") {
			want = fmt.Sprintf("line %d: ", strings.Count(before, "\n")+1)
		}
		if !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in place of %q: %v, want %q and %q", c.new, c.old, err, want, c.want)
		}
	}
}

func TestRefusedModules(t *testing.T) {
	refuse(t, `module @m {
  func.func public @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>
    %1:2 = call @g(%0) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    %2 = stablehlo.add %1#0, %0 : tensor<2xf32>
    return %2, %1 : tensor<2xf32>, tensor<2xf32>
  }
  func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
    func.return %a : tensor<2xf32>
  }
  func.func private @g(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
    %c = stablehlo.constant dense<1> : tensor<2xi32>
    return %a, %c : tensor<2xf32>, tensor<2xi32>
  }
}
`, []refusal{
		{"module", "modul", "want module"},
		{"@m {", "@m attributes {}", "want {"},
		{"public @main", "private @main", "private function is donated"},
		{"public @main", "@other", "line 16: the module has no public function @main"},
		{"public @main", "nested @main", "want a function's name"},
		{"%b: tensor<2xi32>)", "%a: tensor<2xi32>)", "%a is defined twice"},
		{"tf.aliasing_output = 0 : i32", "mhlo.sharding = 0 : i32", "unknown attribute mhlo.sharding"},
		{"tf.aliasing_output = 0 : i32", "tf.aliasing_output = 0 : i64", "want i32"},
		{"tf.aliasing_output = 0 : i32", "tf.aliasing_output = 0", "want :"},
		{"tf.aliasing_output = 0 : i32", "tf.aliasing_output = 2 : i32", "donated to result 2 of 2"},
		{"tf.aliasing_output = 0 : i32", "tf.aliasing_output = -1 : i32", "donated to result -1 of 2"},
		{"tf.aliasing_output = 0 : i32", "tf.aliasing_output = 0 : i32, tf.aliasing_output = 0 : i32", "appears twice"},
		{"%b: tensor<2xi32>", "%b: tensor<2xi32> {tf.aliasing_output = 1 : i32}", "argument 1, a tensor<2xi32>, is donated to result 1, a tensor<2xf32>"},
		{"%b: tensor<2xi32>", "%b: tensor<2xf32> {tf.aliasing_output = 0 : i32}", "two arguments are donated to result 0"},
		{"@f(%a) :", "@h(%a) :", "unknown function @h"},
		{"@f(%a) :", "@main(%a) :", "@main is called with"},
		{"@f(%a) :", "@f(%b) :", "operand 0 is a tensor<2xi32>, its annotation says tensor<2xf32>"},
		{"-> tensor<2xf32>\n    %1", "-> tensor<3xf32>\n    %1", "line 4: operand 0 is a tensor<3xf32>"},
		{"@f(%a) : (tensor<2xf32>)", "@f(%b) : (tensor<2xi32>)", "@f is called with [tensor<2xi32>], want [tensor<2xf32>]"},
		{"@f(%a) : (tensor<2xf32>)", "@f(%a, %a) : (tensor<2xf32>)", "2 operands have 1 types"},
		{"-> (tensor<2xf32>, tensor<2xi32>)\n    %2", "-> (tensor<2xf32>, tensor<2xui8>)\n    %2", "@g returns [tensor<2xf32> tensor<2xi32>], the annotation says [tensor<2xf32> tensor<2xui8>]"},
		{"%1:2", "%1", "gives 2 results, 1 have a name"},
		{"%1:2", "%1:3", "gives 2 results"},
		{"%1:2", "%1:0", "%1:0"},
		{"%2 =", "%0 =", "%0 is defined twice"},
		{"%2 =", "%a =", "%a is defined twice"},
		{"%2 =", "", "gives 1 results, 0 have a name"},
		{"%1#0", "%1#2", "%1 has 2 results, not result 2"},
		{"%1#0", "%1#x", "#x, want the number of a result"},
		{"%1#0", "%3", "%3 is used before its definition"},
		{"%1#0", "%2", "%2 is used before its definition"},
		{"%1#0", "%1#1", "operand 0 is a tensor<2xi32>"},
		{"return %2, %1 : tensor<2xf32>, tensor<2xf32>", "return %2 : tensor<2xf32>", "@main returns [tensor<2xf32>], want [tensor<2xf32> tensor<2xf32>]"},
		{"return %2, %1 : tensor<2xf32>, tensor<2xf32>", "return %2, %1 : tensor<2xf32>", "line 7: }, want ,"},
		{"return %2, %1 : tensor<2xf32>,", "return %2, %1 : tensor<3xf32>,", "its annotation says tensor<3xf32>"},
		{"return %2, %1 : tensor<2xf32>, tensor<2xf32>", "stablehlo.return %2, %1 : tensor<2xf32>, tensor<2xf32>", "unknown operation stablehlo.return"},
		{"    return %2, %1 : tensor<2xf32>, tensor<2xf32>\n", "", "unknown operation }"},
		{"@g(%a: tensor<2xf32>) ->", "@f(%a: tensor<2xf32>) ->", "function @f is defined twice"},
		{"func.func private @g", "func private @g", "want func.func"},
		{"    func.return %a", "    %r = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>\n    func.return %a", "line 8: function @f calls itself"},
		{"stablehlo.add", "stablehlo.plus", "unknown operation stablehlo.plus"},
		{"stablehlo.add", "mhlo.add", "unknown operation mhlo.add"},
		{"stablehlo.add", "add", "unknown operation add"},
		{"stablehlo.add", "\"stablehlo.add\"", "unknown operation"},
		{"stablehlo.add", "stablehlo.add {x = 1}", "want a value"},
		{"tensor<2xi32>) ->", "tensor<?xi32>) ->", "element type \"?xi32\""},
		{"tensor<2xi32>) ->", "tensor<2xf64>) ->", "element type \"f64\""},
		{"tensor<2xi32>) ->", "tensor<2 x i32>) ->", "not a tensor's type"},
		{"tensor<2xi32>) ->", "tensor<9999999999x9999999999xi32>) ->", "too many elements"},
		{"tensor<2xi32>) ->", "i32) ->", "want a tensor's type"},
		{"}\n}\n", "}\n}\nmodule {}", "line 16: module behind the module"},
		{"}\n}\n", "}\n", "line 15: the end, want func.func"},
	})
}

func TestRefusedElementwise(t *testing.T) {
	refuse(t, program("%a: tensor<2xf32>, %b: tensor<2xi32>, %c: tensor<2xi1>, %d: tensor<3xf32>, %e: tensor<2xbf16>, %s: tensor<f32>, %u: tensor<2xui8>",
		`%0 = stablehlo.add %a, %a : tensor<2xf32>
%1 = stablehlo.subtract %b, %b : tensor<2xi32>
%2 = stablehlo.xor %b, %b : tensor<2xi32>
%3 = stablehlo.shift_left %b, %b : tensor<2xi32>
%4 = stablehlo.exponential %a : tensor<2xf32>
%5 = stablehlo.abs %b : tensor<2xi32>
%6 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xi32>
%7 = stablehlo.bitcast_convert %a : (tensor<2xf32>) -> tensor<2xi32>
%8 = stablehlo.is_finite %a : (tensor<2xf32>) -> tensor<2xi1>
%9 = stablehlo.compare LT, %a, %a, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
%10 = stablehlo.select %c, %a, %a : tensor<2xi1>, tensor<2xf32>
%11 = stablehlo.clamp %s, %a, %s : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
return %0 : tensor<2xf32>`), []refusal{
		{"add %a, %a : tensor<2xf32>", "add %a, %d : tensor<2xf32>", "operand 1 is a tensor<3xf32>"},
		{"add %a, %a : tensor<2xf32>", "add %a, %e : tensor<2xf32>", "operand 1 is a tensor<2xbf16>"},
		{"add %a, %a : tensor<2xf32>", "add %a, %a : tensor<2xi32>", "its annotation says tensor<2xi32>"},
		{"add %a, %a : tensor<2xf32>", "add %a : tensor<2xf32>", "want ,"},
		{"add %a, %a : tensor<2xf32>", "add %a, %a", "line 4: %1, want :"},
		{"add %a, %a : tensor<2xf32>", "add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xbf16>", "its annotation says [tensor<2xbf16>]"},
		{"add %a, %a : tensor<2xf32>", "add %a, %e : (tensor<2xf32>, tensor<2xbf16>) -> tensor<2xf32>", "the result is"},
		{"add %a, %a : tensor<2xf32>", "add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)", "the result is"},
		{"subtract %b, %b : tensor<2xi32>", "subtract %c, %c : tensor<2xi1>", "not defined for i1"},
		{"xor %b, %b : tensor<2xi32>", "xor %a, %a : tensor<2xf32>", "not defined for f32"},
		{"shift_left %b, %b : tensor<2xi32>", "shift_left %c, %c : tensor<2xi1>", "not defined for i1"},
		{"exponential %a : tensor<2xf32>", "exponential %b : tensor<2xi32>", "not defined for i32"},
		{"exponential %a : tensor<2xf32>", "exponential %a : (tensor<2xf32>) -> tensor<2xbf16>", "the result is"},
		{"abs %b : tensor<2xi32>", "abs %u : tensor<2xui8>", "not defined for ui8"},
		{"-> tensor<2xi32>\n%7", "-> tensor<3xi32>\n%7", "its annotation says [tensor<3xi32>]"},
		{"-> tensor<2xi32>\n%8", "-> tensor<2xbf16>\n%8", "a bitcast"},
		{"-> tensor<2xi32>\n%8", "-> tensor<3xi32>\n%8", "the result is"},
		{"-> tensor<2xi1>\n%9", "-> tensor<2xf32>\n%9", "the result is"},
		{"is_finite %a : (tensor<2xf32>)", "is_finite %b : (tensor<2xi32>)", "not defined for i32"},
		{"LT, %a", "LESS, %a", "unknown direction LESS"},
		{"LT, %a", "LT %a", "want ,"},
		{", FLOAT", ", SIGNED", "comparison type SIGNED"},
		{", FLOAT", ", TOTALORDER", "comparison type TOTALORDER"},
		{"%a, %a, FLOAT : (tensor<2xf32>, tensor<2xf32>)", "%a, %d, FLOAT : (tensor<2xf32>, tensor<3xf32>)", "the result is"},
		{"-> tensor<2xi1>\n%10", "-> tensor<2xi32>\n%10", "the result is"},
		{"select %c, %a, %a : tensor<2xi1>, tensor<2xf32>", "select %b, %a, %a : tensor<2xi32>, tensor<2xf32>", "a choice by tensor<2xi32>"},
		{"select %c, %a, %a : tensor<2xi1>, tensor<2xf32>", "select %c, %a, %a : tensor<2xf32>", "line 14: %11, want ,"},
		{"select %c, %a, %a : tensor<2xi1>, tensor<2xf32>", "select %c, %d, %d : tensor<2xi1>, tensor<3xf32>", "a choice by tensor<2xi1>"},
		{"select %c, %a, %a : tensor<2xi1>, tensor<2xf32>", "select %c, %a, %e : tensor<2xi1>, tensor<2xf32>", "operand 2 is a tensor<2xbf16>"},
		{": tensor<2xi1>, tensor<2xf32>", ": (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xbf16>", "the result is [tensor<2xf32>]"},
		{"%a, %a : tensor<2xi1>, tensor<2xf32>", "%a, %e : (tensor<2xi1>, tensor<2xf32>, tensor<2xbf16>) -> tensor<2xf32>", "the result is"},
		{"tensor<f32>) -> tensor<2xf32>", "tensor<f32>) -> tensor<2xbf16>", "the result is [tensor<2xf32>]"},
		{"clamp %s, %a, %s : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>", "clamp %c, %c, %c : tensor<2xi1>", "not defined for i1"},
		{"clamp %s, %a, %s : (tensor<f32>, tensor<2xf32>, tensor<f32>)", "clamp %d, %a, %s : (tensor<3xf32>, tensor<2xf32>, tensor<f32>)", "is a bound of"},
		{"clamp %s, %a, %s : (tensor<f32>, tensor<2xf32>, tensor<f32>)", "clamp %s, %a, %s : tensor<2xf32>", "operand 0 is a tensor<f32>"},
	})
}

func TestRefusedConstants(t *testing.T) {
	for _, test := range []struct{ valid, t, bad string }{
		{"1.0", "tensor<2xf32>", "1"},
		{"1.0", "tensor<2xf32>", "1e0"},
		{"1.0", "tensor<2xf32>", "[1.0]"},
		{"1.0", "tensor<2xf32>", "[1.0, 2.0, 3.0]"},
		{"1.0", "tensor<2xf32>", "[[1.0], [2.0]]"},
		{"1.0", "tensor<2xf32>", "[1.0, [2.0]]"},
		{"[[1.0, 2.0], [3.0, 4.0]]", "tensor<2x2xf32>", "[[1.0], [2.0, 3.0]]"},
		{"1.0", "tensor<2xf32>", "true"},
		{"1.0", "tensor<2xf32>", "1.0e40"},
		{"1.0", "tensor<2xf32>", "inf"},
		{"1.0", "tensor<2xf32>", "-0x3F800000"},
		{"1.0", "tensor<2xf32>", ""},
		{"0x3F800000", "tensor<2xf32>", "0x13F800000"},
		{"0xFF80", "tensor<2xbf16>", "0xFF800000"},
		{"[1, 2]", "tensor<2xi32>", "[1.0, 2.0]"},
		{"-2147483648", "tensor<2xi32>", "-2147483649"},
		{"4294967295", "tensor<2xi32>", "4294967296"},
		{"255", "tensor<2xui8>", "256"},
		{"0", "tensor<2xui8>", "-1"},
		{"true", "tensor<2xi1>", "2"},
		{"18446744073709551615", "tensor<2xui64>", "18446744073709551616"},
		{"[[1, 2], [3, 4]]", "tensor<2x2xi32>", "[1, 2, 3, 4]"},
		{"[[1, 2], [3, 4]]", "tensor<2x2xi32>", "[[1, 2], [3]]"},
	} {
		refuse(t, program("", fmt.Sprintf("%%a = stablehlo.constant dense<%s> : %s\nreturn %%a : %[2]s", test.valid, test.t)),
			[]refusal{{"dense<" + test.valid, "dense<" + test.bad, ""}})
	}
}

func TestRefusedShapes(t *testing.T) {
	refuse(t, program("%a: tensor<2x3xf32>, %s: tensor<f32>, %n: tensor<i32>, %m: tensor<i64>, %k: tensor<1x1xf32>, %j: tensor<1x1xbf16>",
		`%0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<6xf32>
%1 = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
%2 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
%3 = stablehlo.reverse %a, dims = [1] : tensor<2x3xf32>
%4 = stablehlo.slice %a [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>
%5 = stablehlo.concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
%6 = stablehlo.pad %a, %s, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x4xf32>
%7 = stablehlo.iota dim = 1 : tensor<2x3xi32>
%8 = stablehlo.dynamic_slice %a, %n, %n, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
%9 = stablehlo.dynamic_update_slice %a, %k, %n, %n : (tensor<2x3xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
return %0 : tensor<6xf32>`), []refusal{
		{"-> tensor<6xf32>\n%1", "-> tensor<5xf32>\n%1", "a reshape"},
		{"-> tensor<6xf32>\n%1", "-> tensor<6xi32>\n%1", "a reshape"},
		{": (tensor<2x3xf32>) -> tensor<6xf32>", ": tensor<2x3xf32>", "want the types of the operands in parentheses"},
		{"-> tensor<6xf32>\n%1", "-> (tensor<6xf32>, tensor<6xf32>)\n%1", "2 results, want one"},
		{"dims = [0, 2]", "dims = [0, 99999999999]", "not a number of 32 bits"},
		{"dims = [0, 2]", "dims = [0]", "a broadcast"},
		{"dims = [0, 2]", "dims = [2, 2]", "a broadcast"},
		{"dims = [0, 2]", "dims = [0, 3]", "a broadcast"},
		{"dims = [0, 2]", "dims = [0, 1]", "becomes dimension 1"},
		{"dims = [0, 2]", "broadcast_dimensions = [0, 2]", "want dims"},
		{"-> tensor<2x4x3xf32>", "-> tensor<2x4x3xbf16>", "a broadcast"},
		{"dims = [1, 0]", "dims = [1, 1]", "not an order"},
		{"dims = [1, 0]", "dims = [1]", "not an order"},
		{"-> tensor<3x2xf32>", "-> tensor<2x3xf32>", "the result is [tensor<3x2xf32>]"},
		{"dims = [1] : tensor", "dims = [1, 1] : tensor", "are not dimensions"},
		{"dims = [1] : tensor", "dims = [2] : tensor", "are not dimensions"},
		{"dims = [1] : tensor<2x3xf32>", "dims = [1] : (tensor<2x3xf32>) -> tensor<3x2xf32>", "the result is [tensor<2x3xf32>]"},
		{"[0:2, 1:3:2]", "[0:2]", "a slice of 1 dimensions"},
		{"[0:2, 1:3:2]", "[0:2, 1:4:2]", "not a part"},
		{"[0:2, 1:3:2]", "[0:2, 3:1:2]", "not a part"},
		{"[0:2, 1:3:2]", "[0:2, -1:3:2]", "not a part"},
		{"[0:2, 1:3:2]", "[0:2, 1:3:0]", "not a part"},
		{"[0:2, 1:3:2]", "[0:2, 1:3]", "the result is [tensor<2x2xf32>]"},
		{"[0:2, 1:3:2]", "[0:2, 1:3:2, 0:1]", "not a part"},
		{"dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>)", "dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>)", "the result is [tensor<4x3xf32>]"},
		{"dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>)", "dim = 2 : (tensor<2x3xf32>, tensor<2x3xf32>)", "dimension 2"},
		{"concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>)", "concatenate %a, %k, dim = 1 : (tensor<2x3xf32>, tensor<1x1xf32>)", "are joined along"},
		{"concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>)", "concatenate %a, %s, dim = 1 : (tensor<2x3xf32>, tensor<f32>)", "are joined"},
		{"concatenate %a, %a, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>)", "concatenate dim = 1 : ()", "0 values are joined"},
		{"low = [0, 1]", "low = [1, 1]", "the result is [tensor<3x4xf32>]"},
		{"low = [0, 1]", "low = [1]", "number of dimensions"},
		{"low = [0, 1]", "low = [0, -4]", "a padding of"},
		{"interior = [0, 0]", "interior = [0, -1]", "a padding of"},
		{"pad %a, %s,", "pad %a, %a,", "operand 1"},
		{"pad %a, %s, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>)", "pad %a, %n, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<i32>)", "the result is"},
		{"iota dim = 1", "iota dim = 2", "dimension 2"},
		{"iota dim = 1 : tensor<2x3xi32>", "iota dim = 1 : tensor<2x3xi1>", "not defined for i1"},
		{"sizes = [1, 1]", "sizes = [1, 2]", "the result is [tensor<1x2xf32>]"},
		{"sizes = [1, 1]", "sizes = [1]", "1 sizes"},
		{"%a, %n, %n, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>)", "sizes = [] : ()", "no operands"},
		{"%a, %k, %n, %n : (tensor<2x3xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>)", "%a : (tensor<2x3xf32>)", "1 operands"},
		{"sizes = [1, 1]", "sizes = [1, 4]", "a part of the sizes"},
		{"dynamic_slice %a, %n, %n, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>)", "dynamic_slice %a, %n, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>)", "1 start indices"},
		{"dynamic_slice %a, %n, %n, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>)", "dynamic_slice %a, %n, %m, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i64>)", "want integers of one type"},
		{"dynamic_slice %a, %n, %n, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>)", "dynamic_slice %a, %s, %s, sizes = [1, 1] : (tensor<2x3xf32>, tensor<f32>, tensor<f32>)", "want integers of one type"},
		{"slice %a, %k, %n, %n : (tensor<2x3xf32>, tensor<1x1xf32>", "slice %k, %a, %n, %n : (tensor<1x1xf32>, tensor<2x3xf32>", "a part of the sizes"},
		{"slice %a, %k, %n, %n : (tensor<2x3xf32>, tensor<1x1xf32>", "slice %a, %j, %n, %n : (tensor<2x3xf32>, tensor<1x1xbf16>", "the result is"},
		{"tensor<i32>, tensor<i32>) -> tensor<2x3xf32>", "tensor<i32>, tensor<i32>) -> tensor<1x1xf32>", "the result is [tensor<2x3xf32>]"},
	})
}
