package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// maxSessions is how many sessions share a connection: the default of sshd's
// MaxSessions is 10. Where it is less, the pool finds out.
const maxSessions = 8

// maxLost is how often a connection may break under one command before its
// error is returned: it may be the command that breaks it.
const maxLost = 5

// Pool keeps one connection for each machine, dialled when it is first needed
// and again when it was lost. Machines behind the same bastion share the
// connection to it. The zero value is ready for use.
type Pool struct {
	Timeouts Timeouts
	// Patience is for how long a machine that cannot be reached is tried again, in
	// all until it answers; 0: not at all.
	Patience time.Duration
	// Pause is the first pause between tries; it doubles up to 10 s. 0: 500 ms.
	Pause time.Duration
	// Slow is called for a machine whose sudo takes seconds, with the reason as far
	// as known; nil: nobody. It gets the context of who waits.
	Slow func(ctx context.Context, host, why string)

	mu       sync.Mutex
	machines map[string]*machineEntry
	closed   bool
	keys     keys
}

type machineEntry struct {
	target   Target
	sessions gate
	dialling chan struct{} // one token: whoever has it may look at client or dial
	client   *Client
	refused  error       // the password was not taken
	gone     atomic.Bool // it did not answer for the pool's whole patience, and not since
	sudo     sudoPassword
	closing  context.Context // ends when the pool is closed
	close    context.CancelCauseFunc
}

// Run runs a command on the target. A connection that cannot be had is tried
// again for as long as the pool has patience. If a connection breaks while the
// command runs, the command is repeated if that does no harm (idempotent);
// otherwise the *LostError is returned.
func (p *Pool) Run(ctx context.Context, target Target, cmd func() Command, idempotent bool) (Output, error) {
	var out Output
	err := p.withConnection(ctx, target, idempotent, func(e *machineEntry, c *Client) (err error) {
		command := cmd()
		if command.Root {
			begun := make(chan struct{})
			defer c.watch(ctx, p.Slow, begun)()
			command.onBegin = sync.OnceFunc(func() { close(begun) })
			if err := e.sudo.try(ctx, c); err != nil {
				return err
			}
		}
		if command.Look {
			out, err = c.Look(ctx, command)
		} else {
			out, err = c.Run(ctx, command)
		}
		return err
	})
	return out, err
}

// Put writes a file, which may be done again.
func (p *Pool) Put(ctx context.Context, target Target, f File) error {
	return p.withConnection(ctx, target, true, func(e *machineEntry, c *Client) error {
		if f.Root {
			if err := e.sudo.try(ctx, c); err != nil {
				return err
			}
		}
		return c.Put(ctx, f)
	})
}

// withConnection does something with a connection, and again where that helps.
func (p *Pool) withConnection(ctx context.Context, target Target, idempotent bool, do func(*machineEntry, *Client) error) error {
	entry, err := p.entry(target)
	if err != nil {
		return err
	}
	if err := entry.sessions.enter(ctx); err != nil {
		return err
	}
	defer entry.sessions.exit()
	tries := p.newTries(entry)
	for {
		c, err := p.client(ctx, entry)
		if err == nil {
			entry.gone.Store(false)
			tries.resetPatience()
			err = do(entry, c)
			var lost *LostError
			var busy *busyError
			switch {
			case errors.As(err, &busy):
				c.dropLooks(ctx)
				if err := tries.waitForSession(ctx, &entry.sessions, err); err != nil {
					return err
				}
				continue
			case !errors.As(err, &lost):
				return err
			}
			p.drop(entry, c)
			switch {
			case lost.Begun && !idempotent:
				return err
			case !lost.Begun && tries.lost == 0: // it broke while it was idle
				tries.lost++
				continue
			}
			if tries.lost++; tries.lost >= maxLost {
				return err
			}
		}
		if IsPermanent(err) {
			return err
		}
		if err := tries.wait(ctx, err); err != nil {
			return err
		}
	}
}

// tries counts what one use of the pool has spent.
type tries struct {
	entry                  *machineEntry
	patience, first, pause time.Duration
	until                  time.Time
	lost, busy             int
}

