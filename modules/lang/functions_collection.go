package lang

import (
	"errors"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"github.com/zclconf/go-cty/cty/gocty"
)

var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{
		Name: "value", Type: cty.DynamicPseudoType,
		AllowDynamicType: true, AllowUnknown: true, AllowMarked: true,
	}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		switch {
		case ty == cty.String || ty.IsTupleType() || ty.IsObjectType() || ty.IsCollectionType() || ty == cty.DynamicPseudoType:
			return cty.Number, nil
		}
		return cty.Number, errors.New("the argument must be a string, a list, a set, a map, a tuple or an object")
	},
	RefineResult: func(b *cty.RefinementBuilder) *cty.RefinementBuilder {
		return b.NotNull().NumberRangeLowerBound(cty.Zero, true)
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		// The marks of elements say nothing about how many there are.
		coll, marks := args[0].Unmark()
		ty := coll.Type()
		switch {
		case ty == cty.DynamicPseudoType:
			return cty.UnknownVal(cty.Number).WithMarks(marks), nil
		case ty.IsTupleType():
			return cty.NumberIntVal(int64(len(ty.TupleElementTypes()))).WithMarks(marks), nil
		case ty.IsObjectType():
			return cty.NumberIntVal(int64(len(ty.AttributeTypes()))).WithMarks(marks), nil
		case ty == cty.String && !coll.IsKnown():
			return cty.UnknownVal(cty.Number).WithMarks(marks), nil
		case ty == cty.String:
			n, err := stdlib.Strlen(coll)
			return n.WithMarks(marks), err
		}
		return coll.Length().WithMarks(marks), nil
	},
})

// boolFold makes alltrue and anytrue: stop decides as soon as it is found.
func boolFold(stop bool) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for _, v := range args[0].AsValueSlice() {
				switch {
				case !v.IsKnown():
					unknown = true
				case !v.IsNull() && v.True() == stop, v.IsNull() && !stop: // null is false
					return cty.BoolVal(stop), nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(!stop), nil
		},
	})
}

func notNull(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() }

// coalesce also skips empty strings, which go-cty's does not. The result has the
// marks of all arguments: which one it is says something about the others.
var coalesceFunc = function.New(&function.Spec{
	VarParam: &function.Parameter{
		Name: "vals", Type: cty.DynamicPseudoType,
		AllowUnknown: true, AllowDynamicType: true, AllowNull: true,
	},
	Type: func(args []cty.Value) (cty.Type, error) {
		types := make([]cty.Type, len(args))
		for i, v := range args {
			types[i] = v.Type()
		}
		ty, _ := convert.UnifyUnsafe(types)
		if ty == cty.NilType {
			return ty, errors.New("all arguments must have the same type")
		}
		return ty, nil
	},
	RefineResult: notNull,
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		for _, arg := range args {
			if !arg.IsKnown() {
				return cty.UnknownVal(ty), nil
			}
			if arg.IsNull() || arg.Type() == cty.String && arg.AsString() == "" {
				continue
			}
			return convert.Convert(arg, ty)
		}
		return cty.NilVal, errors.New("every argument is null or an empty string")
	},
})

var indexFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "list", Type: cty.DynamicPseudoType},
		{Name: "value", Type: cty.DynamicPseudoType},
	},
	Type: func(args []cty.Value) (cty.Type, error) {
		if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() && ty != cty.DynamicPseudoType {
			return cty.NilType, function.NewArgErrorf(0, "it must be a list or a tuple")
		}
		return cty.Number, nil
	},
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].IsKnown() || !args[1].IsKnown() {
			return cty.UnknownVal(cty.Number), nil
		}
		for i, v := range args[0].AsValueSlice() {
			equal, err := stdlib.Equal(v, args[1])
			if err != nil {
				return cty.NilVal, err
			}
			if !equal.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if equal.True() {
				return cty.NumberIntVal(int64(i)), nil
			}
		}
		return cty.NilVal, errors.New("the list has no such element")
	},
})

var lookupFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "inputMap", Type: cty.DynamicPseudoType, AllowMarked: true},
		{Name: "key", Type: cty.String, AllowMarked: true},
	},
	VarParam: &function.Parameter{
		Name: "default", Type: cty.DynamicPseudoType,
		AllowUnknown: true, AllowDynamicType: true, AllowNull: true, AllowMarked: true,
	},
	Type: lookupType,
	Impl: lookup,
})

func lookupType(args []cty.Value) (cty.Type, error) {
	if len(args) > 3 {
		return cty.NilType, errors.New("lookup takes a map, a key and at most one default")
	}
	ty := args[0].Type()
	switch {
	case ty.IsObjectType():
		key, _ := args[1].Unmark()
		if !key.IsKnown() {
			return cty.DynamicPseudoType, nil
		}
		if ty.HasAttribute(key.AsString()) {
			return ty.AttributeType(key.AsString()), nil
		}
		if len(args) == 3 {
			return args[2].Type(), nil
		}
		return cty.NilType, function.NewArgErrorf(0, "the object has no attribute %s", spell(args[1]))
	case ty.IsMapType():
		if len(args) == 3 {
			if _, err := convert.Convert(args[2], ty.ElementType()); err != nil {
				return cty.NilType, function.NewArgErrorf(2, "the default must have the type of the map's elements")
			}
		}
		return ty.ElementType(), nil
	}
	return cty.NilType, function.NewArgErrorf(0, "it must be a map or an object")
}

