package coordinator

import (
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// Where updates are short, the members are asked for several of them in one request.
func TestZSeries(t *testing.T) {
	s := reduceSpec(2, 1000)
	s.BatchSize, s.MicroBatch, s.MaxSteps = 64, 32, 3000
	s.Evaluation.EverySteps, s.Checkpoint.EverySeconds = 0, 0
	b := newBench(t, s, linear{size: 1000})
	b.options.SeriesTime = time.Hour
	go func() {
		time.Sleep(90 * time.Second)
		panic("late")
	}()
	st := b.run()
	if st.Phase != spec.Succeeded || st.Step != 3000 {
		t.Fatalf("status %+v", st)
	}
}
