package filetest

import (
	"testing"

	"github.com/stokehq/stoke/providers"
)

func BenchmarkFile(b *testing.B) {
	w := newWorld(b)
	config := w.config(vals{"content": str("c")})
	b.Run("Validate", func(b *testing.B) {
		for b.Loop() {
			w.p.ValidateResource(b.Context(), fileType, config)
		}
	})
	b.Run("Plan", func(b *testing.B) {
		for b.Loop() {
			w.p.Plan(b.Context(), providers.PlanRequest{Type: fileType, Prior: w.null(), Proposed: config, Config: config})
		}
	})
	state := w.make("op", vals{"content": str("c")})
	b.Run("Read", func(b *testing.B) {
		for b.Loop() {
			w.read(b.Context(), state)
		}
	})
	b.Run("CreateAndDelete", func(b *testing.B) {
		plan := w.p.Plan(b.Context(), providers.PlanRequest{Type: fileType, Prior: w.null(), Proposed: with(config, vals{"name": str("z")}), Config: config})
		for b.Loop() {
			r := w.p.Apply(call(b, "op-z"), providers.ApplyRequest{Type: fileType, Prior: w.null(), Planned: plan.Planned, Config: config, Private: plan.Private})
			w.p.Apply(call(b, "op-z"), providers.ApplyRequest{Type: fileType, Prior: r.State, Planned: w.null(), Config: w.null()})
		}
	})
}
