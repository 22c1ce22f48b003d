package coordinator

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/spec"
)

// adamSpec has an optimizer of two slots, whose updates depend on their number
// and their rate on the records before them.
func adamSpec() spec.Spec {
	s := pointsSpec()
	s.Deterministic, s.LearningRate, s.Optimizer.Name = true, 0.05, spec.OptimizerAdamW
	s.Optimizer.WeightDecay = 0.01
	s.Schedule = spec.Schedule{Name: spec.ScheduleCosine, WarmupEpochs: 0.5}
	return s
}

// A run that stops and goes on with slots of a checkpoint ends with the bits of
// one that was not disturbed, also where servers get the slots from the coordinator.
func TestAdamGoesOnFromACheckpoint(t *testing.T) {
	s := adamSpec()
	s.ParameterServer.Replicas = 2
	b := newBench(t, s, linear{size: 3 * 1000})
	if st := b.run(); st.Phase != spec.Succeeded || st.Step != 36 {
		t.Fatalf("status %+v", st)
	}
	want := b.partHashes()
	for _, stream := range []bool{false, true} {
		between := func(b *bench, newest string) {
			m, err := b.options.Checkpoints.Manifest(t.Context(), newest)
			if err != nil || m.Recipe.Name != spec.OptimizerAdamW || m.Parts[0].Vectors != 3 {
				t.Errorf("checkpoint of %+v in parts %+v (%v)", m.Recipe, m.Parts, err)
			}
		}
		got, _ := halfAndHalfOf(t, adamSpec(), stream, 2, between)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("servers without a place %v: %s", stream, diff)
		}
	}
}

// The number of an update and its rate are those of the run, not of the
// coordinator: a skipped update has no number.
func TestRecipeOfNext(t *testing.T) {
	c := newBench(t, adamSpec(), linear{}).opened()
	u := &update{workers: 1}
	u.End = 50
	for _, tt := range []struct {
		version, skipped int64
		epochs           int
		step             int64
		rate             float64
	}{
		{0, 0, 0, 1, 0.05 * 50 / 300},
		{24, 3, 2, 22, 0.05 * (1 + math.Cos(0.6*math.Pi)) / 2}, // after 0.5 of 3 epochs, 1.5 are 0.6 of the way
	} {
		var err error
		c.version, c.skipped = tt.version, tt.skipped
		if c.book, err = ledger.Load(c.records(), tt.epochs, nil); err != nil {
			t.Fatal(err)
		}
		if r := recipeOfNext(c, u, 0, 0); r.Step != tt.step || math.Abs(float64(r.LearningRate)-tt.rate) > 1e-8 || r.Validate() != nil {
			t.Errorf("recipe %+v, want rate %g of update %d", r, tt.rate, tt.step)
		}
	}
}

// A gradient is clipped by the norm of all of it, wherever its parts lie.
func TestClippingOfAllServers(t *testing.T) {
	trained := func(clip float64, servers int) []float32 {
		s := pointsSpec()
		s.ClipNorm, s.ParameterServer.Replicas, s.Optimizer.Momentum = clip, servers, 0.5
		b := newBench(t, s, linear{size: 6})
		if st := b.run(); st.Phase != spec.Succeeded {
			t.Fatalf("status %+v", st)
		}
		return b.parameters()
	}
	apart := func(a, b []float32) (most float64) {
		for i, x := range a {
			most = max(most, math.Abs(float64(x-b[i])))
		}
		return most
	}
	one, free := trained(0.05, 1), trained(0, 1)
	if d := apart(one, trained(0.05, 3)); d > 1e-5 {
		t.Errorf("parameters of three servers are %g apart from those of one", d)
	}
	if d := apart(one, free); d < 0.01 {
		t.Errorf("without clipping, parameters are %g apart", d)
	}
}
