package ps

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/wire"
)

// group is the members of an all-reduce, as one of them knows them. Each member
// holds all parameters and slots, and all of them make the same update. A member
// adds up the contributions of its share of the vector, and gets the sums of the
// other shares from the other members. The server's mu guards it.
type group struct {
	wire.Group
	n     int         // values of the vector
	whole *vector     // the sums of the update that is under way, share by share; nil: there are none yet
	here  []bool      // the shares that are in it, by member
	left  int         // shares that are not
	sent  *vector     // the newest sums: the others pull this member's share; nil: the next sums are under way
	made  *version    // that share as a frame
	next  int64       // the version that an update with these sums makes
	norms []float64   // of the pieces of this member's share
	told  [][]float64 // the norms that came with the shares of the others, by member
	due   []bool      // the members that have not received it, as far as this one knows
	owed  int         // how many they are
	free  bell        // they are none
	merge *merge      // the sums of this member's share that are made as they arrive; nil: they are not
}

// newGroup returns the group of a term that begins.
func newGroup(g *wire.Group, n int) *group {
	if g == nil {
		return nil
	}
	members := len(g.Members)
	return &group{Group: *g, n: n, here: make([]bool, members), left: members, due: make([]bool, members), free: make(bell),
		told: make([][]float64, members)}
}

// extendPatience gives another member of the group the time that it needs where it shares
// this machine's cores with many others. Called with mu held.
func extendPatience(s *Server, l *link) {
	if g := s.group; g != nil {
		if d := g.Patience(g.Mine, runtime.NumCPU()); d > wire.Silence {
			l.SetPatience(d)
		}
	}
}

// checkGroup reports whether a group can be the one of a vector of n values.
func checkGroup(g *wire.Group, n int) error {
	if g != nil && (g.Mine < 0 || g.Mine >= len(g.Members) || n < 0) {
		return fmt.Errorf("member %d of a group of %d", g.Mine, len(g.Members))
	}
	return nil
}

// width returns how many values a contribution has.
func (g *group) width() int {
	from, to := g.Share(g.n, g.Mine)
	return to - from
}

// open returns where the sums of a member's share belong, once it is the update's turn: the
// former sums were sent to all members. Called with mu held.
func (g *group) open(s *Server, member int) []float32 {
	if g.whole == nil {
		s.letGo(g.sent)
		g.sent, g.whole = nil, &vector{v: s.spans.take(), held: 1}
	}
	from, to := g.Share(g.n, member)
	return g.whole.v[from:to:to]
}

// awaitTurn waits until the sums of the update that makes a version can be received or made:
// the update before it is made, and its sums were sent to all members. So no sums are lost,
// however far a member is behind the others: the earlier updates of that member do not depend
// on the later ones of this one. False: the update is past, or closed was closed. Called with
// mu held, which awaitTurn releases while it waits.
func awaitTurn(s *Server, term, version int64, closed <-chan struct{}) bool {
	for s.term == term && s.fence == term && s.version < version {
		g, free := s.group, bell(nil)
		if g != nil {
			free = g.free
		}
		if s.version+1 == version && (g == nil || g.whole != nil || g.owed == 0) {
			return true
		}
		changed := s.changed
		s.mu.Unlock()
		over := false
		select {
		case <-free:
		case <-changed:
		case <-closed:
			over = true
		}
		s.mu.Lock()
		if over {
			return false
		}
	}
	return false
}

// settle notes that a member has this member's share of the newest sums, or does not need it.
func (g *group) settle(member int) {
	if member >= 0 && g.due[member] {
		g.due[member] = false
		if g.owed--; g.owed == 0 {
			g.free.ring()
		}
	}
}

// arrived notes that a share is whole.
func (g *group) arrived(member int) {
	if !g.here[member] {
		g.here[member] = true
		g.left--
	}
}

// publish lets the other members pull this member's share of the sums and its norms: each of
// them has received the former ones.
func (g *group) publish(r *sum, next int64) {
	g.sent, g.made, g.next, g.norms = g.whole.hold(), new(version), next, r.ownNorms(g.n)
	for i := range g.due {
		g.due[i] = i != g.Mine
	}
	g.owed = len(g.due) - 1
	g.arrived(g.Mine)
}

// begin is called once an update is made: the next one has no shares yet.
func (g *group) begin() {
	g.whole, g.merge, g.left = nil, nil, len(g.Members)
	clear(g.here)
	clear(g.told)
}

