package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/modules/syntax"
)

// Read evaluates the body of a backend block, or of a file of
// -backend-config. Arguments are plain values: nothing can be referred to,
// because the state has to be found before anything is evaluated.
func (k *Kind) Read(body hcl.Body) (Values, hcl.Diagnostics) {
	return readBody(body, k.Arguments)
}

func readBody(body hcl.Body, arguments []Argument) (Values, hcl.Diagnostics) {
	schema := &hcl.BodySchema{}
	for _, a := range arguments {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: a.Name})
		if a.Nested != nil {
			schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: a.Name})
		}
	}
	content, diags := body.Content(schema)
	values := Values{}
	for name, attr := range content.Attributes {
		v, more := readAttribute(attr, find(arguments, name))
		diags = append(diags, more...)
		if !more.HasErrors() {
			values[name] = v
		}
	}
	for _, block := range content.Blocks {
		a := find(arguments, block.Type)
		if _, again := values[block.Type]; again {
			diags = append(diags, problem(&block.DefRange, "Argument given twice", "%q may be given once.", block.Type))
			continue
		}
		inner, more := readBody(block.Body, a.Nested)
		diags = append(diags, more...)
		if more.HasErrors() {
			continue
		}
		v, err := convert.Convert(cty.ObjectVal(inner), a.valueType())
		if err != nil {
			diags = append(diags, problem(&block.DefRange, "Invalid backend configuration", "The block %q does not fit: %s.", block.Type, err))
			continue
		}
		values[block.Type] = v
	}
	return values, diags
}

func readAttribute(attr *hcl.Attribute, a *Argument) (cty.Value, hcl.Diagnostics) {
	if len(attr.Expr.Variables()) > 0 {
		return cty.NilVal, hcl.Diagnostics{problem(attr.Expr.Range().Ptr(), "Reference in backend configuration",
			"The state has to be found before anything else is evaluated, so %q must be a plain value. Leave it out of the block and give it with -backend-config=%s=… to make it differ from run to run.", a.Name, a.Name)}
	}
	v, diags := attr.Expr.Value(nil)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	if v, err := convert.Convert(v, a.valueType()); err == nil && v.IsWhollyKnown() {
		return v, nil
	} else if err != nil {
		return cty.NilVal, hcl.Diagnostics{problem(attr.Expr.Range().Ptr(), "Wrong type of backend argument", "The argument %q does not fit: %s.", a.Name, err)}
	}
	return cty.NilVal, hcl.Diagnostics{problem(attr.Expr.Range().Ptr(), "Value not known", "The argument %q must be a plain value.", a.Name)}
}

// Set reads one NAME=VALUE of -backend-config.
func (k *Kind) Set(text string) (name string, v cty.Value, err error) {
	name, given, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if !ok {
		return "", cty.NilVal, fmt.Errorf("%q is neither a file nor of the form NAME=VALUE", text)
	}
	a := k.argument(name)
	if a == nil {
		return "", cty.NilVal, fmt.Errorf("the backend %q has no argument %q%s", k.Name, name, k.suggestArgument(name))
	}
	ty := a.valueType()
	if ty.IsPrimitiveType() {
		v, err := convert.Convert(cty.StringVal(given), ty)
		if err != nil {
			return "", cty.NilVal, fmt.Errorf("the argument %q needs a %s", name, ty.FriendlyName())
		}
		return name, v, nil
	}
	expr, diags := syntax.ParseExpression("<value of "+name+">", []byte(given), hcl.InitialPos)
	if diags.HasErrors() {
		return "", cty.NilVal, fmt.Errorf("the value of %q cannot be read: %s", name, diags[0].Detail)
	}
	v, diags = expr.Value(nil)
	if diags.HasErrors() {
		return "", cty.NilVal, fmt.Errorf("the value of %q cannot be read: %s", name, diags[0].Detail)
	}
	if v, err = convert.Convert(v, ty); err != nil {
		return "", cty.NilVal, fmt.Errorf("the argument %q does not fit: %w", name, err)
	}
	return name, v, nil
}

// suggestArgument suggests the argument that was most likely meant.
func (k *Kind) suggestArgument(name string) string {
	var names []string
	for _, a := range k.Arguments {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	for _, n := range names {
		if levenshtein.Distance(name, n, nil) <= 1+len(name)/4 {
			return fmt.Sprintf("; did you mean %q?", n)
		}
	}
	return ""
}

func problem(at *hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at}
}
