package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Type is a resource type with what decoding it needs, made once per phase.
type Type struct {
	Schema  *providers.ResourceSchema
	Implied cty.Type
	spec    hcldec.Spec
	secrets bool // some attribute is sensitive
	shapes  shapes
}

func (ev *Evaluator) typeOf(rs *providers.ResourceSchema) *Type {
	ev.shared.Lock()
	defer ev.shared.Unlock()
	ty := ev.shared.types[rs]
	if ty == nil {
		ty = NewType(rs)
		ev.shared.types[rs] = ty
	}
	return ty
}

// NewType prepares a schema for use.
func NewType(rs *providers.ResourceSchema) *Type {
	return &Type{Schema: rs, Implied: rs.Block.ImpliedType(), spec: blockSpec(rs.Block), secrets: hasSecrets(rs.Block)}
}

// Sensitive returns the paths of v that the schema calls sensitive.
func (ty *Type) Sensitive(v cty.Value) []cty.Path {
	if !ty.secrets {
		return nil
	}
	return blockSecrets(nil, nil, ty.Schema.Block, v)
}

// variablesIn lists what a body refers to. Native bodies without dynamic blocks
// are read directly; the general way builds schemas for every block.
func variablesIn(body hcl.Body, ty *Type) []hcl.Traversal {
	native, ok := body.(*hclsyntax.Body)
	if !ok || hasDynamic(body) {
		return dynblock.VariablesHCLDec(body, ty.spec)
	}
	return nativeVariables(nil, native)
}

func nativeVariables(into []hcl.Traversal, body *hclsyntax.Body) []hcl.Traversal {
	for _, attr := range body.Attributes {
		into = append(into, attr.Expr.Variables()...)
	}
	for _, b := range body.Blocks {
		into = nativeVariables(into, b.Body)
	}
	return into
}

func blockSpec(b *providers.Block) hcldec.Spec {
	spec := make(hcldec.ObjectSpec, len(b.Attributes)+len(b.Blocks))
	for name, a := range b.Attributes {
		spec[name] = attributeSpec(name, configType(a), a.Required)
	}
	for name, n := range b.Blocks {
		spec[name] = nestedSpec(name, n)
	}
	return spec
}

func nestedSpec(name string, n *providers.NestedBlock) hcldec.Spec {
	inner := blockSpec(n.Block)
	dynamic := n.Block.ImpliedType().HasDynamicTypes()
	switch n.Nesting {
	case providers.List:
		if dynamic {
			return &hcldec.BlockTupleSpec{TypeName: name, Nested: inner, MinItems: n.Min, MaxItems: n.Max}
		}
		return &hcldec.BlockListSpec{TypeName: name, Nested: inner, MinItems: n.Min, MaxItems: n.Max}
	case providers.Set:
		return &hcldec.BlockSetSpec{TypeName: name, Nested: inner, MinItems: n.Min, MaxItems: n.Max}
	case providers.Map:
		if dynamic {
			return &hcldec.BlockObjectSpec{TypeName: name, Nested: inner, LabelNames: []string{"key"}}
		}
		return &hcldec.BlockMapSpec{TypeName: name, Nested: inner, LabelNames: []string{"key"}}
	case providers.Group:
		return &hcldec.DefaultSpec{
			Primary: &hcldec.BlockSpec{TypeName: name, Nested: inner},
			Default: emptySpec(n.Block),
		}
	}
	return &hcldec.BlockSpec{TypeName: name, Nested: inner, Required: n.Min > 0}
}

