package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// servers are the connections to all parameter servers: an exchange. Goroutines of
// their own read what the servers send.
type servers struct {
	peers []*peer
	came  chan struct{} // something has
	asked loaded        // the version that was asked for last
	stale atomic.Bool   // a push was refused: the version that it asked for will not come
}

// peer is one server.
type peer struct {
	conn    *wire.Conn
	flights chan *flight // pushes that are not answered yet, in their order

	mu     sync.Mutex
	values wire.Values // what came last
	count  int64       // values that came
	from   int         // where the server's span begins
	span   []float32   // that is newest here
	have   loaded      // which version that is
	fresh  bool        // the replica does not have it yet
	spare  []float32   // for the next one, the reader's
}

// flight is a push on its way.
type flight struct {
	left    atomic.Int32 // servers that have not answered
	refused atomic.Bool
	then    func(refused bool) error // once all have
}

// maxFlights is more than the leases that a worker has.
const maxFlights = 2 * buffers

func dialServers(ctx context.Context, o Options, session string) (*servers, error) {
	s := &servers{came: make(chan struct{}, 1)}
	for i, address := range o.Servers {
		hello := o.hello()
		hello.Session = session
		c, err := o.Credentials.Dial(ctx, address, hello)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("connect to server %d: %w", i, err)
		}
		s.peers = append(s.peers, &peer{conn: c, flights: make(chan *flight, maxFlights), have: loaded{0, -1}})
	}
	return s, nil
}

func (s *servers) close() {
	for _, p := range s.peers {
		p.conn.Close()
	}
}

func (s *servers) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range s.peers {
		group.Go(func() error { return s.listen(ctx, i) })
	}
	return group.Wait()
}

func (s *servers) news() <-chan struct{} { return s.came }

