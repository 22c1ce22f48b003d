package coordinator

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// withoutLoss is an engine one of whose leases has a loss that is not a number, and finite
// gradients.
type withoutLoss struct {
	engine.Engine
	at     int64 // number of the lease, from 1
	leases *atomic.Int64
}

func (e withoutLoss) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := e.Engine.Build(m, o)
	if err != nil {
		return nil, err
	}
	return replicaWithoutLoss{r.(engine.Updater), e}, nil
}

type replicaWithoutLoss struct {
	engine.Updater
	e withoutLoss
}

func (r replicaWithoutLoss) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	result, err := r.Updater.Step(ctx, s, p)
	if err == nil && p.Last && r.e.leases.Add(1) == r.e.at {
		result.Loss = math.NaN()
	}
	return result, err
}

// An update of whose leases one has no finite loss is skipped on the device as well: the
// worker stays, and the term too.
func TestDeviceSkipsUpdatesWithoutLoss(t *testing.T) {
	for _, c := range []struct {
		batch, leases int
		at            int64
	}{{4, 1, 3}, {50, 2, 5}, {50, 2, 6}} {
		t.Run(fmt.Sprintf("lease %d, %d for an update", c.at, c.leases), func(t *testing.T) {
			s := residentSpec(1, 2)
			s.BatchSize, s.MicroBatch = c.batch, 4
			b := unserved(t, s, linear{size: 4})
			layered(b)
			counts := count(b.engine)
			e := withoutLoss{counts, c.at, new(atomic.Int64)}
			b.engine = e
			b.serve()
			st := b.run()
			if st.Phase != spec.Succeeded || st.Records != 1200 {
				t.Fatalf("status %+v", st)
			}
			if n := e.leases.Load(); n != st.Step*int64(c.leases) {
				t.Errorf("%d leases in %d updates", n, st.Step)
			}
			skipped := []int64(nil)
			for _, l := range b.lines() {
				if l.Type == spec.EventUpdate && l.Skipped {
					skipped = append(skipped, l.Step)
				}
			}
			if want := (c.at + int64(c.leases) - 1) / int64(c.leases); len(skipped) != 1 || skipped[0] != want {
				t.Errorf("updates %v are skipped, want %d", skipped, want)
			}
			if n := counts.resident.Load(); n != st.Step-1 {
				t.Errorf("%d of %d updates on the device", n, st.Step)
			}
			if n, joined := len(b.restored()), strings.Count(b.logs.String(), "worker joined"); n != 1 || joined != 1 {
				t.Errorf("%d terms, and workers joined %d times", n, joined)
			}
		})
	}
}
