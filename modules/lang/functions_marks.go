package lang

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// anyValue is a parameter that takes everything as it is.
func anyValue(name string) []function.Parameter {
	return []function.Parameter{{
		Name: name, Type: cty.DynamicPseudoType,
		AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true,
	}}
}

func sameType(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil }

// collectionOf converts to a list, map or set whose elements keep their own
// marks: one secret among them does not hide the others.
func collectionOf(kind func(cty.Type) cty.Type) function.Function {
	convertTo := stdlib.MakeToFunc(kind(cty.DynamicPseudoType))
	params := convertTo.Params()
	params[0].AllowMarked = true
	return function.New(&function.Spec{
		Description: convertTo.Description(),
		Params:      params,
		Type: func(args []cty.Value) (cty.Type, error) {
			plain, _ := args[0].UnmarkDeep()
			return convertTo.ReturnTypeForValues([]cty.Value{plain})
		},
		Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) { return convert.Convert(args[0], ty) },
	})
}

var sensitiveFunc = function.New(&function.Spec{
	Params: anyValue("value"),
	Type:   sameType,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return args[0].Mark(Sensitive), nil
	},
})

var nonsensitiveFunc = function.New(&function.Spec{
	Params: anyValue("value"),
	Type:   sameType,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v, marks := args[0].Unmark()
		delete(marks, Sensitive)
		return v.WithMarks(marks), nil
	},
})

var issensitiveFunc = function.New(&function.Spec{
	Params: anyValue("value"),
	Type:   function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		switch {
		case args[0].HasMark(Sensitive):
			return cty.True, nil
		case !args[0].IsKnown():
			return cty.UnknownVal(cty.Bool), nil // it may yet turn out to be
		}
		return cty.False, nil
	},
})

var ephemeralasnullFunc = function.New(&function.Spec{
	Params: anyValue("value"),
	Type:   sameType,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return cty.Transform(args[0], func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if !v.HasMark(Ephemeral) {
				return v, nil
			}
			plain, marks := v.Unmark()
			delete(marks, Ephemeral)
			return cty.NullVal(plain.Type()).WithMarks(marks), nil
		})
	},
})
