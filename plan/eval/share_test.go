package eval

import (
	"reflect"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

func TestShare(t *testing.T) {
	object := func(id, input cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"id": id, "input": input})
	}
	text, unknown := cty.StringVal("a"), cty.UnknownVal(cty.String).RefineNotNull()
	nested := object(text, cty.TupleVal([]cty.Value{cty.True, object(unknown, cty.NullVal(cty.DynamicPseudoType))}))
	tests := []struct {
		name     string
		one, two cty.Value
		shared   bool
	}{
		{"alike", object(text, text), object(unknown, cty.StringVal("b")), true},
		{"nested", nested, object(cty.StringVal("b"), nested.GetAttr("input")), true},
		{"another type inside", object(text, text), object(text, cty.True), false},
		{"a null", object(text, text), cty.NullVal(object(text, text).Type()), true},
		{"an unknown", object(text, text), cty.UnknownVal(object(text, text).Type()), true},
		{"marks inside", object(text, text), object(text.Mark("secret"), text), true},
		{"marked", object(text, text), object(text, text).Mark("secret"), false},
		{"no object", object(text, text), cty.DynamicVal, false},
		{"optional attributes", object(text, text), cty.UnknownVal(cty.ObjectWithOptionalAttrs(object(text, text).Type().AttributeTypes(), []string{"id"})), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ty := NewType(&providers.ResourceSchema{Block: &providers.Block{}})
			for i := range 5 { // some that come in between are not the last seen
				ty.Share(cty.ObjectVal(map[string]cty.Value{"other": cty.ListValEmpty(cty.String), string(rune('a' + i)): cty.True}))
			}
			one, two := ty.Share(tt.one), ty.Share(tt.two)
			if !one.RawEquals(tt.one) || !two.RawEquals(tt.two) {
				t.Errorf("values are others: %#v, %#v", one, two)
			}
			shared := attributes(two) != attributes(tt.two) && attributes(two) == attributes(one)
			if shared != tt.shared {
				t.Errorf("one type between them: %t, want %t", shared, tt.shared)
			}
		})
	}
}

// attributes says which map an object's type has.
func attributes(v cty.Value) uintptr {
	if !v.Type().IsObjectType() {
		return 0
	}
	return reflect.ValueOf(v.Type().AttributeTypes()).Pointer()
}