// emptySpec decodes a missing block as an empty one.
func emptySpec(b *providers.Block) hcldec.Spec {
	attrs := make(map[string]cty.Value)
	for name, ty := range b.ImpliedType().AttributeTypes() {
		attrs[name] = cty.NullVal(ty)
	}
	for name, n := range b.Blocks {
		ty := n.Block.ImpliedType()
		switch n.Nesting {
		case providers.List:
			if ty.HasDynamicTypes() {
				attrs[name] = cty.EmptyTupleVal
			} else {
				attrs[name] = cty.ListValEmpty(ty)
			}
		case providers.Set:
			attrs[name] = cty.SetValEmpty(ty)
		case providers.Map:
			if ty.HasDynamicTypes() {
				attrs[name] = cty.EmptyObjectVal
			} else {
				attrs[name] = cty.MapValEmpty(ty)
			}
		}
	}
	return &hcldec.LiteralSpec{Value: cty.ObjectVal(attrs)}
}

// configType is the type that an attribute's expression is converted to:
// nested attributes that are not required may be left out.
func configType(a *providers.Attribute) cty.Type {
	if a.Nested == nil {
		return a.Type
	}
	attrs := make(map[string]cty.Type, len(a.Nested.Attributes))
	var optional []string
	for name, n := range a.Nested.Attributes {
		attrs[name] = configType(n)
		if !n.Required {
			optional = append(optional, name)
		}
	}
	ty := cty.ObjectWithOptionalAttrs(attrs, optional)
	switch a.Nested.Nesting {
	case providers.List:
		return cty.List(ty)
	case providers.Set:
		return cty.Set(ty)
	case providers.Map:
		return cty.Map(ty)
	}
	return ty
}

func hasSecrets(b *providers.Block) bool {
	for _, a := range b.Attributes {
		if attributeHasSecrets(a) {
			return true
		}
	}
	for _, n := range b.Blocks {
		if hasSecrets(n.Block) {
			return true
		}
	}
	return false
}

func attributeHasSecrets(a *providers.Attribute) bool {
	if a.Sensitive {
		return true
	}
	if a.Nested != nil {
		for _, n := range a.Nested.Attributes {
			if attributeHasSecrets(n) {
				return true
			}
		}
	}
	return false
}

func blockSecrets(into []cty.Path, at cty.Path, b *providers.Block, v cty.Value) []cty.Path {
	if v.IsNull() || !v.IsKnown() {
		return into
	}
	into = attributeSecrets(into, at, b.Attributes, v)
	for name, n := range b.Blocks {
		if !hasSecrets(n.Block) {
			continue
		}
		visitNested(at.GetAttr(name), v.GetAttr(name), n.Nesting, func(at cty.Path, v cty.Value) {
			into = blockSecrets(into, at, n.Block, v)
		}, func(whole cty.Path) { into = append(into, whole) })
	}
	return into
}

func attributeSecrets(into []cty.Path, at cty.Path, attrs map[string]*providers.Attribute, v cty.Value) []cty.Path {
	for name, a := range attrs {
		if !attributeHasSecrets(a) {
			continue
		}
		path, inner := at.GetAttr(name), v.GetAttr(name)
		if a.Sensitive {
			if !inner.IsNull() {
				into = append(into, path)
			}
			continue
		}
		visitNested(path, inner, a.Nested.Nesting, func(at cty.Path, v cty.Value) {
			if !v.IsNull() && v.IsKnown() {
				into = attributeSecrets(into, at, a.Nested.Attributes, v)
			}
		}, func(whole cty.Path) { into = append(into, whole) })
	}
	return into
}

// visitNested visits the objects of something nested. Elements of sets have no path
// that is of use, so that a set with secrets is secret as a whole.
func visitNested(at cty.Path, v cty.Value, n providers.Nesting, visit func(cty.Path, cty.Value), whole func(cty.Path)) {
	if v.IsNull() || !v.IsKnown() {
		return
	}
	switch n {
	case providers.Single, providers.Group:
		visit(at.Copy(), v)
	case providers.Set:
		whole(at.Copy())
	default:
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if v.Type().IsObjectType() {
				visit(at.Copy().GetAttr(k.AsString()), e)
			} else {
				visit(at.Copy().Index(k), e)
			}
		}
	}
}
