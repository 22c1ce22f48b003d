package plan

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
)

// TestImportWithoutSecrets: an import is told no argument that holds something sensitive or ephemeral.
func TestImportWithoutSecrets(t *testing.T) {
	inner := cty.MapVal(map[string]cty.Value{"a": cty.StringVal("s").Mark(lang.Sensitive), "b": cty.StringVal("b")})
	config := cty.ObjectVal(map[string]cty.Value{"plain": cty.StringVal("p"), "inner": inner, "token": cty.StringVal("t").Mark(lang.Ephemeral)})
	value, marked, _ := lang.Unmark(config)
	want := cty.ObjectVal(map[string]cty.Value{"plain": cty.StringVal("p"), "inner": cty.NullVal(cty.Map(cty.String)), "token": cty.NullVal(cty.String)})
	if got := withoutSecrets(value, marked); !got.RawEquals(want) {
		t.Errorf("%#v", got)
	}
	whole, marked, _ := lang.Unmark(cty.ObjectVal(map[string]cty.Value{"plain": cty.StringVal("p")}).Mark(lang.Sensitive))
	if got := withoutSecrets(whole, marked); got != cty.NilVal {
		t.Errorf("of a sensitive configuration: %#v", got)
	}
}
