package state

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestDecodeAttributes holds the short way against cty's own decoder: the same
// value, or the same refusal.
func TestDecodeAttributes(t *testing.T) {
	object := cty.Object(map[string]cty.Type{
		"s": cty.String, "n": cty.Number, "b": cty.Bool, "d": cty.DynamicPseudoType,
		"l": cty.List(cty.String), "set": cty.Set(cty.Number), "m": cty.Map(cty.Bool),
		"o": cty.Object(map[string]cty.Type{"x": cty.String}), "t": cty.Tuple([]cty.Type{cty.String}),
		"ld": cty.List(cty.DynamicPseudoType),
	})
	full := `{"s":"é","n":12345678901234567890.5,"b":true,"d":{"value":"v","type":"string"},"l":["a","b"],"set":[3,1,2],"m":{"k":false},"o":{"x":null},"t":["y"],"ld":[]}`
	cases := []struct {
		js string
		ty cty.Type
	}{
		{full, object},
		{`{"s":null,"n":null,"b":null,"d":null,"l":null,"set":null,"m":null,"o":null,"t":null,"ld":null}`, object},
		{`{"s":"missing members"}`, object},
		{`null`, object},
		{`[]`, object},
		{`"5"`, cty.Number}, {`5`, cty.String}, {`true`, cty.String}, {`"true"`, cty.Bool}, {`"x"`, cty.Bool}, {`1e400`, cty.Number}, {`1e3`, cty.Number},
		{`{"value":[1],"type":["tuple",["number"]]}`, cty.DynamicPseudoType},
		{`{"value":{"a":1},"type":["object",{"a":"number"}]}`, cty.DynamicPseudoType},
		{`{"value":null,"type":"string"}`, cty.DynamicPseudoType},
		{`{"value":{"a":[1,"x",null,{"k":true}],"b":{}},"type":["object",{"a":["tuple",["number","string","bool",["map","bool"]]],"b":["object",{}]}]}`, cty.DynamicPseudoType},
		{`{"value":[["b","a"],["b"]],"type":["list",["set","string"]]}`, cty.DynamicPseudoType},
		{`{"value":[{"value":1,"type":"number"}],"type":["tuple",["dynamic"]]}`, cty.DynamicPseudoType},
		{`{"value":[{"value":1,"type":"number"},{"value":2,"type":"number"}],"type":["list","dynamic"]}`, cty.DynamicPseudoType},
		{`{"value":{"value":1,"type":"number"},"type":"dynamic"}`, cty.DynamicPseudoType},
		{`{"value":[1,2],"type":["tuple",["number"]]}`, cty.DynamicPseudoType}, {`{"value":[],"type":["tuple",[]]}`, cty.DynamicPseudoType},
		{`{"value":{"a":1},"type":["object",{"a":"strange"}]}`, cty.DynamicPseudoType}, {`{"value":{},"type":["object",[]]}`, cty.DynamicPseudoType},
		{`{"value":{"a":1},"type":["object",{"a":"number","b":"string"},["b"]]}`, cty.DynamicPseudoType},
		{`{"value":{"a":1},"type":["object",{"a":"number","b":"string"}]}`, cty.DynamicPseudoType},
		{`{"value":["1"],"type":["list","number"]}`, cty.DynamicPseudoType}, {`{"value":[1],"type":[["list"],"number"]}`, cty.DynamicPseudoType},
		{`{"value":null,"type":["tuple",["number"]]}`, cty.DynamicPseudoType}, {`{"value":1,"type":["list"]}`, cty.DynamicPseudoType},
		{`{"type":"string"}`, cty.DynamicPseudoType}, {`{"value":1,"type":"strange"}`, cty.DynamicPseudoType}, {`5`, cty.DynamicPseudoType},
		{`["a",1]`, cty.List(cty.String)}, {`[]`, cty.Set(cty.String)}, {`{}`, cty.Map(cty.String)}, {`{}`, cty.EmptyObject},
		{`{"extra":1}`, cty.EmptyObject}, {`[{"value":1,"type":"number"},{"value":"a","type":"string"}]`, cty.List(cty.DynamicPseudoType)},
		{`{"a":{"value":1,"type":"number"}}`, cty.Map(cty.DynamicPseudoType)},
		{`["a"`, cty.List(cty.String)}, {`"a" "b"`, cty.String}, {``, cty.String},
	}
	for _, c := range cases {
		compareDecoders(t, []byte(c.js), c.ty)
	}
}

func compareDecoders(t *testing.T, js []byte, ty cty.Type) {
	t.Helper()
	got, err := decodeAttributes(js, ty)
	want, wantErr := unmarshal(js, ty)
	// cty reads the first of several documents; a state never holds several.
	if (err == nil) != (wantErr == nil) || err == nil && !got.RawEquals(want) {
		t.Errorf("%s as %s: %#v, %v; cty has %#v, %v", js, ty.FriendlyName(), got, err, want, wantErr)
	}
}

// FuzzDynamic does the same with values that bring their types.
func FuzzDynamic(f *testing.F) {
	f.Add([]byte(`{"value":{"a":[1,"x",null,{"k":true}]},"type":["object",{"a":["tuple",["number","string","bool",["map","bool"]]]}]}`))
	f.Add([]byte(`{"value":[["b","a"],["b"]],"type":["list",["set","string"]]}`))
	f.Add([]byte(`{"value":[{"value":1,"type":"number"}],"type":["tuple",["dynamic"]]}`))
	f.Fuzz(func(t *testing.T, js []byte) {
		compareDecoders(t, js, cty.DynamicPseudoType)
	})
}
