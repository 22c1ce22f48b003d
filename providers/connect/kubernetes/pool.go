package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
)

// Pool dials each cluster once. The zero value is ready.
type Pool struct {
	// Waiting, when not nil, gets the errors of requests that are repeated because an
	// API server did not answer, and a *SlowPluginError.
	Waiting func(context.Context, error)
	// Warned, when not nil, gets each warning of an API server, with the context of
	// its request.
	Warned func(context.Context, string)
	// SSH says how to log in on the control planes of clusters that are reached
	// over SSH. Clusters behind one machine share the connection to it.
	SSH connect.SSHSettings
	// Agent is the User-Agent, such as "stoke/1.2.3"; "" is "stoke".
	Agent string

	mu       sync.Mutex
	clients  map[string]*dialled
	machines *ssh.Pool
}

type dialled struct {
	once   chan struct{} // holds a token while nobody dials
	client *Client
	err    error
}

// Get is the client of a connection. That it could not be had is remembered,
// so that a thousand objects wait for an endpoint that is not there once.
func (p *Pool) Get(ctx context.Context, c connect.Connection) (*Client, error) {
	key, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.clients == nil {
		p.clients = make(map[string]*dialled)
	}
	d := p.clients[string(key)]
	if d == nil {
		d = &dialled{once: make(chan struct{}, 1)}
		d.once <- struct{}{}
		p.clients[string(key)] = d
	}
	p.mu.Unlock()
	select {
	case <-d.once:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { d.once <- struct{}{} }()
	if d.client == nil && d.err == nil {
		d.client, d.err = dial(ctx, c, p.way(), p.Waiting)
		if d.err != nil && ctx.Err() != nil {
			err := d.err
			d.err = nil // it is the caller who gave up
			return nil, errors.Join(ctx.Err(), err)
		}
	}
	return d.client, d.err
}

// way is how the pool reaches machines.
func (p *Pool) way() way {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.machines == nil {
		p.machines = machines(p.SSH)
	}
	return way{p.SSH, p.machines, p.Agent, p.Warned}
}

// Close ends all connections.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.clients {
		if d.client != nil {
			d.client.Close()
		}
	}
	if p.machines != nil {
		p.machines.Close()
	}
}
