package coordinator

import (
	"math"
	"testing"

	"github.com/stokehq/stoke/runtime/model"
)

// A metric that is not a mean follows from the merged sums.
func TestPerplexityFollowsFromSums(t *testing.T) {
	metric := func(name string) float64 {
		s := pointsSpec()
		s.Epochs = 1
		b := newBench(t, s, linear{})
		b.options.Workload.Model.Metrics = []string{name}
		return b.run().Metrics[name]
	}
	accuracy, perplexity := metric(model.Accuracy), metric(model.Perplexity)
	// The engine of this test sums correct answers, whatever the metric is.
	if accuracy <= 0 || math.Abs(perplexity-math.Exp(accuracy)) > 1e-12 {
		t.Errorf("perplexity %v of a mean of %v", perplexity, accuracy)
	}
}
