package redact

import (
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

func TestEchoes(t *testing.T) {
	schema := &providers.ResourceSchema{Block: &providers.Block{
		Attributes: map[string]*providers.Attribute{"password": {Type: cty.String, Sensitive: true}, "said": {Type: cty.DynamicPseudoType}},
		Blocks: map[string]*providers.NestedBlock{"user": {Nesting: providers.Set, Block: &providers.Block{Attributes: map[string]*providers.Attribute{
			"name": {Type: cty.String}, "key": {Type: cty.String, Sensitive: true}}}}},
	}}
	user := func(name, key string) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name), "key": cty.StringVal(key)})
	}
	v := cty.ObjectVal(map[string]cty.Value{
		"password": cty.StringVal("hunter2"),
		"user":     cty.SetVal([]cty.Value{user("root", "key-of-root"), user("guest", "abc")}),
		"token":    cty.ObjectVal(map[string]cty.Value{"pin": cty.NumberIntVal(1234567), "t": cty.StringVal("four")}),
		"said": cty.ObjectVal(map[string]cty.Value{
			"same": cty.StringVal("hunter2"), "within": cty.StringVal("https://u:hunter2@host"), "open": cty.StringVal("root"), "short": cty.StringVal("abc"),
			"list": cty.TupleVal([]cty.Value{cty.StringVal("x"), cty.StringVal("key-of-root"), cty.NumberIntVal(1234567)}),
			"set":  cty.SetVal([]cty.Value{cty.StringVal("a"), cty.StringVal("hunter2")}), "four": cty.StringVal("four"), "fourteen": cty.StringVal("fourteen"),
			"map": cty.MapVal(map[string]cty.Value{"k": cty.StringVal("hunter2")}), "later": cty.UnknownVal(cty.String), "none": cty.NullVal(cty.String),
		}),
	})
	var got []string
	for _, p := range Echoes(v, schema, []cty.Path{cty.GetAttrPath("token")}) {
		got = append(got, providers.PathString(p))
	}
	slices.Sort(got)
	want := []string{"said.four", "said.list[1]", "said.list[2]", `said.map["k"]`, "said.same", "said.set", "said.within"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if found := Echoes(v, nil, nil); found != nil {
		t.Errorf("of nothing sensitive there are the echoes %v", found)
	}
}
