package stablehlo

import (
	"fmt"
	"slices"
	"strings"
)

// Loop returns a program that calls the function count times. The arguments from first
// on, one for each result, are carried: the first call has the program's arguments, each
// later call the results of the call before, and the program's results take the memory.
// The arguments from batched on are cut: the program's have count times as many records,
// and each call has its part. The function has two results or more.
func (f *Function) Loop(name string, count, first, batched int, results ...*Value) string {
	const room = "      "
	var arguments, types, call, carried, body []string
	for i, a := range f.arguments {
		text := a.name + ": " + typeOf(a)
		switch {
		case i >= batched:
			text = a.name + ": " + tensor(a.Type, manyDims(a, count))
		case i >= first && i < first+len(results):
			text += fmt.Sprintf(" {tf.aliasing_output = %d : i32}", i-first)
		}
		arguments, types = append(arguments, text), append(types, typeOf(a))
		call = append(call, a.name)
	}
	var kinds, next, out []string
	for i, r := range results {
		carried = append(carried, fmt.Sprintf("%%c%d = %s", i, f.arguments[first+i].name))
		call[first+i] = fmt.Sprintf("%%c%d", i)
		kinds, next, out = append(kinds, typeOf(r)), append(next, fmt.Sprintf("%%r#%d", i)), append(out, fmt.Sprintf("%%out#%d", i+1))
	}
	for i, a := range f.arguments[batched:] {
		size, offset, more := fmt.Sprintf("%%s%d", i), fmt.Sprintf("%%o%d", i), len(a.Dims)-1
		body = append(body,
			fmt.Sprintf("%s = stablehlo.constant dense<%d> : tensor<i32>", size, a.Dims[0]),
			fmt.Sprintf("%s = stablehlo.multiply %%i, %s : tensor<i32>", offset, size),
			fmt.Sprintf("%%b%d = stablehlo.dynamic_slice %s, %s%s, sizes = [%s] : (%s, tensor<i32>%s) -> %s",
				i, a.name, offset, strings.Repeat(", %zero", more), list(a.Dims),
				tensor(a.Type, manyDims(a, count)), strings.Repeat(", tensor<i32>", more), typeOf(a)))
		call[batched+i] = fmt.Sprintf("%%b%d", i)
	}
	all := strings.Join(kinds, ", ")
	var b strings.Builder
	fmt.Fprintf(&b, "module @%s {\n%s", name, f.text("private @step", false, results))
	fmt.Fprintf(&b, "  func.func public @main(%s) -> (%s) {\n", strings.Join(arguments, ", "), all)
	for _, line := range []string{
		"%zero = stablehlo.constant dense<0> : tensor<i32>",
		"%one = stablehlo.constant dense<1> : tensor<i32>",
		fmt.Sprintf("%%count = stablehlo.constant dense<%d> : tensor<i32>", count),
		fmt.Sprintf("%%out:%d = stablehlo.while(%%i = %%zero, %s) : tensor<i32>, %s", len(results)+1, strings.Join(carried, ", "), all),
		"cond {",
		"  %more = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>",
		"  stablehlo.return %more : tensor<i1>",
		"} do {",
	} {
		b.WriteString("    " + line + "\n")
	}
	for _, line := range body {
		b.WriteString(room + line + "\n")
	}
	fmt.Fprintf(&b, room+"%%r:%d = func.call @step(%s) : (%s) -> (%s)\n",
		len(results), strings.Join(call, ", "), strings.Join(types, ", "), all)
	fmt.Fprintf(&b, room+"%%next = stablehlo.add %%i, %%one : tensor<i32>\n")
	fmt.Fprintf(&b, room+"stablehlo.return %%next, %s : tensor<i32>, %s\n    }\n", strings.Join(next, ", "), all)
	fmt.Fprintf(&b, "    return %s : %s\n  }\n}\n", strings.Join(out, ", "), all)
	return b.String()
}

// manyDims returns the dimensions of count micro-batches.
func manyDims(a *Value, count int) []int {
	dims := slices.Clone(a.Dims)
	dims[0] *= count
	return dims
}
