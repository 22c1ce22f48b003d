package redact

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
)

func TestSecretsRedact(t *testing.T) {
	var s Secrets
	s.AddValue(cty.ObjectVal(map[string]cty.Value{
		"open":   cty.StringVal("open text"),
		"key":    cty.StringVal("hunter2").Mark(lang.Sensitive),
		"longer": cty.StringVal("hunter2 and more").Mark(lang.Ephemeral),
		"quoted": cty.StringVal("a \"b\"\nc").Mark(lang.Sensitive),
		"pin":    cty.NumberIntVal(17).Mark(lang.Sensitive),
		"list":   cty.ListVal([]cty.Value{cty.StringVal("in a list")}).Mark(lang.Sensitive),
		"later":  cty.UnknownVal(cty.String).Mark(lang.Sensitive),
		"none":   cty.NullVal(cty.String).Mark(lang.Sensitive),
	}), true)
	for in, want := range map[string]string{
		"it is hunter2.":                    "it is (sensitive value).",
		"it is hunter2 and more.":           "it is (sensitive value).",
		`it is "a \"b\"\nc".`:               `it is (sensitive value).`,
		"it is {\"x\":\"a \\\"b\\\"\\nc\"}": `it is {"x":(sensitive value)}`,
		`17 of "17"`:                        `17 of (sensitive value)`, // a number may be any number
		"open text in a list":               "open text (sensitive value)",
	} {
		if got := s.Redact(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestWithoutSecrets(t *testing.T) {
	ctx := &hcl.EvalContext{Functions: lang.Functions("."), Variables: map[string]cty.Value{
		"var": cty.ObjectVal(map[string]cty.Value{"pin": cty.StringVal("abc").Mark(lang.Sensitive), "open": cty.StringVal("xyz")}),
		"thing": cty.ObjectVal(map[string]cty.Value{"one": cty.ObjectVal(map[string]cty.Value{
			"input": cty.StringVal("abc").Mark(lang.Sensitive), "output": cty.StringVal("abc"), "other": cty.StringVal("xyz"),
			"list": cty.TupleVal([]cty.Value{cty.StringVal("abc")})})}),
	}}
	for text, want := range map[string]bool{
		"tonumber(var.pin)": false, "tonumber(var.open)": true, "tonumber(\"0x${var.pin}\")": true /* too short to be told from a word */, "[for x in [var.pin] : tonumber(x)]": false,
		"tonumber(thing.one.output)": false, "tonumber(thing.one.other)": true, "tonumber(thing.one.list[0])": false} {
		expr, diags := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		_, diags = expr.Value(ctx)
		before := diags[0].Detail
		got := WithoutSecrets(diags)[0].Detail
		if shown := strings.Contains(got, "abc") || strings.Contains(got, "xyz"); shown != want {
			t.Errorf("%s: %q becomes %q", text, before, got)
		}
	}
}
