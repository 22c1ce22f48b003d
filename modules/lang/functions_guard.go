package lang

import (
	"math"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// guarded checks the arguments of a library's function that would panic, or
// never return, with some of them.
func guarded(f function.Function, check func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Description:  f.Description(),
		Params:       f.Params(),
		VarParam:     f.VarParam(),
		Type:         f.ReturnTypeForValues,
		RefineResult: notNull,
		Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
			if err := check(args); err != nil {
				return cty.UnknownVal(ty), err
			}
			return f.Call(args)
		},
	})
}

func float(v cty.Value) float64 {
	f, _ := v.AsBigFloat().Float64()
	return f
}

var indentFunc = guarded(stdlib.IndentFunc, func(args []cty.Value) error {
	if n := float(args[0]); n < 0 || n > 10_000 || n != math.Trunc(n) {
		return function.NewArgErrorf(0, "it must be a whole number from 0 to 10000")
	}
	return nil
})

var logFunc = guarded(stdlib.LogFunc, func(args []cty.Value) error {
	if math.IsNaN(math.Log(float(args[0])) / math.Log(float(args[1]))) {
		return function.NewArgErrorf(0, "this number has no logarithm to this base")
	}
	return nil
})

var powFunc = guarded(stdlib.PowFunc, func(args []cty.Value) error {
	if math.IsNaN(math.Pow(float(args[0]), float(args[1]))) {
		return function.NewArgErrorf(1, "the result is not a real number")
	}
	return nil
})

// withoutNulls refuses nulls for a library's function that would call their
// result unknown.
func withoutNulls(f function.Function) function.Function {
	params := f.Params()
	for i := range params {
		params[i].AllowNull = false
	}
	return function.New(&function.Spec{
		Description: f.Description(), Params: params, VarParam: f.VarParam(), Type: f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}
