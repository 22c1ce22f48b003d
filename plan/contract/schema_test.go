package contract

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// The schema of the tables: one attribute of every kind, the same within
// blocks and attributes of every nesting.

type attrs = map[string]*providers.Attribute
type vals = map[string]cty.Value

func leaf() attrs {
	return attrs{
		"name":  {Type: cty.String, Required: true},
		"id":    {Type: cty.String, Computed: true},
		"mode":  {Type: cty.String, Optional: true, Computed: true},
		"note":  {Type: cty.String, Optional: true},
		"token": {Type: cty.String, Optional: true, WriteOnly: true},
	}
}

func nested(n providers.Nesting) *providers.Attribute {
	return &providers.Attribute{Optional: true, Nested: &providers.NestedType{Nesting: n, Attributes: leaf()}}
}

func nestedBlock(n providers.Nesting) *providers.NestedBlock {
	return &providers.NestedBlock{Nesting: n, Block: &providers.Block{Attributes: leaf()}}
}

func everything() *providers.Block {
	a := leaf()
	a["secret"] = &providers.Attribute{Type: cty.String, Optional: true, Sensitive: true}
	a["any"] = &providers.Attribute{Type: cty.DynamicPseudoType, Optional: true}
	a["tags"] = &providers.Attribute{Type: cty.Map(cty.String), Optional: true}
	a["ports"] = &providers.Attribute{Type: cty.Set(cty.Number), Optional: true}
	a["one"] = nested(providers.Single)
	a["list"] = nested(providers.List)
	a["set"] = nested(providers.Set)
	a["map"] = nested(providers.Map)
	a["auto"] = nested(providers.Single)
	a["auto"].Computed = true
	return &providers.Block{
		Attributes: a,
		Blocks: map[string]*providers.NestedBlock{
			"bone": nestedBlock(providers.Single), "bgroup": nestedBlock(providers.Group),
			"blist": nestedBlock(providers.List), "bset": nestedBlock(providers.Set), "bmap": nestedBlock(providers.Map),
		},
	}
}

// object completes v: attributes that are not named are null, blocks empty.
func object(t *testing.T, schema *providers.Block, v vals) cty.Value {
	t.Helper()
	full := vals{}
	for name, ty := range schema.ImpliedType().AttributeTypes() {
		b := schema.Blocks[name]
		switch {
		case b == nil || b.Nesting == providers.Single:
			full[name] = cty.NullVal(ty)
		case b.Nesting == providers.Group:
			full[name] = object(t, b.Block, nil)
		case b.Nesting == providers.List:
			full[name] = cty.ListValEmpty(ty.ElementType())
		case b.Nesting == providers.Set:
			full[name] = cty.SetValEmpty(ty.ElementType())
		case b.Nesting == providers.Map:
			full[name] = cty.MapValEmpty(ty.ElementType())
		}
	}
	for name, el := range v {
		if _, ok := full[name]; !ok {
			t.Fatalf("no %s in the schema", name)
		}
		full[name] = el
	}
	return cty.ObjectVal(full)
}

// el is an element of the leaf schema from "name", "id", "mode", … pairs.
func el(pairs ...any) cty.Value {
	v := vals{}
	for name := range leaf() {
		v[name] = cty.NullVal(cty.String)
	}
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		switch x := pairs[i+1].(type) {
		case string:
			v[name] = cty.StringVal(x)
		case cty.Value:
			v[name] = x
		}
	}
	return cty.ObjectVal(v)
}

var unknown = cty.UnknownVal(cty.String)

func str(s string) cty.Value                 { return cty.StringVal(s) }
func list(v ...cty.Value) cty.Value          { return cty.ListVal(v) }
func set(v ...cty.Value) cty.Value           { return cty.SetVal(v) }
func mapOf(v map[string]cty.Value) cty.Value { return cty.MapVal(v) }

var elType = el().Type()
