package ps

import (
	"context"
	"slices"

	"github.com/stokehq/stoke/runtime/wire"
)

// A worker that is not a member of the group yet takes over the parameters of a member
// while the group makes updates: it follows the member. The member sends stretches of its
// parameters and slots, each as it is at that moment, and between them the sums of each
// update that it makes, as far as the stretches that it has sent before. The follower makes
// these updates as the member did: what it has in the end is the same to the last bit.

// A follower may lack as many updates as have lagValues sums together: 64 MiB. The number of
// updates has limits, too: with a vector of more than lagValues/leastLag values the followers
// of a member take leastLag vectors of memory, or one more while the oldest one is sent.
const (
	lagValues = 16 << 20
	leastLag  = 4
	mostLag   = 1024
)

// stretches is how many stretches a vector has at most: with each update a follower gets
// at least one, so that it has all of them after as many updates.
const stretches = 64

// stretchOf returns how many values of each vector a follower gets at a time.
func stretchOf(n int) int { return piece * max(1, (n+piece*stretches-1)/(piece*stretches)) }

// follower is a worker that follows this member. The server's mu guards it.
type follower struct {
	queue   []madeUpdate
	sending *vector       // sums that are being sent; nil: none are
	news    chan struct{} // something was added to queue, or why was set
	why     string        // the member cannot be followed any longer; "": it can
	sent    []int64       // versions of the stretches that were sent
}

// madeUpdate is an update that a follower lacks, or the beginning of a term.
type madeUpdate struct {
	wire.MadeUpdate
	sums *vector       // nil: it was skipped
	at   *wire.Applied // of a term's beginning; nil: it is an update
}

// ring tells the follower's sender of a change. Called with mu held.
func (f *follower) ring() {
	select {
	case f.news <- struct{}{}:
	default: // it has not seen the one before
	}
}

// abandonFollowers ends the following of this member. Called with mu held.
func abandonFollowers(s *Server, why string) {
	for f := range s.followers {
		f.why = why
		f.clear(s)
		f.ring()
	}
}

// clear forgets the updates that a follower lacks. Called with mu held.
func (f *follower) clear(s *Server) {
	for _, m := range f.queue {
		s.letGo(m.sums)
	}
	f.queue = nil
}

// countUnsent returns how many buffers have sums that a follower lacks, or that are being sent
// to it. Followers share the buffers. Called with mu held.
func countUnsent(s *Server) int {
	unsent := make(map[*vector]bool)
	for f := range s.followers {
		unsent[f.sending] = true
		for _, m := range f.queue {
			unsent[m.sums] = true
		}
	}
	delete(unsent, nil) // of skipped updates and of terms
	return len(unsent)
}

// tellFollowers adds an update that was made just now to what each follower lacks, and
// gives the buffer of its sums back once it is sent. Called with mu held.
func tellFollowers(s *Server, r *sum, a wire.Apply) {
	sums := r.whole
	defer s.letGo(sums)
	if r.resident {
		abandonFollowers(s, "the updates are made on the member's device")
	}
	a.Term, a.Version, a.Taken = s.term, s.version, r.taken
	most := min(max(lagValues/max(1, len(s.values.v)), leastLag), mostLag)
	for f := range s.followers {
		switch {
		case f.why != "":
			continue
		case len(f.queue) >= most:
			f.why = "the follower lacks too many updates: it does not receive them as fast as the group makes them"
			f.clear(s)
		default:
			m := madeUpdate{MadeUpdate: wire.MadeUpdate{Apply: a, Weight: r.weight}}
			if !a.Skip {
				m.sums = sums.hold()
			}
			f.queue = append(f.queue, m)
		}
		f.ring()
	}
}

// tellFollowersTerm lets the followers know that a term has begun with the parameters that
// they have. Called with mu held.
func tellFollowersTerm(s *Server) {
	for f := range s.followers {
		f.queue = append(f.queue, madeUpdate{at: &wire.Applied{Term: s.term, Version: s.version}})
		f.ring()
	}
}

