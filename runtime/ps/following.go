package ps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/wire"
)

// following is the parameters that this server takes over from a member of a group
// which it follows. They are apart from its own ones until it becomes a member. The
// server's mu guards it.
type following struct {
	vars     []model.Var
	pieces   [][]model.Var
	vectors  [][]float32 // parameters and slots
	sums     []float32   // of the update that is being received
	got      int         // values of all vectors that were received
	versions []int64     // of the stretches; -1: it is not here
	at       point
	decided  *decision   // about the newest update
	past     []wire.Past // the updates before that one
	made     int64       // version that the newest received update has made; 0: none was received
	changed  bell
	stop     context.CancelFunc
	over     bool // no update will be received any more
}

// isWhole reports whether all parameters and slots are here, of one version, and what is
// remembered of the updates ends with that version.
func (w *following) isWhole() bool {
	if w.made != 0 && w.made != w.at.version || w.got != len(w.vectors)*len(w.vectors[0]) {
		return false
	}
	return !slices.ContainsFunc(w.versions, func(v int64) bool { return v != w.at.version })
}

// findFollowed returns the parameters that are taken over, where they are whole and newer
// than the server's own ones; nil: they are not. Called with mu held.
func findFollowed(s *Server) *following {
	w := s.following
	if w == nil || !w.isWhole() || w.at.term < s.term || w.at.term == s.term && w.at.version <= s.version {
		return nil
	}
	return w
}

// stopFollowing forgets the parameters that are taken over. Called with mu held.
func stopFollowing(s *Server) {
	if w := s.following; w != nil {
		s.following = nil
		w.stop()
		w.changed.ring()
	}
}

// follow follows a member, until this server becomes a member itself or the other one
// ends. It answers the coordinator once all is here.
func (m Member) follow(ctx context.Context, l *link, f wire.Follow) error {
	s := m.Server
	n, stretch := f.Values, stretchOf(f.Values)
	if n <= 0 || n > wire.MaxBody || f.Slots < 0 || f.Slots > maxSlots {
		return l.answer(wire.Answer{Error: fmt.Sprintf("%d values with %d slots are not a vector", n, f.Slots)})
	}
	for _, v := range f.Vars {
		if v.Offset < 0 || v.Len < 0 || v.Offset > n-v.Len {
			return l.answer(wire.Answer{Error: fmt.Sprintf("variable %s does not lie in the vector", v.Name)})
		}
	}
	w := &following{
		vars: f.Vars, pieces: piecesOf(f.Vars, n), vectors: make([][]float32, 1+f.Slots), sums: make([]float32, n),
		versions: slices.Repeat([]int64{-1}, (n+stretch-1)/stretch), changed: make(bell),
	}
	for i := range w.vectors {
		w.vectors[i] = make([]float32, n)
	}
	ctx, w.stop = context.WithCancel(ctx)
	defer w.stop()
	s.mu.Lock()
	refused := s.checkTerm(f.Term)
	if refused == nil {
		stopFollowing(s)
		s.following = w
	}
	s.mu.Unlock()
	if refused != nil {
		return l.answer(*refused)
	}
	told := false
	err := m.receiveUpdates(ctx, f, w, func() {
		told = true
		_ = l.answer(wire.Answer{}) // a coordinator that has ended has a successor
	})
	s.mu.Lock()
	w.over = true
	w.changed.ring()
	if s.following == w && !w.isWhole() {
		s.following = nil
	}
	s.mu.Unlock()
	s.log.Info("it follows the member no longer", "source", f.Source, "error", err)
	if told {
		return nil
	}
	return l.answer(tellTerm(s, refuse("member %s cannot be followed: %v", f.Source, err)))
}

// followTime is the longest silence of a member that is followed, and the longest that a
// term waits for its last updates.
const followTime = 10 * time.Second

// maxSlots is how many slots an optimizer has at most.
const maxSlots = 8

// receiveUpdates receives parameters, slots and updates from a member, and calls whole the
// first time that all is here.
func (m Member) receiveUpdates(ctx context.Context, f wire.Follow, w *following, whole func()) error {
	conn, err := m.credentials.Dial(ctx, f.Source, wire.Hello{Role: wire.RoleMember, Index: m.index})
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetPatience(m.patience)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Send(wire.TypeFetch, wire.Fetch{Follow: true, Values: f.Values, Slots: f.Slots}, nil); err != nil {
		return err
	}
	for told := false; ; {
		msg, err := conn.Receive(0)
		if err != nil {
			return err
		}
		switch msg.Type {
		case wire.TypePiece:
			err = m.takePiece(conn, msg, w)
		case wire.TypeMadeUpdate:
			err = m.takeUpdate(conn, msg, w)
		case wire.TypeAnswer:
			var a wire.Answer
			if err = msg.Decode(&a); err == nil {
				err = errors.New(a.Error + a.Refused)
			}
		default:
			err = fmt.Errorf("it sent %s", msg.Type)
		}
		if err != nil {
			return err
		}
		m.mu.Lock()
		now := !told && w.isWhole()
		m.mu.Unlock()
		if now {
			told = true
			whole()
		}
	}
}

