package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
)

// infinite finds a number that no file can hold, such as 1/0.
func infinite(v cty.Value) (found cty.Path, is bool) {
	if !numbers(v.Type()) {
		return nil, false
	}
	_ = cty.Walk(v, func(path cty.Path, v cty.Value) (bool, error) { // it returns no errors of its own
		if v.Type() == cty.Number && v.IsKnown() && !v.IsNull() {
			v, _ = v.Unmark()
			if !is && v.AsBigFloat().IsInf() {
				found, is = path.Copy(), true
			}
		}
		return !is, nil
	})
	return found, is
}

// numbers reports whether values of the type can hold numbers.
func numbers(ty cty.Type) bool {
	switch {
	case ty == cty.Number || ty == cty.DynamicPseudoType:
		return true
	case ty.IsCollectionType():
		return numbers(ty.ElementType())
	case ty.IsTupleType():
		for _, ty := range ty.TupleElementTypes() {
			if numbers(ty) {
				return true
			}
		}
	case ty.IsObjectType():
		for _, ty := range ty.AttributeTypes() {
			if numbers(ty) {
				return true
			}
		}
	}
	return false
}

func infiniteNumber(what string, at *hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Number is infinite",
		Detail:  fmt.Sprintf("%s holds a number without bounds, which cannot be stored. Look for a division by zero.", what),
		Subject: at,
	}
}

// Finite reports whether an instance's configuration only holds finite numbers.
func (i *Instance) Finite(t *Task, config cty.Value) bool {
	path, is := infinite(config)
	if !is {
		return true
	}
	decl := i.Resource.Decl
	at := locate(decl.Body, path)
	if at == nil {
		at = decl.Range.Ptr()
	}
	t.Report(infiniteNumber(i.Addr.String(), at))
	return false
}

// infiniteOutput is nil unless the module is the root, whose outputs are
// stored, and the output holds an infinite number.
func (m *Module) infiniteOutput(decl *modules.Output, v cty.Value) *hcl.Diagnostic {
	if m.parent != nil {
		return nil
	}
	if _, is := infinite(v); !is {
		return nil
	}
	return infiniteNumber(fmt.Sprintf("The output %q", decl.Name), decl.Value.Range().Ptr())
}
