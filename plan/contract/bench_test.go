package contract

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// Shaped like terraform_data, which the engine's own benchmarks plan by the
// ten thousand.
func BenchmarkSmallResource(b *testing.B) {
	schema := &providers.Block{Attributes: attrs{
		"id":               {Type: cty.String, Computed: true},
		"input":            {Type: cty.DynamicPseudoType, Optional: true},
		"output":           {Type: cty.DynamicPseudoType, Computed: true},
		"triggers_replace": {Type: cty.DynamicPseudoType, Optional: true},
	}}
	null := cty.NullVal(cty.DynamicPseudoType)
	config := cty.ObjectVal(vals{"id": cty.NullVal(cty.String), "input": str("x"), "output": null, "triggers_replace": null})
	state := cty.ObjectVal(vals{"id": str("1"), "input": str("x"), "output": str("x"), "triggers_replace": null})
	planned := cty.ObjectVal(vals{"id": unknown, "input": str("x"), "output": cty.DynamicVal, "triggers_replace": null})
	b.Run("Proposed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Proposed(schema, state, config)
		}
	})
	b.Run("CheckPlanned", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			CheckPlanned(schema, cty.NullVal(cty.DynamicPseudoType), config, planned)
		}
	})
	b.Run("CheckApplied", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			CheckApplied(schema, planned, state)
		}
	})
}
