package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// stage puts the lease's next batch on the device, once it is read, unless it is
// there.
func (s *session) stage(ctx context.Context, b *batch) error {
	if b.staged != nil || b.err != nil {
		return b.err
	}
	if b.part == nil || b.part.err == nil && b.at == len(b.part.batches) {
		b.recycle()
		select {
		case b.part = <-b.parts:
		case <-ctx.Done():
		}
		if b.part == nil { // reading ends early only with ctx
			return context.Cause(ctx)
		}
	}
	if b.part.err != nil {
		return readError{fmt.Errorf("read records: %w", b.part.err)}
	}
	var err error
	next := &b.part.batches[b.at]
	b.count = len(next.Weights) / s.micro
	if b.staged, err = s.replica.Stage(ctx, next, nil); err != nil {
		return fmt.Errorf("stage records: %w", err)
	}
	return nil
}

// take returns the batch that is staged, how many micro-batches it has, and whether it
// is the last one of the lease.
func (b *batch) take() (staged engine.Staged, count int, last bool) {
	staged, b.staged = b.staged, nil
	b.at++
	return staged, b.count, b.part.last && b.at == len(b.part.batches)
}

// unstage gives back what is on the device and was not computed.
func (b *batch) unstage() {
	if b.staged != nil {
		b.staged.Release()
		b.staged = nil
	}
}

// recycle gives a part back whose micro-batches were all staged, or will not
// be.
func (b *batch) recycle() {
	if b.part != nil {
		b.spare <- b.part // never blocks: it has room for all there are
		b.part, b.at = nil, 0
	}
}

// stageNext stages the next micro-batch while the present step runs: the next
// one of the lease, or the first one of another lease, if that is read. wait
// returns once it is staged: a replica allows Stage only during a step.
func (s *session) stageNext(ctx context.Context, b *batch, last bool) (wait func()) {
	if last {
		b = s.following()
	}
	if b == nil || b.staged != nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.err = s.stage(ctx, b)
	}()
	return func() { <-done }
}

// following is the lease that will be computed next, if its first records are
// there.
func (s *session) following() *batch {
	for more := true; more; {
		select {
		case b := <-s.batches:
			s.wait(b)
		default:
			more = false
		}
	}
	var next *batch
	for _, b := range s.waiting {
		if next == nil || s.hasParameters(b) && !s.hasParameters(next) {
			next = b
		}
	}
	if next == nil || next.part != nil {
		return next
	}
	select {
	case next.part = <-next.parts:
	default:
	}
	if next.part == nil {
		return nil
	}
	return next
}

// unstage gives back what is staged of leases that wait.
func (s *session) unstage() {
	for _, b := range s.waiting {
		b.unstage()
	}
}

// revoked are leases that were taken back while the worker may have had them.
type revoked struct {
	mu  sync.Mutex
	ids map[int64]bool
}

// maxRevoked bounds the revocations that came too late.
const maxRevoked = 1000

func (r *revoked) add(l wire.Revoke) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil || len(r.ids) >= maxRevoked {
		r.ids = make(map[int64]bool) // a lease that is computed in vain does no harm
	}
	r.ids[l.ID] = true
}

// take reports whether a lease was taken back, and forgets it.
func (r *revoked) take(lease int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.ids[lease]
	delete(r.ids, lease)
	return was
}

// dropRevoked gives up the leases that were taken back.
func (s *session) dropRevoked() {
	s.revoked.mu.Lock()
	defer s.revoked.mu.Unlock()
	if len(s.revoked.ids) == 0 {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(b *batch) bool {
		if !s.revoked.ids[b.ID] {
			return false
		}
		delete(s.revoked.ids, b.ID)
		s.releaseBatch(b)
		return true
	})
}
