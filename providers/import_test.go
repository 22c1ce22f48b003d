package providers

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestImportedTimeouts: an imported object has the declared timeouts, whatever its provider says, and an argument that is only
// called so is the provider's.
func TestImportedTimeouts(t *testing.T) {
	limits := func(create cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"create": create, "delete": cty.NullVal(cty.String)})
	}
	object := func(timeouts cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("n"), "timeouts": timeouts})
	}
	none, hour := cty.NullVal(limits(cty.StringVal("")).Type()), limits(cty.StringVal("1h"))
	fact := cty.ObjectVal(map[string]cty.Value{"connect": cty.StringVal("5s")})
	for name, test := range map[string]struct{ state, config, want cty.Value }{
		"declared":        {none, hour, hour},
		"none declared":   {hour, none, none},
		"not known yet":   {none, limits(cty.UnknownVal(cty.String)), none},
		"a fact":          {cty.NullVal(fact.Type()), fact, cty.NullVal(fact.Type())},
		"a number":        {cty.NumberIntVal(5), cty.NumberIntVal(6), cty.NumberIntVal(5)},
		"of another type": {none, cty.StringVal("1h"), none},
	} {
		if got := withTimeouts(object(test.state), object(test.config)); !got.RawEquals(object(test.want)) {
			t.Errorf("%s: %#v", name, got)
		}
	}
	if got := withTimeouts(object(none), cty.NilVal); !got.RawEquals(object(none)) {
		t.Errorf("without a configuration: %#v", got)
	}
}
