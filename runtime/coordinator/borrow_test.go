package coordinator

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// borrowing is an engine whose replicas compute in memory of their caller, and slowly.
type borrowing struct {
	engine.Engine
	t      *testing.T
	places *atomic.Int64 // passes in memory of the caller
	kept   *atomic.Int64 // passes whose sums stay on the device
}

func (e borrowing) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := e.Engine.Build(m, o)
	if err != nil {
		return nil, err
	}
	return &borrower{Updater: r.(engine.Updater), lender: engine.BorrowerOf(r), engine: e}, nil
}

type borrower struct {
	engine.Updater
	lender engine.Borrower
	engine borrowing
	placed bool // sums are in memory of the caller
}

func (b *borrower) BorrowSums(sums []float32) error {
	b.placed = sums != nil
	return b.lender.BorrowSums(sums)
}

func (b *borrower) BorrowParameters(values []float32) error { return b.lender.BorrowParameters(values) }

func (b *borrower) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	if p.Keep && b.placed {
		b.engine.t.Error("sums that stay on the device are in memory that another member may read")
	}
	if p.Keep {
		b.engine.kept.Add(1)
	}
	if p.Last && b.placed {
		b.engine.places.Add(1)
	}
	time.Sleep(200 * time.Microsecond)
	return b.Updater.Step(ctx, s, p)
}

// Members come and go while their replicas compute in memory of the holder and of each other: a
// deterministic run has the bits of an undisturbed one, and another run is near it.
func TestMembersComeAndGoInBorrowedMemory(t *testing.T) {
	const epochs = 20
	train := func(s spec.Spec, disturbed bool) []float32 {
		t.Helper()
		s.MicroBatch = s.BatchSize / 2 // one for each member: more of them make a tree
		b := unserved(t, s, linear{size: 4})
		hidden(b, 1500)
		var places, kept atomic.Int64
		b.engine, b.spaced = borrowing{b.engine, t, &places, &kept}, 15
		b.serve()
		var st spec.Status
		if disturbed {
			st = disturb(t, b, 10)
		} else {
			st = b.run()
		}
		if st.Phase != spec.Succeeded || st.Records != 600*epochs {
			t.Fatalf("status %+v", st)
		}
		if places.Load() == 0 {
			t.Error("no lease was computed in memory of the caller")
		}
		if disturbed && !s.Deterministic && kept.Load() == 0 {
			t.Error("no group had one member")
		}
		first := true
		for _, e := range b.lines() {
			if e.Type != spec.EventRestore {
				continue
			}
			if !first && !strings.HasPrefix(e.Message, "attached to ") {
				t.Errorf("it went back: %+v", e)
			}
			first = false
		}
		return b.parameters()
	}
	s := reduceSpec(2, epochs)
	want := train(s, false)
	if hashed(train(s, true), 0) != hashed(want, 0) {
		t.Error("a disturbed deterministic run has other bits")
	}
	s.Deterministic = false
	near(t, "a disturbed run", want, train(s, true), 1e-3)
}
