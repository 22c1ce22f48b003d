package contract

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

func TestWriteOnly(t *testing.T) {
	secret := &providers.Attribute{Type: cty.String, Optional: true, WriteOnly: true}
	plain := &providers.Attribute{Type: cty.String, Optional: true}
	attrs := func() map[string]*providers.Attribute {
		return map[string]*providers.Attribute{"secret": secret, "plain": plain}
	}
	schema := &providers.Block{Attributes: attrs(), Blocks: map[string]*providers.NestedBlock{
		"list": {Nesting: providers.List, Block: &providers.Block{Attributes: attrs()}},
		"one":  {Nesting: providers.Single, Block: &providers.Block{Attributes: attrs()}},
	}}
	schema.Attributes["nested"] = &providers.Attribute{Optional: true, Nested: &providers.NestedType{Nesting: providers.Map, Attributes: attrs()}}
	inner := func(secret cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"secret": secret, "plain": cty.StringVal("p")})
	}
	object := func(secret cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"secret": secret, "plain": cty.StringVal("p"), "one": inner(secret),
			"list": cty.ListVal([]cty.Value{inner(secret)}), "nested": cty.MapVal(map[string]cty.Value{"k": inner(secret)}),
		})
	}
	if !HasWriteOnly(schema) || HasWriteOnly(&providers.Block{Attributes: map[string]*providers.Attribute{"plain": plain}}) {
		t.Error("the schema's write-only attributes are not found")
	}
	null := object(cty.NullVal(cty.String))
	for _, secret := range []cty.Value{cty.StringVal("s"), cty.UnknownVal(cty.String)} {
		if got, had := WithoutWriteOnly(schema, object(secret)); !had || !got.RawEquals(null) {
			t.Errorf("%#v, %t", got, had)
		}
	}
	for _, v := range []cty.Value{null, cty.NullVal(schema.ImpliedType()), cty.UnknownVal(schema.ImpliedType())} {
		if got, had := WithoutWriteOnly(schema, v); had || !got.RawEquals(v) {
			t.Errorf("%#v became %#v, %t", v, got, had)
		}
	}
	for _, c := range []struct {
		path cty.Path
		want bool
	}{
		{cty.GetAttrPath("secret"), true},
		{cty.GetAttrPath("plain"), false},
		{cty.GetAttrPath("nested").IndexString("k").GetAttr("secret"), true},
		{cty.GetAttrPath("nested").IndexString("k").GetAttr("plain"), false},
		{cty.GetAttrPath("nested"), false},
		{cty.GetAttrPath("list").IndexInt(0).GetAttr("secret"), true},
		{cty.GetAttrPath("nothing"), false},
		{nil, false},
	} {
		if got := IsWriteOnly(schema, c.path); got != c.want {
			t.Errorf("%#v: %t", c.path, got)
		}
	}
}
