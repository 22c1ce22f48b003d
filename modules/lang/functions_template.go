package lang

import (
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/stokehq/stoke/modules/syntax"
)

// templates are the functions that render text with interpolations. The
// table is what a template may call; the functions themselves are not among
// it, so no template ends in itself.
func (f folder) templates(table map[string]function.Function) map[string]function.Function {
	inner := maps.Clone(table)
	for _, name := range []string{"templatefile", "templatestring"} {
		nested := function.New(&function.Spec{
			VarParam: &function.Parameter{Name: "args", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true},
			Type: func([]cty.Value) (cty.Type, error) {
				return cty.NilType, errors.New("a template cannot render another template; render the inner one first and pass its text")
			},
		})
		inner[name], inner["core::"+name] = nested, nested
	}
	return map[string]function.Function{
		"templatefile": renderer("path", cty.DynamicPseudoType, inner, func(name string) (string, string, error) {
			content, err := f.read(name)
			if err == nil && !utf8.Valid(content) {
				err = errors.New("it is not UTF-8 text")
			}
			return name, string(content), err
		}),
		"templatestring": renderer("template", cty.String, inner, func(text string) (string, string, error) {
			return "<template>", text, nil
		}),
	}
}

// renderer makes a function of a template and its variables. Load returns
// the name and the text of what the first argument means.
func renderer(param string, ty cty.Type, table map[string]function.Function, load func(string) (string, string, error)) function.Function {
	render := func(args []cty.Value) (cty.Value, error) {
		template, marks := args[0].Unmark()
		variables, _ := args[1].Unmark()
		_, varMarks := args[1].UnmarkDeep() // as with any function: also of what the template does not use
		if !template.IsKnown() || !variables.IsKnown() {
			return cty.UnknownVal(ty).WithMarks(marks, varMarks), nil
		}
		name, text, err := load(template.AsString())
		if err != nil {
			return cty.DynamicVal, fileError(args[0], err)
		}
		v, err := renderText(name, text, variables, table)
		if err != nil {
			return cty.DynamicVal, err
		}
		return v.WithMarks(marks, varMarks), nil
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: param, Type: cty.String, AllowMarked: true},
			{Name: "vars", Type: cty.DynamicPseudoType, AllowMarked: true, AllowUnknown: true},
		},
		Type: func(args []cty.Value) (cty.Type, error) {
			if template, _ := args[0].Unmark(); !template.IsKnown() || ty != cty.DynamicPseudoType {
				return ty, nil
			}
			// A template that is a single interpolation has its type.
			v, err := render(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
			v, err := render(args)
			if err == nil && want == cty.String && v.Type() != cty.String {
				return text(v)
			}
			return v, err
		},
	})
}

// text is what a template that is a single interpolation yields as a string.
func text(v cty.Value) (cty.Value, error) {
	plain, marks := v.Unmark()
	if plain.IsNull() || !plain.Type().IsPrimitiveType() {
		if plain.Type() == cty.DynamicPseudoType && !plain.IsKnown() {
			return cty.UnknownVal(cty.String).WithMarks(marks), nil
		}
		return cty.NilVal, errors.New("the template yields no text")
	}
	s, err := toString.Call([]cty.Value{plain})
	return s.WithMarks(marks), err
}

func renderText(name, text string, variables cty.Value, table map[string]function.Function) (cty.Value, error) {
	scope, err := templateScope(variables)
	if err != nil {
		return cty.NilVal, err
	}
	expr, diags := syntax.ParseTemplate(name, []byte(text))
	if diags.HasErrors() {
		return cty.NilVal, function.NewArgError(0, diags)
	}
	for _, t := range expr.Variables() {
		if root := t.RootName(); scope[root] == cty.NilVal {
			return cty.NilVal, function.NewArgErrorf(1, "the template refers to %q at %s, which is not among the variables%s",
				root, t[0].SourceRange(), orNearest(root, slices.Collect(maps.Keys(scope))))
		}
	}
	v, diags := expr.Value(&hcl.EvalContext{Variables: scope, Functions: table})
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	return v, nil
}

func templateScope(variables cty.Value) (map[string]cty.Value, error) {
	if ty := variables.Type(); !ty.IsMapType() && !ty.IsObjectType() {
		return nil, function.NewArgErrorf(1, "it must be a map or an object")
	}
	scope := variables.AsValueMap()
	for name := range scope {
		if !hclsyntax.ValidIdentifier(name) {
			return nil, function.NewArgErrorf(1, "%q cannot be the name of a variable in a template", name)
		}
	}
	return scope, nil
}

// orNearest names what somebody who wrote name may have meant.
func orNearest(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return " (did you mean \"" + near + "\"?)"
	}
	return ""
}
