package ps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// restore puts the server at a cut; see wire.Restore. from is the coordinator's
// connection; an error ends it.
func (s *Server) restore(ctx context.Context, r wire.Restore, initial []float32, from *link) (wire.Answer, error) {
	s.mu.Lock()
	refused := s.begins(r.Term)
	s.mu.Unlock()
	if refused != nil {
		return *refused, nil
	}
	n := r.To - r.From
	if r.From < 0 || n <= 0 || n > wire.MaxBody {
		return wire.Answer{Error: fmt.Sprintf("span [%d, %d) is not one", r.From, r.To)}, nil
	}
	if err := checkGroup(r.Group, n); err != nil {
		return wire.Answer{Error: err.Error()}, nil
	}
	for _, v := range r.Vars {
		if v.Offset < 0 || v.Len < 0 || v.Offset > n-v.Len {
			return wire.Answer{Error: fmt.Sprintf("variable %s does not lie in the span", v.Name)}, nil
		}
	}
	vectors := make([][]float32, 1+r.Recipe.Slots())
	if len(r.Parts) == 0 && r.Source == "" {
		if len(initial) != n {
			return wire.Answer{Error: fmt.Sprintf("%d initial values for a span of %d", len(initial), n)}, nil
		}
		vectors[0] = initial
	}
	for i := range vectors {
		if vectors[i] == nil {
			vectors[i] = make([]float32, n)
		}
	}
	switch {
	case r.Source != "":
		if a, err := (Member{s}).fetch(ctx, r, vectors); err != nil || a != (wire.Answer{}) {
			return a, err
		}
	case len(r.Parts) == 0:
	case s.place == nil:
		if a, err := from.takePieces(vectors); err != nil || a != (wire.Answer{}) {
			return a, err
		}
	default:
		if err := s.place.Load(ctx, r.Checkpoint, r.Parts, r.From, r.To, vectors); err != nil {
			return wire.Answer{Error: err.Error(), Damaged: errors.Is(err, checkpoint.ErrDamaged)}, nil
		}
	}
	return s.adopt(r, vectors), nil
}

// adopt makes loaded vectors the server's state.
func (s *Server) adopt(r wire.Restore, vectors [][]float32) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.begins(r.Term); refused != nil { // another one came while the files were read
		return *refused
	}
	stopFollowing(s)
	installVectors(s, point{r.Term, r.Version}, r.From, r.Vars, vectors)
	s.exact = r.Exact
	layOut(s, r.Group, r.Vars)
	s.crowd = s.workers
	s.limitCores()
	s.changed.ring()
	s.log.Info("restored", "term", s.term, "version", s.version, "from", r.From, "to", r.To)
	s.note(s.version, spec.Event{Type: spec.EventRestore})
	return wire.Answer{}
}

// installVectors makes vectors the server's parameters and slots, in place of all that it had.
// Called with mu held.
func installVectors(s *Server, at point, from int, vars []model.Var, vectors [][]float32) {
	s.term, s.version, s.from, s.vars = at.term, at.version, from, vars
	s.values, s.slots, s.present = &vector{v: vectors[0]}, nil, new(version)
	s.spans.freed.ring() // buffers of before have another length, or may still be read
	for _, v := range vectors[1:] {
		s.slots = append(s.slots, &vector{v: v})
	}
	abandonFollowers(s, "the member's parameters were replaced")
	for id := range s.pending {
		s.drop(id)
	}
	clear(s.void)
	clear(s.coming)
	clear(s.failed)
	s.sum, s.decided, s.past, s.snapshot = nil, nil, nil, nil
	s.resident = resident{replica: s.resident.replica}
}

// begins checks that a restore begins a term: each term has one. Called with mu
// held.
func (s *Server) begins(term int64) *wire.Answer {
	if a := s.checkTerm(term); a != nil {
		return a
	}
	if term <= s.term {
		a := refuse("was restored in term %d already", s.term)
		return &a
	}
	return nil
}

