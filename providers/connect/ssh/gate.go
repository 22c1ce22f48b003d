package ssh

import (
	"context"
	"sync"
)

// gate lets so many through at a time, and learns to let fewer.
type gate struct {
	mu            sync.Mutex
	limit, inside int
	changed       chan struct{} // closed and replaced when a caller leaves
}

// enter waits for a place.
func (g *gate) enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		if g.inside < g.limit {
			g.inside++
			g.mu.Unlock()
			return nil
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	close(g.changed)
	g.changed = make(chan struct{})
}

// tighten is called by a login that the machine refused because of its limit of
// sessions: the limit becomes the number of the other logins. It waits until
// one of them has left. Without others there is nothing to wait for.
func (g *gate) tighten(ctx context.Context) error {
	g.mu.Lock()
	if g.inside > 1 {
		g.limit = max(1, g.inside-1)
	}
	g.mu.Unlock()
	g.exit()
	return g.enterAgain(ctx)
}

// enterAgain is enter for callers that leave in any case.
func (g *gate) enterAgain(ctx context.Context) error {
	if err := g.enter(ctx); err != nil {
		g.mu.Lock()
		g.inside++ // whoever called leaves once more
		g.mu.Unlock()
		return err
	}
	return nil
}
