package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/wire"
)

// servers are the connections to all parameter servers.
type servers struct {
	conns []*wire.Conn
	from  []int       // each server's span, as it said when first pulled
	spans [][]float32 // what was last pulled from each
}

// held says which parameters a replica has.
type held struct {
	term, version int64
}

// refusedError is a server's answer to what came too late.
type refusedError struct{ why string }

func (e refusedError) Error() string { return "refused: " + e.why }

func dialServers(ctx context.Context, o Options) (*servers, error) {
	s := &servers{from: make([]int, len(o.Servers)), spans: make([][]float32, len(o.Servers))}
	for i, address := range o.Servers {
		c, err := o.Credentials.Dial(ctx, address, o.hello())
		if err != nil {
			s.close()
			return nil, fmt.Errorf("connect to server %d: %w", i, err)
		}
		s.conns = append(s.conns, c)
	}
	return s, nil
}

func (s *servers) close() {
	for _, c := range s.conns {
		c.Close()
	}
}

// pull brings the replica to a version, or refuses when a server is past it.
// Every server is asked before the first answer is read.
func (s *servers) pull(replica engine.Replica, term, version int64, exact bool, h *held) error {
	if exact && h.term == term && h.version == version {
		return nil
	}
	have := int64(-1)
	if h.term == term {
		have = h.version
	}
	for _, c := range s.conns {
		if err := c.Send(wire.TypePull, wire.Pull{Term: term, Version: version, Have: have}, nil); err != nil {
			return err
		}
	}
	var refused error
	lowest := int64(-1)
	for i, c := range s.conns {
		got, err := s.values(i, c)
		if errors.As(err, new(refusedError)) {
			refused = err // the others' answers are on their way and must be read
			continue
		}
		if err != nil {
			return err
		}
		if exact && got != version {
			refused = refusedError{fmt.Sprintf("server %d is at version %d, past %d", i, got, version)}
		}
		if lowest < 0 || got < lowest {
			lowest = got
		}
	}
	if refused != nil {
		h.term = 0 // some spans may have changed, others not
		return refused
	}
	for i, span := range s.spans {
		if len(span) == 0 {
			continue
		}
		if err := replica.Put(0, s.from[i], span); err != nil {
			return fmt.Errorf("take parameters: %w", err)
		}
	}
	*h = held{term, lowest}
	return nil
}

// values reads one server's answer to a pull into its span, which is left
// empty when the replica has these values.
func (s *servers) values(i int, c *wire.Conn) (int64, error) {
	m, err := c.Receive(0)
	if err != nil {
		return 0, fmt.Errorf("pull from server %d: %w", i, err)
	}
	if m.Type == wire.TypeAnswer {
		return 0, answered(m)
	}
	var v wire.Values
	if m.Type != wire.TypeValues {
		return 0, fmt.Errorf("pull from server %d: answered with %s", i, m.Type)
	}
	if err := m.Decode(&v); err != nil {
		return 0, err
	}
	s.from[i] = v.From
	s.spans[i] = sized(s.spans[i], m.Values)
	if err := c.Body(m, s.spans[i]); err != nil {
		return 0, fmt.Errorf("pull from server %d: %w", i, err)
	}
	return v.Version, nil
}

// push gives every server its span of the sums. A refusal by any of them means
// that the lease is void: what others took is never named and dropped.
func (s *servers) push(p wire.Push, sums []float32) error {
	for i, c := range s.conns {
		to := len(sums)
		if i+1 < len(s.conns) {
			to = s.from[i+1]
		}
		if err := c.Send(wire.TypePush, p, sums[s.from[i]:to]); err != nil {
			return fmt.Errorf("push to server %d: %w", i, err)
		}
	}
	var refused error
	for i, c := range s.conns {
		m, err := c.Receive(0)
		if err != nil {
			return fmt.Errorf("push to server %d: %w", i, err)
		}
		if m.Type != wire.TypeAnswer {
			return fmt.Errorf("push to server %d: answered with %s", i, m.Type)
		}
		if err := answered(m); errors.As(err, new(refusedError)) {
			refused = err
		} else if err != nil {
			return fmt.Errorf("push to server %d: %w", i, err)
		}
	}
	return refused
}

func answered(m *wire.Message) error {
	var a wire.Answer
	if err := m.Decode(&a); err != nil {
		return err
	}
	switch {
	case a.Error != "":
		return errors.New(a.Error)
	case a.Refused != "":
		return refusedError{a.Refused}
	}
	return nil
}
