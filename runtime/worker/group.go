package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// Holder holds all parameters of a member of an all-reduce, in the worker's own
// process. Its methods may be called by several goroutines.
type Holder interface {
	// Group returns the group of the present term with the term and the version
	// that the member is at, and a channel that is closed when anything has
	// changed. Without a group, the term is 0.
	Group() (g wire.Group, at wire.Applied, changed <-chan struct{})
	// Hold returns the parameters of a version, which stay as they are until
	// release is called; nil: the resident replica has them. Without release, past
	// reports whether they will not come, and changed is closed when that may be another one.
	Hold(term, version int64) (values []float32, release func(), past bool, changed <-chan struct{})
	// Contribute takes the worker's contribution to the member's own share; nil: its
	// sums are on the device of the resident replica. Where lent is not nil, the holder uses
	// the only part where it is, and calls lent in the end.
	Contribute(p wire.Push, parts [][]float32, lent func()) wire.Answer
	// Room returns where the sums of another member's share belong, once the holder has made
	// the update before; nil: they are not needed, or closed was closed. The caller calls done
	// once they have come; it reports whether the update is still under way.
	Room(v wire.Values, values int, closed <-chan struct{}) (into []float32, done func() (counts bool))
	// Reside names the replica where the holder makes the updates while the group has
	// one member; nil: none. Parameters that another replica had before are copied from
	// there first: they are lost with an error.
	Reside(r *engine.Resident) error
}

// group is the worker's way to the parameters in an all-reduce: an exchange. The
// worker gives each member its share of a contribution, and brings the sums of
// all shares to its holder, which makes the update.
type group struct {
	options Options
	session string
	holder  Holder
	came    chan struct{} // something has changed
	lost    chan struct{} // a member is gone

	mu     sync.Mutex
	term   int64              // of the group that is connected; 0: none is
	at     wire.Group         // that group
	links  map[string]*member // by address
	change chan struct{}      // is closed when term changes
	over   bool               // the session has ended

	lendable [2]*wire.Place // memory of sums that the holder borrows; nil: not made yet

	borrowed func() // lets the parameters go that the replica has borrowed; nil: it has not
}

// member is the connection to another member.
type member struct {
	address string
	conn    *wire.Conn
	flights chan *flight // pushes that are not answered yet, in their order
	gone    atomic.Bool
}

// newGroup returns the exchange of a session, which connects to the others in run.
func newGroup(o Options, session string) *group {
	return &group{options: o, session: session, holder: o.Holder, came: make(chan struct{}, 1), lost: make(chan struct{}, 1),
		links: make(map[string]*member), change: make(chan struct{})}
}

