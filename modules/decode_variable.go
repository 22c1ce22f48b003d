package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/modules/syntax"
)

var variableSchema = newSchema(
	[]string{"type", "default", "description", "sensitive", "ephemeral", "nullable", "deprecated"},
	map[string][]string{"validation": nil},
)

// reservedVariables are arguments that every module call has.
var reservedVariables = map[string]bool{
	"source": true, "version": true, "providers": true, "count": true, "for_each": true,
	"lifecycle": true, "depends_on": true, "locals": true,
}

func (d *decoder) variable(block *hcl.Block) {
	content, diags := variableSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	name := block.Labels[0]
	if !d.name("variable", name, block.LabelRanges[0]) {
		return
	}
	if reservedVariables[name] {
		d.fail(&block.LabelRanges[0], "Reserved variable name", "The name %q is an argument of every module call, so no variable can have it.", name)
		return
	}
	if first := d.module.Variables[name]; first != nil {
		d.duplicate("variable", name, block.DefRange, first.Range)
		return
	}
	v := &Variable{
		Name:        name,
		Type:        cty.DynamicPseudoType,
		Constraint:  cty.DynamicPseudoType,
		Description: d.str(content.Attributes["description"]),
		Sensitive:   d.flag(content.Attributes["sensitive"], false),
		Ephemeral:   d.flag(content.Attributes["ephemeral"], false),
		Nullable:    d.flag(content.Attributes["nullable"], true),
		Range:       block.DefRange,
		verbatim:    true,
	}
	if attr := content.Attributes["type"]; attr != nil {
		d.variableType(v, attr)
	}
	if attr := content.Attributes["default"]; attr != nil {
		d.variableDefault(v, attr)
	}
	for _, b := range content.Blocks {
		d.appendValidation(v, b)
	}
	d.module.Variables[name] = v
}

func (d *decoder) variableType(v *Variable, attr *hcl.Attribute) {
	// In JSON the type is text that hcl parses now.
	if text, diags := attr.Expr.Value(nil); !diags.HasErrors() && text.Type() == cty.String && text.IsWhollyKnown() && !text.IsNull() {
		if diags := syntax.CheckExpression(attr.Range.Filename, []byte(text.AsString())); diags.HasErrors() {
			d.fail(attr.Expr.Range().Ptr(), "Nested too deeply", "The type of variable %q has too many brackets within each other.", v.Name)
			return
		}
	}
	var (
		ty       cty.Type
		defaults *typeexpr.Defaults
		diags    hcl.Diagnostics
	)
	switch hcl.ExprAsKeyword(attr.Expr) { // as the first versions of the language had them
	case "list":
		ty = cty.List(cty.DynamicPseudoType)
	case "map":
		ty = cty.Map(cty.DynamicPseudoType)
	default:
		ty, defaults, diags = typeexpr.TypeConstraintWithDefaults(attr.Expr)
	}
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return
	}
	v.Constraint, v.Defaults = ty, defaults
	v.Type = ty.WithoutOptionalAttributesDeep()
	v.verbatim = ty.IsPrimitiveType()
}

func (d *decoder) variableDefault(v *Variable, attr *hcl.Attribute) {
	at := attr.Expr.Range()
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() {
		for _, diag := range diags {
			diag.Detail += " The default of a variable must be a literal value; compute with locals instead."
		}
		d.diags = append(d.diags, diags...)
		v.Default = cty.DynamicVal // so that nothing asks for a value
		return
	}
	converted, err := v.Convert(value)
	if err != nil {
		d.fail(&at, "Default of wrong type", "The default of variable %q does not have its type: %s.", v.Name, mismatch(err))
		converted = cty.DynamicVal
	} else if converted.IsNull() && !v.Nullable {
		d.fail(&at, "Default is null", "The variable %q has nullable = false, so its default cannot be null.", v.Name)
	}
	v.Default = converted
}

// Convert gives a value the variable's type, with the defaults of optional
// attributes filled in. Where a value may not be null, null becomes the
// default. The error says what is wrong and where in the value.
func (v *Variable) Convert(value cty.Value) (cty.Value, error) {
	if v.Defaults != nil && !value.IsNull() {
		value = v.Defaults.Apply(value)
	}
	value, err := convert.Convert(value, v.Constraint)
	if err != nil {
		return cty.UnknownVal(v.Type), err
	}
	if value.IsNull() && !v.Nullable && v.Default != cty.NilVal {
		return v.Default, nil
	}
	return value, nil
}

// TypeString is the type as it is written, for messages and documentation.
func (v *Variable) TypeString() string { return typeexpr.TypeString(v.Constraint) }