// takePiece reads a part of a stretch, or learns that a term has begun.
func (m Member) takePiece(conn *wire.Conn, msg *wire.Message, w *following) error {
	var p wire.Piece
	if err := msg.Decode(&p); err != nil {
		return err
	}
	n := len(w.vectors[0])
	if p.At == nil || p.Vector < 0 || p.Vector >= len(w.vectors) || p.Offset < 0 || p.Offset > n-msg.Values {
		return fmt.Errorf("%d values for element %d of vector %d do not fit", msg.Values, p.Offset, p.Vector)
	}
	if msg.Values > 0 { // nothing else uses these values before the vectors are whole
		if err := conn.Body(msg, w.vectors[p.Vector][p.Offset:p.Offset+msg.Values]); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if msg.Values > 0 {
		w.versions[p.Offset/stretchOf(n)] = p.At.Version
		w.got += msg.Values
	}
	if msg.Values == 0 || w.at.term == 0 {
		w.at.term = p.At.Term
	}
	w.at.version = max(w.at.version, p.At.Version)
	w.changed.ring()
	return nil
}

// takeUpdate reads the sums of an update, and makes it on the stretches that lack it.
func (m Member) takeUpdate(conn *wire.Conn, msg *wire.Message, w *following) error {
	var made wire.MadeUpdate
	if err := msg.Decode(&made); err != nil {
		return err
	}
	n := len(w.sums)
	if msg.Values > n {
		return fmt.Errorf("%d sums of a vector of %d values", msg.Values, n)
	}
	sums := w.sums[:msg.Values]
	if err := conn.Body(msg, sums); err != nil {
		return err
	}
	if err := made.Recipe.Validate(); err != nil && !made.Skip {
		return err
	}
	if !made.Skip && made.Recipe.Slots() >= len(w.vectors) {
		return errors.New("the optimizer needs slots that were not sent")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.following != w {
		return errors.New("it is not followed any longer")
	}
	if len(sums) > 0 {
		w.update(made, sums)
	}
	for i, v := range w.versions {
		if v == made.Version && (made.Skip || i*stretchOf(n) < len(sums)) {
			w.versions[i]++
		}
	}
	taken := made.Taken
	made.Taken = nil
	w.at = point{made.Term, max(w.at.version, made.Version+1)}
	w.past = appendPast(w.past, w.decided) // stretches may be ahead of the updates
	w.decided, w.made = &decision{made.Apply, taken}, made.Version+1
	w.changed.ring()
	return nil
}

// update makes an update on the stretches that lack it. Called with mu held.
func (w *following) update(made wire.MadeUpdate, sums []float32) {
	stretch := stretchOf(len(w.sums))
	spread(len(sums), func(i, from, to int) {
		if w.versions[from/stretch] != made.Version {
			return
		}
		slots := make([][]float32, len(w.vectors)-1)
		for k, v := range w.vectors[1:] {
			slots[k] = v[from:to]
		}
		vector := w.vectors[0][from:to]
		optimizer.UpdateScaled(vector, vector, slots, sums[from:to], made.Weight, w.pieces[i], made.Recipe, made.Scale)
	})
}

// takeOver makes the parameters that were taken over the server's own ones, where an
// attachment is about them: it waits for the last updates of the member. Called with mu
// held, which it gives up meanwhile.
func takeOver(s *Server, a wire.Attach) *wire.Answer {
	w := findFollowed(s)
	if w == nil || a.Group == nil || s.term == a.Held && s.version == a.Version {
		return nil
	}
	late := time.NewTimer(s.patience)
	defer late.Stop()
	for waits := true; waits && s.following == w && !w.over && (!w.isWhole() || w.at.version < a.Version); {
		changed := w.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-late.C:
			waits = false
		}
		s.mu.Lock()
	}
	if refused := s.begins(a.Term); refused != nil {
		return refused
	}
	known := w.at.term == a.Held || w.at.term == a.Term // the member may have begun the term already
	ok := s.following == w && w.isWhole() && known && w.at.version == a.Version
	stopFollowing(s)
	if !ok {
		answer := refuse("followed a member to version %d of term %d, not to %d of %d", w.at.version, w.at.term, a.Version, a.Held)
		return &answer
	}
	installVectors(s, point{a.Held, a.Version}, 0, w.vars, w.vectors)
	s.exact, s.decided, s.past = true, w.decided, w.past
	return nil
}
