package ps

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// presence reports whether a coordinator is connected, and whether it has ended
// the server.
type presence struct {
	mu        sync.Mutex
	connected int
	since     time.Time // the last one went, or the server was made
	dismissed chan wire.Leave
}

func newPresence() presence {
	return presence{since: time.Now(), dismissed: make(chan wire.Leave, 1)}
}

func (p *presence) countConnected() {
	p.mu.Lock()
	p.connected++
	p.mu.Unlock()
}

func (p *presence) countDisconnected() {
	p.mu.Lock()
	p.connected--
	p.since = time.Now()
	p.mu.Unlock()
}

// timeAlone is how long there has been no coordinator.
func (p *presence) timeAlone() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.connected > 0 {
		return 0
	}
	return time.Since(p.since)
}

func (p *presence) dismiss(how wire.Leave) {
	select {
	case p.dismissed <- how:
	default: // it was told before
	}
}

// leave rejects a request to end that comes from an older term.
func (s *Server) leave(how wire.Leave) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.checkTerm(how.Term); a != nil {
		return *a
	}
	return wire.Answer{}
}

// Await waits for the end of the server's process, and returns the reason: the
// coordinator ended it, there was no coordinator for longer than patience (0 =
// for ever), or ctx is done.
func (s *Server) Await(ctx context.Context, patience time.Duration) wire.Leave {
	var tick <-chan time.Time
	if patience > 0 {
		ticker := time.NewTicker(max(patience/20, time.Millisecond))
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case how := <-s.presence.dismissed:
			return how
		case <-tick:
			if s.presence.timeAlone() > patience {
				return wire.Leave{End: spec.EndNoCoordinator, Reason: fmt.Sprintf("no coordinator has connected for %v", patience)}
			}
		case <-ctx.Done():
			return wire.Leave{End: spec.EndAsked, Reason: "asked to leave"}
		}
	}
}