// combine gives this member's share of the sums to the other members, and waits
// for theirs. It returns an answer where the update cannot be made. Called with mu
// held, which combine releases while it waits.
func (s *Server) combine(ctx context.Context, p wire.Prepare) *wire.Answer {
	g, r := s.group, s.sum
	if g == nil {
		return nil
	}
	if g.Whole {
		r.whole = g.whole
		g.begin()
		return nil
	}
	g.publish(r, p.Version+1)
	s.changed.ring()
	for sent := false; g.left > 0 || !sent; sent = true {
		changed, arrived := s.changed, s.arrived
		s.mu.Unlock()
		if !sent { // on one core, the computation of the next lease would keep the sums from being sent
			runtime.Gosched()
		} else {
			select {
			case <-changed:
			case <-arrived:
			case <-ctx.Done():
			}
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			a := refuse("the member ends")
			return &a
		}
		if a := s.checkPoint(p.Term, p.Version); a != nil {
			return a
		}
		if s.group != g {
			a := refuse("the group has changed")
			return &a
		}
	}
	r.whole = g.whole
	for i, norms := range g.told {
		from, to := g.Share(g.n, i)
		r.takeNorms(from, to, norms)
	}
	g.begin()
	return nil
}

// shareFor returns this member's share of the sums of an update, for the member of that
// address, which has received the updates before it; known reports whether there is an
// answer. Called with mu held.
func (s *Server) shareFor(p wire.Pull, address string) (a pulled, known bool) {
	a.head = wire.Values{Term: p.Term}
	if a.refused = s.checkTerm(p.Term); a.refused != nil {
		return a, true
	}
	g := s.group
	if p.Term < s.term {
		why := refuse("term is %d", s.term)
		a.refused = &why
		return a, true
	}
	if p.Term > s.term || g == nil || g.sent == nil {
		return a, false
	}
	if p.Version > g.next { // less than g.next after skipped updates
		g.settle(slices.Index(g.Members, address))
		return a, false
	}
	from, to := g.Share(g.n, g.Mine)
	a.head.Version, a.head.From, a.head.Norms = g.next, from, g.norms
	a.held, a.values, a.made = g.sent.hold(), g.sent.v[from:to], g.made
	return a, true
}

// Member is a server as the worker of the same process uses it, in an all-reduce:
// it holds the parameters of that worker, and the worker's connections to the
// other members bring the sums.
type Member struct{ *Server }

// Group returns the group of the present term, and a channel that is closed when
// anything has changed. Without a group the term is 0.
func (m Member) Group() (g wire.Group, at wire.Applied, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.group == nil || m.term != m.fence {
		return g, at, m.changed
	}
	return m.group.Group, wire.Applied{Term: m.term, Version: m.version}, m.changed
}

// Hold returns the parameters of a version, which stay as they are until release
// is called; nil: the worker's device has them. Without release, past reports whether
// they will not come, and changed is closed when that may be another one.
func (m Member) Hold(term, version int64) (values []float32, release func(), past bool, changed <-chan struct{}) {
	s := m.Server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case term < s.term || term == s.term && version < s.version || term < s.fence:
		return nil, nil, true, nil
	case term > s.term || version > s.version:
		return nil, nil, false, s.changed
	case s.resident.current:
		return nil, func() {}, false, nil
	}
	v := s.values.hold()
	return v.v, func() {
		s.mu.Lock()
		s.letGo(v)
		s.mu.Unlock()
	}, false, nil
}

// Contribute takes this worker's own contribution to the share that its member adds
// up, in parts that follow one another; nil: its sums are on the worker's device. Where lent
// is not nil, the member does not copy the only part, and calls lent once it has no use for it.
func (m Member) Contribute(p wire.Push, parts [][]float32, lent func()) wire.Answer {
	s := m.Server
	s.mu.Lock()
	if parts == nil && s.resident.sole(s) {
		s.mu.Unlock()
		return s.take(p, nil)
	}
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	if p.Term != s.term || s.term != s.fence || n != s.sums.length {
		s.mu.Unlock()
		if lent != nil {
			lent()
		}
		return s.refuseUnread(p)
	}
	if lent != nil {
		s.mu.Unlock()
		s.own.Add(1)
		return accept(s, &contribution{Push: p, sums: parts[0], lent: lent})
	}
	sums := s.sums.take()
	s.mu.Unlock()
	at := 0
	for _, part := range parts {
		at += copy(sums[at:], part)
	}
	return s.take(p, sums)
}

