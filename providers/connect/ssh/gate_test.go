package ssh

import (
	"context"
	"errors"
	"testing"
)

// TestGate has a machine refuse the fourth of four: from then on there are
// three at a time, and the fourth comes in once another has left.
func TestGate(t *testing.T) {
	g := gate{limit: maxSessions, changed: make(chan struct{})}
	for range 4 {
		if err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	in := make(chan error)
	go func() { in <- g.tighten(t.Context()) }()
	waitUntil(t, "the refused one has left", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.inside == 3 && g.limit == 3 })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := g.enter(ctx); err == nil || err.Error() != "enough" {
		t.Errorf("a fourth comes in: %v", err)
	}
	g.exit()
	if err := <-in; err != nil {
		t.Error(err)
	}
	for range 3 {
		g.exit()
	}
	// Whoever is refused alone has nobody to wait for.
	if err := g.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.tighten(t.Context()); err != nil || g.limit != 3 || g.inside != 1 {
		t.Errorf("%v, %d of %d inside", err, g.inside, g.limit)
	}
	// One that gives up while it waits leaves the count right.
	g.limit = 0
	if err := g.tighten(ctx); err == nil || g.inside != 1 {
		t.Errorf("%v, %d inside", err, g.inside)
	}
}
