package ssh

import (
	"context"
	"errors"
	"net"
)

// DialContext opens a connection from the target to an address as it is called
// there. It ends with the pool's connection to the target.
func (p *Pool) DialContext(ctx context.Context, target Target, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := p.withConnection(ctx, target, true, func(_ *machineEntry, c *Client) (err error) {
		conn, err = c.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Dial makes a new connection to the target, although others may exist, and
// tries once. It answers whether the machine can still be reached. The caller
// closes the client.
func (p *Pool) Dial(ctx context.Context, target Target) (*Client, error) {
	return dialAll(ctx, target, p.Timeouts, &p.keys)
}

// Forget drops the connection to a target, which is known to be of no use: the
// machine reboots, say. Running commands are lost; the next use dials anew.
func (p *Pool) Forget(target Target) {
	entry, err := p.entry(target)
	if err != nil {
		return // closed
	}
	entry.dialling <- struct{}{}
	c := entry.client
	entry.client = nil
	<-entry.dialling
	c.Close()
}

// IsClosed reports whether an error only says that the pool was closed, and
// nothing of the machine.
func IsClosed(err error) bool { return errors.Is(err, errClosed) }
