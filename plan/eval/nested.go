package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// attributeSpec decodes an argument. The conversion of an object drops names that
// its type lacks, so that a typing mistake would silently leave a default in
// force: the decoder rejects such names first, wherever the value is written.
func attributeSpec(name string, ty cty.Type, required bool) hcldec.Spec {
	if !hasObjects(ty) {
		return &hcldec.AttrSpec{Name: name, Type: ty, Required: required}
	}
	converted := ty.WithoutOptionalAttributesDeep()
	return &hcldec.TransformFuncSpec{
		Wrapped: &hcldec.ValidateSpec{
			Wrapped: &hcldec.AttrSpec{Name: name, Type: cty.DynamicPseudoType, Required: required},
			Func: func(v cty.Value) hcl.Diagnostics {
				if _, err := convert.Convert(v, ty); err != nil {
					return hcl.Diagnostics{{
						Severity: hcl.DiagError, Summary: "Incorrect attribute value type",
						Detail: fmt.Sprintf("Inappropriate value for attribute %q: %s.", name, err),
					}}
				}
				return unexpected(v, ty)
			},
		},
		Func: function.New(&function.Spec{
			Params: []function.Parameter{{
				Name: name, Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true, AllowMarked: true,
			}},
			Type: function.StaticReturnType(converted),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return convert.Convert(args[0], ty) },
		}),
	}
}

func hasObjects(ty cty.Type) bool {
	if ty.IsCollectionType() {
		return hasObjects(ty.ElementType())
	}
	return ty.IsObjectType()
}

// misnamed is where in the value of an argument a name is that its type does not have.
type misnamed struct{ path cty.Path }

// unexpected finds the names in a value that its type lacks, except names with a
// null value. For an unknown value it uses the value's type.
func unexpected(v cty.Value, ty cty.Type) hcl.Diagnostics {
	s := search{seen: map[string]bool{}}
	s.value(nil, v, ty, false)
	return s.found
}

type search struct {
	found hcl.Diagnostics
	seen  map[string]bool // one mistake may be in many elements
}

func (s *search) value(at cty.Path, v cty.Value, ty cty.Type, secret bool) {
	v, marks := v.Unmark()
	if v.IsNull() || !hasObjects(ty) {
		return
	}
	secret = secret || len(marks) > 0
	have := v.Type()
	switch {
	case have.IsObjectType():
		for _, name := range slices.Sorted(maps.Keys(have.AttributeTypes())) {
			s.visitMember(at.GetAttr(name), name, v.GetAttr(name), ty, secret)
		}
	case have.IsTupleType():
		for i, element := range have.TupleElementTypes() {
			inner := cty.UnknownVal(element)
			if v.IsKnown() {
				inner = v.Index(cty.NumberIntVal(int64(i)))
			}
			s.element(at.IndexInt(i), inner, ty, secret)
		}
	case have.IsCollectionType() && !v.IsKnown():
		s.element(at.Index(cty.UnknownVal(cty.String)), cty.UnknownVal(have.ElementType()), ty, secret)
	case have.IsCollectionType():
		for it := v.ElementIterator(); it.Next(); {
			key, inner := it.Element()
			if have.IsMapType() {
				s.visitMember(at.Index(key), key.AsString(), inner, ty, secret)
			} else {
				s.element(at.Index(key), inner, ty, secret)
			}
		}
	}
}

// element looks into one of several, which may not be objects as they should be.
func (s *search) element(at cty.Path, v cty.Value, ty cty.Type, secret bool) {
	if ty.IsCollectionType() {
		s.value(at, v, ty.ElementType(), secret)
	}
}

func (s *search) visitMember(at cty.Path, name string, v cty.Value, ty cty.Type, secret bool) {
	switch {
	case ty.IsCollectionType():
		s.value(at, v, ty.ElementType(), secret)
		return
	case ty.HasAttribute(name):
		s.value(at, v, ty.AttributeType(name), secret)
		return
	}
	if plain, _ := v.Unmark(); plain.IsNull() || s.seen[name] {
		return
	}
	s.seen[name] = true
	detail := fmt.Sprintf("An argument named %q is not expected here.", name)
	if near := Nearest(name, keysOf(ty.AttributeTypes())); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	if secret {
		detail = "An argument is not expected here. Its name is hidden: the object around it is sensitive."
	}
	s.found = append(s.found, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Unsupported argument", Detail: detail, Extra: misnamed{at.Copy()},
	})
}

// narrow moves a diagnostic about a name to where that is written, if it is
// written in place.
func narrow(body hcl.Body, diags hcl.Diagnostics) {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return
	}
	for _, d := range diags {
		if m, ok := d.Extra.(misnamed); ok && d.Subject != nil {
			if expr := spanning(native, *d.Subject); expr != nil {
				d.Subject = sourceRange(expr, m.path, true).Ptr()
			}
		}
	}
}

// spanning finds the argument whose value is written in the range.
func spanning(body *hclsyntax.Body, rng hcl.Range) hclsyntax.Expression {
	for _, attr := range body.Attributes {
		if attr.Expr.Range() == rng {
			return attr.Expr
		}
	}
	for _, b := range body.Blocks {
		if expr := spanning(b.Body, rng); expr != nil {
			return expr
		}
	}
	return nil
}