// listen receives what one server says, until its connection ends.
func (s *servers) listen(ctx context.Context, i int) error {
	p := s.peers[i]
	for {
		m, err := p.conn.Receive(0)
		if err != nil {
			return fmt.Errorf("server %d: %w", i, err)
		}
		switch m.Type {
		case wire.TypeAnswer:
			var a wire.Answer
			switch err = m.Decode(&a); {
			case err != nil:
			case a.Quiet && a.Error == "":
				s.stale.Store(true)
			default:
				var refused bool
				if refused, err = takeAnswer(p.flights, a); refused {
					s.stale.Store(true)
				}
			}
		case wire.TypeValues:
			err = p.take(m)
		default:
			err = fmt.Errorf("sent %s", m.Type)
		}
		if err != nil {
			return fmt.Errorf("server %d: %w", i, err)
		}
		select {
		case s.came <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// take reads values into a second buffer, so that the session can load the
// first one meanwhile.
func (p *peer) take(m *wire.Message) error {
	var v wire.Values
	if err := m.Decode(&v); err != nil {
		return err
	}
	p.spare = sized(p.spare, m.Values)
	if err := p.conn.Body(m, p.spare); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values = v
	p.count++
	if v.Refused == "" {
		p.from = v.From
	}
	if m.Values > 0 {
		p.span, p.spare = p.spare, p.span
		p.have, p.fresh = loaded{v.Term, v.Version}, true
	}
	return nil
}

// request asks every server for a version, unless that was the last one.
func (s *servers) request(want loaded) error {
	if s.stale.Swap(false) {
		s.asked = loaded{}
	}
	if s.asked == want {
		return nil
	}
	for i, p := range s.peers {
		p.mu.Lock()
		have := int64(-1)
		if p.have.term == want.term {
			have = p.have.version
		}
		p.mu.Unlock()
		if err := p.conn.Send(wire.TypePull, wire.Pull{Term: want.term, Version: want.version, Have: have}, nil); err != nil {
			return fmt.Errorf("pull from server %d: %w", i, err)
		}
	}
	s.asked = want
	return nil
}

func (s *servers) hasArrived(v loaded) bool {
	arrived, _ := s.arrived(v, true)
	return arrived
}

// arrived reports whether every server has sent the version, or a later one, or
// has refused it: that is the error.
func (s *servers) arrived(want loaded, exact bool) (bool, error) {
	var refused error
	for i, p := range s.peers {
		p.mu.Lock()
		v := p.values
		p.mu.Unlock()
		switch {
		case v.Term != want.term || v.Refused == "" && v.Version < want.version:
			return false, nil
		case v.Refused != "":
			refused = refusedError{v.Refused}
		case exact && v.Version > want.version:
			refused = refusedError{fmt.Sprintf("server %d is at version %d, past %d", i, v.Version, want.version)}
		}
	}
	return true, refused
}

// pull brings the replica to a version, or refuses when a server is past it.
// Where a later version does as well, the newest is asked for.
func (s *servers) pull(ctx context.Context, replica engine.Replica, want loaded, exact bool, has *loaded) error {
	if exact && *has == want {
		return nil
	}
	counts := make([]int64, len(s.peers))
	if !exact {
		for i, p := range s.peers {
			p.mu.Lock()
			counts[i] = p.count + 1
			p.mu.Unlock()
		}
		s.asked = loaded{}
	}
	if err := s.request(want); err != nil {
		return err
	}
	for {
		there, err := s.arrived(want, exact)
		if err != nil {
			s.forget()
			return err
		}
		if there && s.answered(counts) {
			return s.load(replica, want.term, has)
		}
		select {
		case <-s.came:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// forget makes whatever was refused be asked for again.
func (s *servers) forget() {
	s.asked = loaded{}
	for _, p := range s.peers {
		p.mu.Lock()
		if p.values.Refused != "" {
			p.values = wire.Values{}
		}
		p.mu.Unlock()
	}
}

// answered reports whether so many values have come from each server.
func (s *servers) answered(counts []int64) bool {
	for i, p := range s.peers {
		p.mu.Lock()
		count := p.count
		p.mu.Unlock()
		if count < counts[i] {
			return false
		}
	}
	return true
}

// load puts what is new into the replica.
func (s *servers) load(replica engine.Replica, term int64, has *loaded) error {
	lowest := int64(-1)
	for _, p := range s.peers {
		p.mu.Lock()
		if p.fresh {
			if err := replica.Put(0, p.from, p.span); err != nil {
				p.mu.Unlock()
				return fmt.Errorf("take parameters: %w", err)
			}
			p.fresh = false
		}
		if lowest < 0 || p.values.Version < lowest {
			lowest = p.values.Version
		}
		p.mu.Unlock()
	}
	*has = loaded{term, lowest}
	return nil
}

func (s *servers) reload() {
	for _, p := range s.peers {
		p.mu.Lock()
		p.fresh = p.have.version >= 0
		p.mu.Unlock()
	}
}

// contribute gives every server its span of the sums, and asks for the version
// that the update makes if next. What other servers took of a refused lease is
// never named and dropped.
func (s *servers) contribute(m wire.Push, sums spans, _ *wire.Place, then func(refused bool) error) error {
	f := &flight{then: then}
	f.left.Store(int32(len(s.peers)))
	for i, p := range s.peers {
		to := math.MaxInt
		if i+1 < len(s.peers) {
			to = s.spanStart(i + 1)
		}
		frame, err := wire.NewFrame(wire.TypePush, m, sums.slice(s.spanStart(i), to)...)
		if err == nil {
			if !m.Quiet {
				p.flights <- f // never blocks: it has room for all leases
			}
			err = p.conn.SendFrame(frame)
		}
		if err != nil {
			return fmt.Errorf("push to server %d: %w", i, err)
		}
	}
	if m.Next {
		s.asked = loaded{m.Term, m.Version + 1}
	}
	return nil
}

func (s *servers) inFlight() bool {
	for _, p := range s.peers {
		if len(p.flights) > 0 {
			return true
		}
	}
	return false
}

// takeAnswer takes the answer to the oldest push that was not answered.
func takeAnswer(flights chan *flight, a wire.Answer) (refused bool, err error) {
	var f *flight
	select {
	case f = <-flights:
	default:
		return false, errors.New("answered without having been asked")
	}
	switch {
	case a.Error != "":
		return false, fmt.Errorf("push: %s", a.Error)
	case a.Refused != "":
		f.refused.Store(true)
	}
	return a.Refused != "", f.land()
}

// land notes one answer. With the last one it calls then.
func (f *flight) land() error {
	if f.left.Add(-1) > 0 {
		return nil
	}
	return f.then(f.refused.Load())
}

// spanStart is where a server's span begins.
func (s *servers) spanStart(i int) int {
	p := s.peers[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.from
}

// spans are the sums of a lease as the engine has them: ascending, one behind
// the other.
type spans []span

type span struct {
	offset int
	sums   []float32
}

// add puts one in its place: engines report from the back to the front.
func (s *spans) add(offset int, sums []float32) {
	i := len(*s)
	for i > 0 && (*s)[i-1].offset > offset {
		i--
	}
	*s = slices.Insert(*s, i, span{offset, sums})
}

// slice is what lies in [from, to).
func (s spans) slice(from, to int) (parts [][]float32) {
	for _, p := range s {
		a, b := max(from, p.offset), min(to, p.offset+len(p.sums))
		if a < b {
			parts = append(parts, p.sums[a-p.offset:b-p.offset])
		}
	}
	return parts
}

// length returns the number of values of all spans.
func (s spans) length() (n int) {
	for _, p := range s {
		n = max(n, p.offset+len(p.sums))
	}
	return n
}
