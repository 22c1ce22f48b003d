package lang

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestTypeText(t *testing.T) {
	object := cty.Object(map[string]cty.Type{"b c": cty.Tuple([]cty.Type{cty.Bool}), "a": cty.DynamicPseudoType})
	cases := []struct {
		ty   cty.Type
		want string
	}{
		{cty.String, "string"},
		{cty.EmptyTuple, "tuple([])"},
		{cty.EmptyObject, "object({})"},
		{cty.Set(cty.Map(cty.Number)), "set(map(number))"},
		{cty.List(cty.EmptyTuple), "list(\n    tuple([]),\n)"},
		{cty.Map(cty.List(object)), "map(list(\n    object({\n        a: dynamic,\n        b c: tuple([\n            bool,\n        ]),\n    }),\n))"},
	}
	for _, c := range cases {
		if got := typeText(c.ty, ""); got != c.want {
			t.Errorf("%#v:\n%s\nwant:\n%s", c.ty, got, c.want)
		}
	}
}

// TestTypeOfType makes sure that a type's name is told from a text.
func TestTypeOfType(t *testing.T) {
	v, diags := value(t, "type(type(1))", Options{Console: true})
	plain, _ := v.Unmark()
	if diags.HasErrors() || plain.AsString() != "type" {
		t.Errorf("%#v %v", v, diags)
	}
	if v, _ := value(t, `[type("x")]`, Options{Console: true}); !HasMark(v, TypeName) {
		t.Errorf("%#v", v)
	}
}
