package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// mostSessions is how many sessions share a connection: sshd's MaxSessions is
// 10 unless somebody changed it, and what goes through a bastion counts there.
const mostSessions = 8

// Pool keeps one connection for each machine, dialled when it is first needed
// and again when it was lost. The zero value is ready for use.
type Pool struct {
	Timeouts Timeouts
	// Patience is for how long a machine that cannot be reached is tried again;
	// 0: not at all.
	Patience time.Duration
	// Pause is the first pause between tries; it doubles up to 10 s. 0: 500 ms.
	Pause time.Duration

	mu       sync.Mutex
	machines map[string]*machineEntry
	closed   bool
}

type machineEntry struct {
	sessions chan struct{} // one token for each session
	dialling chan struct{} // one token: whoever has it may look at client or dial
	client   *Client
}

// Run runs a command on the target. A connection that cannot be had is tried
// again for as long as the pool has patience. One that breaks while the
// command runs is, too, if running it twice does no harm (idempotent);
// otherwise the *LostError is returned.
func (p *Pool) Run(ctx context.Context, target Target, cmd func() Command, idempotent bool) (Output, error) {
	var out Output
	err := p.with(ctx, target, idempotent, func(c *Client) (err error) {
		out, err = c.Run(ctx, cmd())
		return err
	})
	return out, err
}

// Put writes a file, which may be done again.
func (p *Pool) Put(ctx context.Context, target Target, f File) error {
	return p.with(ctx, target, true, func(c *Client) error { return c.Put(ctx, f) })
}

func (p *Pool) with(ctx context.Context, target Target, idempotent bool, do func(*Client) error) error {
	entry, err := p.entry(target)
	if err != nil {
		return err
	}
	select {
	case entry.sessions <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-entry.sessions }()

	until := time.Now().Add(p.Patience)
	pause := p.Pause
	if pause <= 0 {
		pause = 500 * time.Millisecond
	}
	for {
		c, err := p.client(ctx, entry, target)
		if err == nil {
			err = do(c)
			var lost *LostError
			if !errors.As(err, &lost) {
				return err
			}
			p.forget(entry, c)
			if !idempotent {
				return err
			}
		}
		if IsPermanent(err) || ctx.Err() != nil {
			return err
		}
		if time.Now().Add(pause).After(until) {
			if p.Patience > 0 {
				return fmt.Errorf("%w (tried for %s)", err, p.Patience)
			}
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, 10*time.Second)
	}
}

var errClosed = errors.New("the connections were closed")

// entry is the machine's place. Who it is reached by belongs to what it is:
// two users on one machine are two connections.
func (p *Pool) entry(target Target) (*machineEntry, error) {
	key := ""
	for _, hop := range append(append([]Hop(nil), target.Hops...), target.Hop) {
		key += fmt.Sprintf("%q %q %q ", hop.Credential.User, hop.address(), hop.HostKey)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	e := p.machines[key]
	if e == nil {
		e = &machineEntry{sessions: make(chan struct{}, mostSessions), dialling: make(chan struct{}, 1)}
		if p.machines == nil {
			p.machines = map[string]*machineEntry{}
		}
		p.machines[key] = e
	}
	return e, nil
}

func (p *Pool) client(ctx context.Context, e *machineEntry, target Target) (*Client, error) {
	select {
	case e.dialling <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-e.dialling }()
	if e.client != nil {
		return e.client, nil
	}
	c, err := Dial(ctx, target, p.Timeouts)
	if err == nil {
		e.client = c
	}
	return c, err
}

// forget drops a connection that broke, unless another has taken its place.
func (p *Pool) forget(e *machineEntry, c *Client) {
	e.dialling <- struct{}{}
	defer func() { <-e.dialling }()
	if e.client == c {
		e.client = nil
	}
	c.Close()
}

// Close ends all connections; what runs on them is lost.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	machines := p.machines
	p.machines = nil
	p.mu.Unlock()
	for _, e := range machines {
		e.dialling <- struct{}{}
		if e.client != nil {
			e.client.Close()
		}
		<-e.dialling
	}
}
