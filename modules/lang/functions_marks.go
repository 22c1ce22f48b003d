package lang

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// anyValue is a parameter that takes everything as it is.
func anyValue(name string) []function.Parameter {
	return []function.Parameter{{
		Name: name, Type: cty.DynamicPseudoType,
		AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true,
	}}
}

func sameType(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil }

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