// takePieces asks for the values of a checkpoint that the server cannot reach
// itself, and receives them.
func (l *link) takePieces(vectors [][]float32) (wire.Answer, error) {
	if err := l.answer(wire.Answer{Send: true}); err != nil {
		return wire.Answer{}, err
	}
	return receivePieces(l.Conn, vectors)
}

// receivePieces receives whole vectors, piece by piece. An answer in place of a
// piece is returned.
func receivePieces(l *wire.Conn, vectors [][]float32) (a wire.Answer, err error) {
	for got := 0; ; {
		m, err := l.Receive(0)
		if err != nil {
			return wire.Answer{}, err
		}
		var p wire.Piece
		if m.Type == wire.TypeAnswer {
			err := m.Decode(&a)
			return a, err
		}
		if m.Type != wire.TypePiece {
			return wire.Answer{}, fmt.Errorf("%s came among the values of vectors", m.Type)
		}
		if err := m.Decode(&p); err != nil {
			return wire.Answer{}, err
		}
		switch {
		case p.Error != "":
			return wire.Answer{Error: p.Error}, nil
		case p.Last && got != len(vectors)*len(vectors[0]):
			return wire.Answer{Error: fmt.Sprintf("%d values came for %d vectors of %d", got, len(vectors), len(vectors[0]))}, nil
		case p.Last:
			return wire.Answer{}, nil
		case p.Vector < 0 || p.Vector >= len(vectors) || p.Offset < 0 || p.Offset > len(vectors[0])-m.Values:
			return wire.Answer{}, fmt.Errorf("%d values for element %d of vector %d do not fit", m.Values, p.Offset, p.Vector)
		}
		if err := l.Body(m, vectors[p.Vector][p.Offset:p.Offset+m.Values]); err != nil {
			return wire.Answer{}, err
		}
		got += m.Values
	}
}

// keep takes a snapshot. Nothing is copied before an update changes it.
func (s *Server) keep(c wire.CutRequest) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.checkPoint(c.Term, c.Version)
	if a == nil {
		a = s.resident.fetch(s)
	}
	if a != nil {
		return *a
	}
	s.letSnapshotGo(s.snapshot)
	s.snapshot = holdAll(s)
	return wire.Answer{}
}

// write saves the last snapshot, or sends it to whoever can; training goes on
// meanwhile. An error ends the connection.
func (s *Server) write(ctx context.Context, w wire.Write, to *link) (wire.Answer, error) {
	s.mu.Lock()
	c := s.snapshot
	var refused *wire.Answer
	if s.group == nil || c == nil || c.term != w.Term { // a later group may have begun with the same parameters
		refused = s.checkTerm(w.Term)
	}
	if refused == nil && c != nil {
		s.snapshot = nil // ours alone until it is written
		s.writing++
	}
	s.mu.Unlock()
	if refused != nil {
		return *refused, nil
	}
	if c == nil {
		return refuse("nothing was cut"), nil
	}
	defer func() {
		s.mu.Lock()
		s.writing--
		s.letSnapshotGo(c)
		s.spans.freed.ring()
		s.mu.Unlock()
	}()
	if s.place == nil {
		part, err := to.sendPieces(w.Part, c)
		return wire.Answer{Part: part}, err
	}
	part, err := s.place.Save(ctx, w.Checkpoint, w.Part, c.from, c.vectors())
	if err != nil {
		return wire.Answer{Error: err.Error()}, nil
	}
	return wire.Answer{Part: part}, nil
}

// sendPieces sends a snapshot and says what it was.
func (l *link) sendPieces(name string, c *snapshot) (checkpoint.Part, error) {
	sum := checkpoint.NewSum()
	vectors := c.vectors()
	for vector, v := range vectors {
		offset := 0
		for piece := range slices.Chunk(v, wire.PieceValues) {
			sum.Add(piece)
			if err := l.Send(wire.TypePiece, wire.Piece{Vector: vector, Offset: offset}, piece); err != nil {
				return checkpoint.Part{}, err
			}
			offset += len(piece)
		}
	}
	return checkpoint.Part{Name: name, From: c.from, To: c.from + len(vectors[0]), Vectors: len(vectors), SHA256: sum.String()}, nil
}