// Room returns where the sums of another member's share belong that are about to be
// read, after it waited for their turn, unless closed is closed before; nil: they are not
// needed. Done reports whether the update is still under way: sums of an update that was
// decided meanwhile do not count for the next one.
func (m Member) Room(v wire.Values, values int, closed <-chan struct{}) (into []float32, done func() (counts bool)) {
	s := m.Server
	s.mu.Lock()
	defer s.mu.Unlock()
	if !awaitTurn(s, v.Term, v.Version, closed) || s.group == nil {
		return nil, nil
	}
	g, at := s.group, s.version
	for i := range g.Members {
		from, to := g.Share(g.n, i)
		if i == g.Mine || g.here[i] || from != v.From || to-from != values {
			continue
		}
		return g.open(s, i), func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.group != g || s.version != at {
				return false
			}
			g.arrived(i)
			g.told[i] = v.Norms
			s.arrived.ring()
			return true
		}
	}
	return nil, nil
}

// answer answers another member that begins to take part.
func (m Member) answer(ctx context.Context, l *link, msg *wire.Message) error {
	if msg.Type != wire.TypeFetch {
		return l.answer(wire.Answer{Error: "a member may not ask for " + msg.Type.String()})
	}
	var f wire.Fetch
	if err := msg.Decode(&f); err != nil {
		return err
	}
	redeemPromises(m.Server)
	if f.Follow {
		return m.lead(ctx, l, f)
	}
	s := m.Server
	c, refused := m.awaitTerm(ctx, f)
	if refused != nil {
		return l.answer(*refused)
	}
	defer func() {
		s.mu.Lock()
		s.letSnapshotGo(c)
		s.mu.Unlock()
	}()
	if _, err := l.sendPieces("", c); err != nil {
		return err
	}
	return l.Send(wire.TypePiece, wire.Piece{Last: true}, nil)
}

// awaitTerm waits until the server has begun a term, and keeps its parameters and
// slots as they are then.
func (m Member) awaitTerm(ctx context.Context, f wire.Fetch) (*snapshot, *wire.Answer) {
	s := m.Server
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if a := s.checkTerm(f.Term); a != nil {
			return nil, a
		}
		if s.term == f.Term {
			a := s.checkPoint(f.Term, f.Version)
			if a == nil {
				a = s.resident.fetch(s)
			}
			if a != nil {
				return nil, a
			}
			return holdAll(s), nil
		}
		changed := s.changed
		s.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		s.mu.Lock()
		if err != nil {
			a := refuse("%v", err)
			return nil, &a
		}
	}
}

// holdAll keeps parameters and slots as they are. Called with mu held.
func holdAll(s *Server) *snapshot {
	c := &snapshot{term: s.term, from: s.from}
	for _, v := range vectorsOf(s) {
		c.held = append(c.held, v.hold())
	}
	return c
}

// fetch receives parameters and slots from another member.
func (m Member) fetch(ctx context.Context, r wire.Restore, vectors [][]float32) (wire.Answer, error) {
	failed := func(err error) (wire.Answer, error) {
		return refuse("member %s does not send its parameters: %v", r.Source, err), nil
	}
	conn, err := m.credentials.Dial(ctx, r.Source, wire.Hello{Role: wire.RoleMember, Index: m.index})
	if err != nil {
		return failed(err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Send(wire.TypeFetch, wire.Fetch{Term: r.Term, Version: r.Version}, nil); err != nil {
		return failed(err)
	}
	a, err := receivePieces(conn, vectors)
	if err == nil && a != (wire.Answer{}) {
		err = fmt.Errorf("%s%s", a.Error, a.Refused)
	}
	if err != nil {
		return failed(err)
	}
	return wire.Answer{}, nil
}

// layOut makes the server's pools and pieces for the vector that it holds from now
// on. Called with mu held.
func layOut(s *Server, g *wire.Group, vars []model.Var) {
	n := len(s.values.v)
	s.group, s.spans, s.vars = newGroup(g, n), newPool(n), vars
	s.sums = s.spans
	if s.group != nil && !s.group.Whole {
		s.sums = newPool(s.group.width())
	}
	s.pieces = piecesOf(vars, n)
}

// piecesOf returns the variables of each piece of a vector of n values.
func piecesOf(vars []model.Var, n int) (pieces [][]model.Var) {
	for at := 0; at < n; at += piece {
		pieces = append(pieces, model.Slice(vars, at, min(at+piece, n)))
	}
	return pieces
}
