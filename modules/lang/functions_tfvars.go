package lang

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/stokehq/stoke/modules/syntax"
)

// TfvarsFunctions write and read the syntax of the language. They are what the
// provider terraform.io/builtin/terraform offers, by their names there.
func TfvarsFunctions() map[string]function.Function {
	return map[string]function.Function{
		"encode_tfvars": encodeTfvarsFunc,
		"decode_tfvars": decodeTfvarsFunc,
		"encode_expr":   encodeExprFunc,
	}
}

var encodeTfvarsFunc = function.New(&function.Spec{
	Description: "Writes an object as the text of a .tfvars file, one definition for each attribute.",
	Params:      []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		if ty := v.Type(); !ty.IsObjectType() && !ty.IsMapType() {
			return cty.NilVal, function.NewArgErrorf(0, "it must be an object; its attributes become the variables")
		}
		file := hclwrite.NewEmptyFile()
		if !v.IsWhollyKnown() {
			return cty.UnknownVal(cty.String).RefineNotNull(), nil
		}
		for it := v.ElementIterator(); it.Next(); {
			key, value := it.Element()
			name := key.AsString()
			if !hclsyntax.ValidIdentifier(name) {
				return cty.NilVal, function.NewArgErrorf(0, "%q cannot be the name of a variable", name)
			}
			file.Body().SetAttributeValue(name, value)
		}
		return cty.StringVal(string(file.Bytes())), nil
	},
})

var decodeTfvarsFunc = function.New(&function.Spec{
	Description: "Reads the text of a .tfvars file into an object with an attribute for each definition.",
	Params:      []function.Parameter{{Name: "src", Type: cty.String}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if !args[0].IsKnown() {
			return cty.DynamicPseudoType, nil
		}
		v, err := decodeTfvars(args[0].AsString())
		return v.Type(), err
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return decodeTfvars(args[0].AsString()) },
})

func decodeTfvars(text string) (cty.Value, error) {
	body, diags := syntax.Parse("<src>", []byte(text))
	if diags.HasErrors() {
		return cty.DynamicVal, function.NewArgErrorf(0, "it is not the text of a .tfvars file: %s", joinSummaries(diags))
	}
	attrs, diags := body.JustAttributes()
	if diags.HasErrors() {
		return cty.DynamicVal, function.NewArgErrorf(0, "a .tfvars file only holds definitions: %s", joinSummaries(diags))
	}
	values := make(map[string]cty.Value, len(attrs))
	for name, attr := range attrs {
		v, diags := attr.Expr.Value(nil)
		if diags.HasErrors() {
			return cty.DynamicVal, function.NewArgErrorf(0, "the value of %s cannot be read: %s", name, joinSummaries(diags))
		}
		values[name] = v
	}
	return cty.ObjectVal(values), nil
}

// joinSummaries is what the diagnostics say, to end a sentence.
func joinSummaries(diags hcl.Diagnostics) string { return strings.TrimSuffix(diags.Error(), ".") }

var encodeExprFunc = function.New(&function.Spec{
	Description: "Writes a value as an expression that yields it.",
	Params:      []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type:        function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(cty.String).RefineNotNull(), nil
		}
		return cty.StringVal(string(hclwrite.TokensForValue(args[0]).Bytes())), nil
	},
})
