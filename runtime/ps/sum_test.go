package ps

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/wire"
)

// bounded runs updates of so many blocks through a server that holds a snapshot
// meanwhile, and returns it. The snapshot is given back by done.
func bounded(t *testing.T, s *Server, blocks int64, done func()) {
	t.Helper()
	s.meet("a", 1)
	s.meet("b", 1)
	if a := s.keep(wire.CutRequest{Term: 3, Version: 10}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	release := s.snapshot
	s.mu.Lock()
	s.snapshot = nil
	s.writing++
	s.mu.Unlock()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for { // training has come to wait for the checkpoint, or has not
			s.mu.Lock()
			stalled := s.stalls > 0 || s.version > 11
			s.mu.Unlock()
			if stalled {
				break
			}
			time.Sleep(time.Millisecond)
		}
		done()
		s.mu.Lock()
		s.writing--
		s.letSnapshotGo(release)
		s.spans.freed.ring()
		s.mu.Unlock()
	}()
	id := int64(0)
	for version := int64(10); version < 13; version++ {
		weight := 0.0
		var rest []int64
		for range blocks {
			id++
			weight++
			p := push(id, true, version)
			s.mu.Lock()
			s.room(1, nil)
			b := s.sums.take()
			s.mu.Unlock()
			if a := s.take(p, b); a != (wire.Answer{}) {
				t.Fatal(a)
			}
			rest = append(rest, id)
		}
		p := wire.Prepare{Term: 3, Version: version, IDs: rest, Weight: weight, Alone: &recipe}
		if a := s.prepare(context.Background(), p); a.Error != "" || a.Refused != "" {
			t.Fatalf("%+v", a)
		}
	}
	<-written
}

// A checkpoint that is being written, moments and all, costs no memory beyond
// what a server may use: training waits for it where it must.
func TestCheckpointsStayWithinTheBound(t *testing.T) {
	const workers, slots = 2, 1
	for _, blocks := range []int64{1, 2, 3, 2 * workers} {
		s := restored(t, io.Discard)
		bounded(t, s, blocks, func() {})
		if n := s.Vectors(); n > 3+slots+2*workers {
			t.Errorf("%d blocks: %d vectors, want at most %d", blocks, n, 3+slots+2*workers)
		}
		if s.snapshot != nil || s.read() > 0 {
			t.Errorf("%d blocks: something is still held", blocks)
		}
	}
}

// What is saved is the version that was kept, whatever training does meanwhile.
func TestSnapshotStaysAsItIs(t *testing.T) {
	s := restored(t, io.Discard)
	if a := s.keep(wire.CutRequest{Term: 3, Version: 10}); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	kept := s.snapshot
	for version := int64(10); version < 13; version++ {
		if a := s.take(push(version, true, version), []float32{1, 1, 1, 1}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		s.prepare(context.Background(), wire.Prepare{Term: 3, Version: version, IDs: []int64{version}, Weight: 1, Alone: &recipe})
	}
	if was := kept.vectors(); was[0][0] != 1 || was[1][0] != 0 || s.values.v[0] == 1 || s.slots[0].v[0] == 0 {
		t.Errorf("kept %v; now %v and %v", was, s.values.v, s.slots[0].v)
	}
	if n := s.Vectors(); n > 5 { // both twice; pushes that are given back are used
		t.Errorf("%d vectors", n)
	}
}
