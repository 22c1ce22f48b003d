package kube

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// A flag that is left out is what the caller says, which false is not.
func TestFlag(t *testing.T) {
	s := schema.Schema{Attributes: map[string]schema.Attribute{"on": schema.BoolAttribute{Optional: true}}}
	for _, c := range []struct {
		value              any
		otherwise, on, yet bool
	}{
		{nil, false, false, false},
		{nil, true, true, false},
		{false, false, false, false},
		{false, true, false, false},
		{true, false, true, false},
		{true, true, true, false},
		{tftypes.UnknownValue, true, false, true},
	} {
		raw := tftypes.NewValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"on": tftypes.Bool}},
			map[string]tftypes.Value{"on": tftypes.NewValue(tftypes.Bool, c.value)})
		r := &reader{ctx: t.Context(), config: tfsdk.Config{Schema: s, Raw: raw}, known: true}
		if on := r.flag("on", c.otherwise); on != c.on || r.known == c.yet || r.diags.HasError() {
			t.Errorf("%v, otherwise %v: %v, known %v, %v", c.value, c.otherwise, on, r.known, r.diags)
		}
	}
}