// lead sends this member's parameters, slots and updates to a follower, until one of
// them ends.
func (m Member) lead(ctx context.Context, l *link, request wire.Fetch) error {
	s := m.Server
	f := &follower{news: make(chan struct{}, 1)}
	var refused *wire.Answer
	s.mu.Lock()
	switch {
	case s.term == 0 || s.group == nil:
		a := refuse("it has no parameters")
		refused = &a
	case len(s.slots) != request.Slots:
		a := refuse("it has %d slots, not %d", len(s.slots), request.Slots)
		refused = &a
	case len(s.values.v) != request.Values:
		a := refuse("it has %d values, not %d", len(s.values.v), request.Values)
		refused = &a
	case s.resident.current:
		a := refuse("its updates are made on its device")
		refused = &a
	default:
		if s.followers == nil {
			s.followers = make(map[*follower]bool)
		}
		s.followers[f] = true
	}
	s.mu.Unlock()
	if refused != nil {
		return l.answer(*refused)
	}
	defer func() {
		s.mu.Lock()
		f.clear(s)
		delete(s.followers, f)
		s.mu.Unlock()
	}()
	for {
		before := len(f.sent)
		if done, err := f.sendUpdate(s, l); done || err != nil {
			return err
		}
		if err := f.sendStretch(s, l); err != nil {
			return err
		}
		s.mu.Lock()
		waits := len(f.queue) == 0 && f.why == "" && len(f.sent) == before
		s.mu.Unlock()
		if !waits {
			continue
		}
		select {
		case <-f.news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendUpdate sends the oldest update that the follower lacks, if there is one. It reports
// whether the member cannot be followed any longer.
func (f *follower) sendUpdate(s *Server, l *link) (done bool, err error) {
	s.mu.Lock()
	why := f.why
	var next madeUpdate
	some := len(f.queue) > 0
	if some {
		next, f.queue = f.queue[0], f.queue[1:]
		f.sending = next.sums
	}
	n := len(s.values.v)
	s.mu.Unlock()
	switch {
	case why != "":
		return true, l.answer(refuse("%s", why))
	case !some:
		return false, nil
	case next.at != nil:
		return false, l.Send(wire.TypePiece, wire.Piece{At: next.at}, nil)
	case next.sums == nil:
		return false, l.Send(wire.TypeMadeUpdate, next.MadeUpdate, nil)
	}
	defer func() {
		s.mu.Lock()
		f.sending = nil
		s.letGo(next.sums)
		s.mu.Unlock()
	}()
	covered, _ := slices.BinarySearch(f.sent, next.Version+1) // the later stretches have the update
	return false, l.Send(wire.TypeMadeUpdate, next.MadeUpdate, next.sums.v[:min(n, covered*stretchOf(n))])
}

// sendStretch sends the next stretch of parameters and slots as they are now, if there is
// one. It copies the stretch with mu held: a 64th of each vector, or one piece of it where
// that is more.
func (f *follower) sendStretch(s *Server, l *link) error {
	s.mu.Lock()
	n := len(s.values.v)
	from := len(f.sent) * stretchOf(n)
	if from >= n || f.why != "" {
		s.mu.Unlock()
		return nil
	}
	to := min(n, from+stretchOf(n))
	var vectors [][]float32
	for _, v := range vectorsOf(s) {
		vectors = append(vectors, slices.Clone(v.v[from:to]))
	}
	at := &wire.Applied{Term: s.term, Version: s.version}
	f.sent = append(f.sent, s.version)
	s.mu.Unlock()
	for i, v := range vectors {
		offset := from
		for part := range slices.Chunk(v, wire.PieceValues) {
			if err := l.Send(wire.TypePiece, wire.Piece{Vector: i, Offset: offset, At: at}, part); err != nil {
				return err
			}
			offset += len(part)
		}
	}
	return nil
}
