package view

import (
	"encoding/json"
	"testing"

	"github.com/stokehq/stoke/modules/lang"
)

// TestFunctionsJSON makes sure that every function of the language is told,
// twice, with a description.
func TestFunctionsJSON(t *testing.T) {
	text, err := FunctionsJSON(lang.Functions(""))
	if err != nil {
		t.Fatal(err)
	}
	var got jsonFunctions
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Signatures) != 2*118 {
		t.Errorf("%d signatures", len(got.Signatures))
	}
	for name, f := range got.Signatures {
		if f.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	for name, want := range map[string]string{
		"upper": `"string"`, "try": `"dynamic"`, "can": `"bool"`, "core::cidrsubnets": `["list","string"]`, "format": `"dynamic"`, "merge": `"dynamic"`,
	} {
		if returned := string(got.Signatures[name].ReturnType); returned != want {
			t.Errorf("%s returns %s, not %s", name, returned, want)
		}
	}
	if p := got.Signatures["contains"].Parameters[1]; p.Name != "value" || p.IsNullable {
		t.Errorf("contains: %+v", p)
	}
}
