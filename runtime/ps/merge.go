package ps

import (
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/wire"
)

// merge is the sum of an update's two contributions in a group of two members, made while the
// other member's contribution arrives: each part of that one is in the processor's caches then.
type merge struct {
	room    wire.Room // of the other contribution, which has no memory of its own
	sum     *sum
	own     *contribution
	other   int64
	version int64 // that the update follows
	made    bool  // all of the other contribution has come
}

// beginMerge begins a merge with a contribution that is about to be read, if it is the only one
// that a waiting request lacks, and the update's turn has come; nil: it needs a buffer. Called
// with mu held.
func beginMerge(s *Server, p wire.Push) *merge {
	g, request := s.group, s.awaited
	if g == nil || len(g.Members) != 2 || g.Whole || g.merge != nil || g.whole == nil && g.owed > 0 {
		return nil
	}
	if request == nil || len(request.IDs) != 2 {
		return nil
	}
	i := slices.Index(request.IDs, p.ID)
	if i < 0 || request.Term != s.term || request.Version != s.version || p.Version != s.version || s.void[p.ID] || s.pending[p.ID] != nil {
		return nil
	}
	own := s.pending[request.IDs[1-i]]
	if own == nil || own.sums == nil || !own.Exact || !p.Exact {
		return nil
	}
	m := &merge{sum: newSum(s), own: own, other: p.ID, version: s.version}
	m.sum.weight = own.Weight + p.Weight // for the norms; add counts it again
	whole, pieces := g.whole.v, s.pieces
	from, to := g.Share(g.n, g.Mine)
	m.room = wire.Room{Into: whole[from:to:to], Ends: cutShare(from, to), Here: func(a, b int) {
		optimizer.Add(whole[from+a:from+b], whole[from+a:from+b], own.sums[a:b])
		m.sum.findNorms(whole, pieces, from+a, from+b)
	}}
	g.merge, own.busy = m, true
	return m
}

// cutShare returns the ends of the parts of a contribution to this member's share that are read
// at a time: some pieces of the vector, which are added up, and their norms found, while they are
// in the processor's caches.
func cutShare(from, to int) (ends []int) {
	const part = 4 * piece
	for end := (from/part + 1) * part; end < to; end += part {
		ends = append(ends, end-from)
	}
	return append(ends, to-from)
}

// end ends a merge, whose contribution has come or is lost. It reports whether the sum counts.
func (m *merge) end(s *Server, came bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.own.busy = false; m.own.unwanted {
		m.own.giveBack(s)
	}
	here := s.group != nil && s.group.merge == m // else the term or the update is over
	m.made = came && here && s.version == m.version && !m.own.unwanted
	if here && !m.made {
		s.group.merge = nil
	}
	return m.made
}

// takeMerge returns the sum of these contributions where it is made already, and why an update
// of them cannot be made. Called with mu held.
func takeMerge(s *Server, ids []int64) (r *sum, why string) {
	if s.group == nil || s.group.merge == nil {
		return nil, ""
	}
	m := s.group.merge
	named := slices.Contains(ids, m.other)
	switch {
	case !m.made:
		return nil, fmt.Sprintf("contribution %d is on its way", m.other)
	case named && (len(ids) != 2 || !slices.Contains(ids, m.own.ID)):
		return nil, fmt.Sprintf("contribution %d was added to contribution %d", m.other, m.own.ID)
	}
	s.group.merge = nil
	if !named { // the sum of other contributions takes its memory
		s.drop(m.other)
		return nil, ""
	}
	m.sum.weight, m.sum.merged = 0, true
	return m.sum, ""
}
