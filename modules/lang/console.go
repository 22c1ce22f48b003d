package lang

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// typeFunc is for the console: the type of its argument, written as in a type
// constraint.
var typeFunc = function.New(&function.Spec{
	Params: anyValue("value"),
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		name := "type"
		if !args[0].HasMark(TypeName) {
			name = typeText(args[0].Type(), "")
		}
		return cty.StringVal(name).Mark(TypeName), nil
	},
})

// typeText writes a type over as many lines as it has parts.
func typeText(ty cty.Type, indent string) string {
	inner := indent + "    "
	switch {
	case ty == cty.DynamicPseudoType:
		return "dynamic"
	case ty.IsCollectionType():
		name, element := "map", ty.ElementType()
		switch {
		case ty.IsListType():
			name = "list"
		case ty.IsSetType():
			name = "set"
		}
		if !element.IsObjectType() && !element.IsTupleType() {
			return name + "(" + typeText(element, indent) + ")"
		}
		return name + "(\n" + inner + typeText(element, inner) + ",\n" + indent + ")"
	case ty.IsTupleType():
		if ty.Length() == 0 {
			return "tuple([])"
		}
		var b strings.Builder
		b.WriteString("tuple([\n")
		for _, element := range ty.TupleElementTypes() {
			b.WriteString(inner + typeText(element, inner) + ",\n")
		}
		return b.String() + indent + "])"
	case ty.IsObjectType():
		attributes := ty.AttributeTypes()
		if len(attributes) == 0 {
			return "object({})"
		}
		names := make([]string, 0, len(attributes))
		for name := range attributes {
			names = append(names, name)
		}
		slices.Sort(names)
		var b strings.Builder
		b.WriteString("object({\n")
		for _, name := range names {
			b.WriteString(inner + name + ": " + typeText(attributes[name], inner) + ",\n")
		}
		return b.String() + indent + "})"
	}
	return ty.FriendlyName()
}