func lookup(args []cty.Value, ty cty.Type) (cty.Value, error) {
	coll, marks := args[0].Unmark()
	key, keyMarks := args[1].Unmark()
	if !coll.IsKnown() || !key.IsKnown() {
		return cty.UnknownVal(ty).WithMarks(marks, keyMarks), nil
	}
	name := key.AsString()
	if coll.Type().IsObjectType() {
		if coll.Type().HasAttribute(name) {
			return coll.GetAttr(name).WithMarks(marks, keyMarks), nil
		}
	} else if coll.HasIndex(key).True() {
		return coll.Index(key).WithMarks(marks, keyMarks), nil
	}
	if len(args) < 3 {
		return cty.NilVal, function.NewArgErrorf(1, "the map has no key %s, and no default is given", spell(args[1].WithMarks(marks)))
	}
	v, err := convert.Convert(args[2], ty)
	return v.WithMarks(marks, keyMarks), err
}

var matchkeysFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "values", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "keys", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "searchset", Type: cty.List(cty.DynamicPseudoType)},
	},
	Type: func(args []cty.Value) (cty.Type, error) {
		if ty, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()}); ty == cty.NilType {
			return cty.NilType, errors.New("keys and searchset must have elements of the same type")
		}
		return args[0].Type(), nil
	},
	RefineResult: notNull,
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() || !args[1].IsWhollyKnown() || !args[2].IsWhollyKnown() {
			return cty.UnknownVal(ty), nil
		}
		values, keys := args[0].AsValueSlice(), args[1].AsValueSlice()
		if len(values) != len(keys) {
			return cty.NilVal, errors.New("values and keys must have the same length")
		}
		wanted, _ := convert.Convert(args[2], args[1].Type())
		if wanted == cty.NilVal {
			wanted = args[2]
		}
		var found []cty.Value
		search := wanted.AsValueSlice()
		for i, key := range keys {
			if slices.ContainsFunc(search, func(s cty.Value) bool {
				equal, err := stdlib.Equal(key, s)
				return err == nil && equal.IsKnown() && equal.True()
			}) {
				found = append(found, values[i])
			}
		}
		if len(found) == 0 {
			return cty.ListValEmpty(ty.ElementType()), nil
		}
		return cty.ListVal(found), nil
	},
})

var oneFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		switch {
		case ty.IsListType() || ty.IsSetType():
			return ty.ElementType(), nil
		case ty.IsTupleType() && len(ty.TupleElementTypes()) == 0:
			return cty.DynamicPseudoType, nil
		case ty.IsTupleType() && len(ty.TupleElementTypes()) == 1:
			return ty.TupleElementType(0), nil
		}
		return cty.NilType, function.NewArgErrorf(0, "it must be a list, set or tuple with no or one element")
	},
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		if !args[0].IsKnown() || !args[0].Length().IsKnown() {
			return cty.UnknownVal(ty), nil
		}
		switch elements := args[0].AsValueSlice(); len(elements) {
		case 0:
			return cty.NullVal(ty), nil
		case 1:
			return elements[0], nil
		}
		return cty.NilVal, function.NewArgErrorf(0, "it must be a list, set or tuple with no or one element")
	},
})

var sumFunc = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type:         function.StaticReturnType(cty.Number),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].CanIterateElements() || args[0].Type().IsMapType() || args[0].Type().IsObjectType() {
			return cty.NilVal, function.NewArgErrorf(0, "it must be a list, set or tuple of numbers")
		}
		elements := args[0].AsValueSlice()
		if len(elements) == 0 {
			return cty.NilVal, function.NewArgErrorf(0, "nothing cannot be summed up; the list is empty")
		}
		total := cty.Zero
		for _, v := range elements {
			n, err := convert.Convert(v, cty.Number)
			if err != nil || n.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "it must be a list, set or tuple of numbers")
			}
			if total, err = stdlib.Add(total, n); err != nil {
				return cty.NilVal, err
			}
		}
		return total, nil
	},
})

var transposeFunc = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "values", Type: cty.Map(cty.List(cty.String))}},
	Type:         function.StaticReturnType(cty.Map(cty.List(cty.String))),
	RefineResult: notNull,
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(ty), nil
		}
		var in map[string][]string
		if err := gocty.FromCtyValue(args[0], &in); err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "a list or string in it is null")
		}
		out := map[string][]string{}
		for key, list := range in {
			if list == nil {
				return cty.NilVal, function.NewArgErrorf(0, "the list of %q is null", key)
			}
			for _, s := range list {
				out[s] = append(out[s], key)
			}
		}
		for _, keys := range out {
			slices.Sort(keys)
		}
		return gocty.ToCtyValue(out, ty)
	},
})

// spell writes a string for a message, unless nobody may see it.
func spell(v cty.Value) string {
	if plain, marks := v.Unmark(); len(marks) == 0 && plain.IsKnown() && !plain.IsNull() {
		return "\"" + plain.AsString() + "\""
	}
	return "(sensitive value)"
}