// maxBusy is how often a machine may refuse a session: it takes a moment to
// see that another has ended.
const maxBusy = 20

// newTries gives a machine the pool's patience, or one try if another caller has
// spent that and the machine did not answer.
func (p *Pool) newTries(e *machineEntry) *tries {
	t := &tries{entry: e, patience: p.Patience, first: p.Pause}
	if t.first <= 0 {
		t.first = 500 * time.Millisecond
	}
	t.resetPatience()
	if e.gone.Load() {
		t.until = time.Now()
	}
	return t
}

// resetPatience starts the patience again: the machine is there.
func (t *tries) resetPatience() { t.until, t.pause = time.Now().Add(t.patience), t.first }

// wait waits before the next try, and returns the error after the last.
func (t *tries) wait(ctx context.Context, failed error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case time.Now().Add(t.pause).After(t.until):
		if t.patience > 0 && !t.entry.gone.Swap(true) {
			return fmt.Errorf("%w (tried for %s)", failed, t.patience.Round(time.Millisecond))
		}
		return failed
	}
	timer := time.NewTimer(t.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.pause = min(2*t.pause, 10*time.Second)
	return nil
}

// waitForSession waits until there is place for a session, and returns what
// failed when that does not help.
func (t *tries) waitForSession(ctx context.Context, g *gate, failed error) error {
	if t.busy++; t.busy >= maxBusy {
		return failed
	}
	if err := g.tighten(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(t.busy) * 20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errClosed error = Permanent{errors.New("the connections were closed")}

// key tells machines apart. The way to a machine belongs to the key: two users
// on one machine are two connections.
func (t Target) key() string {
	key := ""
	for _, hop := range append(append([]Hop(nil), t.Hops...), t.Hop) {
		key += fmt.Sprintf("%q %q %#v\n", hop.address(), hop.HostKey, hop.Credential)
	}
	return key
}

func (p *Pool) entry(target Target) (*machineEntry, error) {
	key := target.key()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	e := p.machines[key]
	if e == nil {
		e = &machineEntry{target: target, dialling: make(chan struct{}, 1), sudo: sudoPassword{turn: make(chan struct{}, 1)}, sessions: gate{limit: maxSessions, changed: make(chan struct{})}}
		e.closing, e.close = context.WithCancelCause(context.Background())
		if p.machines == nil {
			p.machines = map[string]*machineEntry{}
		}
		p.machines[key] = e
	}
	return e, nil
}

// client is the connection to a machine. Those on the way are shared.
func (p *Pool) client(ctx context.Context, e *machineEntry) (*Client, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.closing, func() { cancel(context.Cause(e.closing)) })()
	select {
	case e.dialling <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-e.dialling }()
	if err := context.Cause(e.closing); err != nil {
		return nil, err
	}
	if e.client != nil && !e.client.isClosed() {
		return e.client, nil
	}
	e.client.Close()
	e.client = nil
	var via *Client
	if n := len(e.target.Hops); n > 0 {
		before := e.target.Hops[n-1]
		entry, err := p.entry(Target{Hop: before, Hops: e.target.Hops[:n-1]})
		if err != nil {
			return nil, err
		}
		if via, err = p.client(ctx, entry); err != nil {
			return nil, fmt.Errorf("hop %s: %w", before.name(), err)
		}
	}
	if e.refused != nil {
		return nil, e.refused
	}
	c, err := reach(ctx, via, e.target.Hop, e.target.AcceptNew, p.Timeouts, &p.keys)
	var wrong wrongPassword
	switch {
	case err == nil:
		e.client = c
	case errors.As(err, &wrong):
		e.refused = err
	}
	return c, err
}

// drop drops a connection that broke, unless another has taken its place.
func (p *Pool) drop(e *machineEntry, c *Client) {
	e.dialling <- struct{}{}
	if e.client == c {
		e.client = nil
	}
	<-e.dialling
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
		e.close(errClosed)
	}
	for _, e := range machines {
		e.dialling <- struct{}{}
		e.client.Close()
		<-e.dialling
	}
}