// run connects to the members of each term's group, and receives from them. The
// loss of a member does not end it: the coordinator begins another term.
func (g *group) run(ctx context.Context) error {
	receiving, listening := errgroup.WithContext(ctx)
	defer receiving.Wait() //nolint:errcheck // the members' ends are logged
	defer g.close()
	var since time.Time // a member of the present group cannot be reached
	for {
		next, at, changed := g.holder.Group()
		g.ring()
		var err error
		if at.Term != 0 && at.Term != g.connected() {
			err = g.connect(listening, receiving, next, at)
		}
		if err == nil {
			err = g.findBroken()
		}
		var again <-chan time.Time
		switch {
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			fallthrough
		case time.Since(since) < patienceWith(err, &next):
			again = time.After(firstPause)
		default:
			return unreachableError{err}
		}
		select {
		case <-changed:
		case <-again:
		case <-g.lost:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unreachableError is about a member that only this worker cannot reach.
type unreachableError struct{ error }

// memberError is about the connection to a member of the group.
type memberError struct {
	member int
	error
}

// patienceWith returns the time for another group to be formed after an error. Without one
// the worker leaves the session, and the others go on: of two members that cannot reach
// each other, the later one leaves.
func patienceWith(err error, in *wire.Group) time.Duration {
	var with memberError
	if !errors.As(err, &with) || with.member >= len(in.Members) { // of an earlier group
		return wire.MemberPatience
	}
	patience := in.Patience(with.member, runtime.NumCPU())
	if in.Mine < with.member {
		return 3 * patience
	}
	return patience
}

// findBroken returns an error for a member of the connected group that is gone.
func (g *group) findBroken() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, address := range g.at.Members {
		if m := g.links[address]; m != nil && m.gone.Load() {
			return memberError{i, fmt.Errorf("member %s is lost", address)}
		}
	}
	return nil
}

// ring tells of a change.
func (g *group) ring() {
	select {
	case g.came <- struct{}{}:
	default: // one is waiting already
	}
}

func (g *group) connected() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.term
}

// connect connects to the members of a group, and requests their sums of all updates
// to come.
func (g *group) connect(ctx context.Context, receiving *errgroup.Group, next wire.Group, at wire.Applied) error {
	keep := make(map[string]bool)
	for i, address := range next.Members {
		if i == next.Mine {
			continue
		}
		keep[address] = true
		g.mu.Lock()
		m := g.links[address]
		g.mu.Unlock()
		if m == nil || m.gone.Load() {
			hello := g.options.hello()
			hello.Session = g.session
			dialling, cancel := context.WithTimeout(ctx, next.Patience(i, runtime.NumCPU()))
			conn, err := g.options.Credentials.Dial(dialling, address, hello)
			cancel()
			if err != nil {
				return memberError{i, fmt.Errorf("connect to member %d: %w", i, err)}
			}
			m = &member{address: address, conn: conn, flights: make(chan *flight, maxFlights)}
			g.mu.Lock()
			g.links[address] = m
			g.mu.Unlock()
			m.conn.SetPatience(next.Patience(i, runtime.NumCPU()))
			receiving.Go(func() error { return g.listen(m) })
		}
		m.conn.SetPatience(next.Patience(i, runtime.NumCPU()))
		if next.Whole { // it needs no sums
			continue
		}
		if err := m.conn.Send(wire.TypePull, wire.Pull{Term: at.Term, Version: at.Version + 1, Have: -1, Follow: true}, nil); err != nil {
			m.conn.Close()
			return memberError{i, fmt.Errorf("ask member %d: %w", i, err)}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for address, m := range g.links {
		if !keep[address] {
			m.conn.Close()
			delete(g.links, address)
		}
	}
	g.term, g.at = at.Term, next
	close(g.change)
	g.change = make(chan struct{})
	return nil
}

// listen receives from one member until its connection ends. Pushes without an answer
// are then refused.
func (g *group) listen(m *member) error {
	err := g.receive(m)
	g.mu.Lock()
	wanted := !g.over && g.links[m.address] == m
	g.mu.Unlock()
	if wanted {
		g.options.Log.Warn("member lost", "address", m.address, "error", err)
	}
	m.gone.Store(true)
	m.conn.Close()
	m.refuse()
	select {
	case g.lost <- struct{}{}:
	default: // one is waiting already
	}
	return nil
}

// refuse refuses all pushes that the member has not answered.
func (m *member) refuse() {
	for {
		select {
		case f := <-m.flights:
			f.refused.Store(true)
			_ = f.land() // the session ends by itself where its coordinator is gone
		default:
			return
		}
	}
}

func (g *group) receive(m *member) error {
	for {
		msg, err := m.conn.Receive(0)
		if err != nil {
			return err
		}
		switch msg.Type {
		case wire.TypeAnswer:
			var a wire.Answer
			if err = msg.Decode(&a); err == nil && (!a.Quiet || a.Error != "") {
				_, err = takeAnswer(m.flights, a)
			}
		case wire.TypeValues:
			err = g.take(m, msg)
		default:
			err = fmt.Errorf("sent %s", msg.Type)
		}
		if err != nil {
			return err
		}
		g.ring()
	}
}

// take reads the sums of a share into the holder's buffer.
func (g *group) take(m *member, msg *wire.Message) error {
	var v wire.Values
	if err := msg.Decode(&v); err != nil {
		return err
	}
	var into []float32
	var done func() bool
	if v.Refused == "" {
		into, done = g.holder.Room(v, msg.Values, m.conn.Closed())
	}
	if into == nil {
		return m.conn.Skip(msg)
	}
	if err := m.conn.Body(msg, into); err != nil {
		return err
	}
	done() // if not, the update was decided, or connect has requested the sums of another term
	return nil
}

func (g *group) news() <-chan struct{} { return g.came }

func (g *group) hasArrived(v loaded) bool {
	_, release, past, _ := g.holder.Hold(v.term, v.version)
	if release != nil {
		release()
	}
	return release != nil || past
}

// request does nothing: every member makes every update.
func (g *group) request(loaded) error { return nil }

// reload does nothing: every pull fills the replica.
func (g *group) reload() {}

func (g *group) pull(ctx context.Context, r engine.Replica, want loaded, _ bool, has *loaded) error {
	if *has == want {
		return nil
	}
	for {
		values, release, past, changed := g.holder.Hold(want.term, want.version)
		switch {
		case past:
			return refusedError{"its version is past"}
		case release != nil:
			if err := g.load(r, values, release); err != nil {
				return fmt.Errorf("take parameters: %w", err)
			}
			*has = want
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// contribute gives every member its share of the sums.
func (g *group) contribute(p wire.Push, sums spans, in *wire.Place, then func(refused bool) error) error {
	p.Next = false
	at, links := g.membersOf(p.Term)
	if links == nil && p.Quiet {
		return nil
	} else if links == nil {
		return then(true)
	}
	f := &flight{then: then}
	f.left.Store(int32(len(links)))
	n, first := sums.length(), at.Mine+1 // each member begins with another one, and its own share is the last
	if in != nil && !at.Whole {          // unless it is lent: the sum is made as the others arrive
		first--
	}
	for k := range links {
		i := (first + k) % len(links)
		m := links[i]
		from, to := at.Share(n, i)
		parts := sums.slice(from, to)
		if i == at.Mine {
			var lent func()
			if in != nil {
				in.Hold()
				parts, lent = [][]float32{in.Values[from:to]}, in.Release
			}
			if a := g.holder.Contribute(p, parts, lent); a.Refused != "" {
				f.refused.Store(true)
			}
			if p.Quiet {
				continue
			}
			if err := f.land(); err != nil {
				return err
			}
			continue
		}
		frame, err := wire.NewFrame(wire.TypePush, p, parts...)
		if err != nil {
			return err
		}
		if !p.Quiet {
			m.flights <- f // never blocks: it has room for all leases
		}
		if err := m.conn.SendFrame(frame); err != nil || m.gone.Load() {
			m.conn.Close() // its listener refuses what is not answered
			if m.gone.Load() {
				m.refuse() // the listener may have ended before the push was there
			}
		}
	}
	return nil
}

// membersOf waits until the members of a term are connected, and returns them with
// nil for this one; nil: the term or the session is over.
func (g *group) membersOf(term int64) (wire.Group, []*member) {
	for {
		_, at, changed := g.holder.Group()
		g.mu.Lock()
		if g.term == term {
			links := make([]*member, len(g.at.Members))
			for i, address := range g.at.Members {
				links[i] = g.links[address]
			}
			defer g.mu.Unlock()
			return g.at, links
		}
		change, over := g.change, g.over
		g.mu.Unlock()
		if at.Term > term || over {
			return wire.Group{}, nil
		}
		select {
		case <-change:
		case <-changed:
		}
	}
}

func (g *group) inFlight() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.links {
		if len(m.flights) > 0 {
			return true
		}
	}
	return false
}

func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.links {
		m.conn.Close()
	}
	if !g.over {
		g.over = true
		close(g.change)
		g.change = make(chan struct{})
	}
}
