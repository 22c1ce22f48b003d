package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
)

// DialContext opens a connection from the target to an address as it is called
// there. It ends with the pool's connection to the target.
func (p *Pool) DialContext(ctx context.Context, target Target, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := p.with(ctx, target, true, func(c *Client) (err error) {
		conn, err = c.DialContext(ctx, network, address)
		return forwarded(c.Host, address, err)
	})
	return conn, err
}

// forwarded says what it means that a machine did not open a connection.
func forwarded(host, address string, err error) error {
	var refused *ssh.OpenChannelError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return &LostError{Host: host, Err: err}
	case refused.Reason == ssh.Prohibited:
		return Permanent{fmt.Errorf("%s does not open connections to %s for others: allow it in its sshd_config (AllowTcpForwarding local, PermitOpen, DisableForwarding)", host, address)}
	}
	return fmt.Errorf("dial %s from %s: %s", address, host, refused.Message)
}

// Forget drops the connection to a target, which is known to be of no use. What
// runs on it is lost.
func (p *Pool) Forget(target Target) {
	entry, err := p.entry(target)
	if err != nil {
		return // closed
	}
	entry.dialling <- struct{}{}
	c := entry.client
	entry.client = nil
	<-entry.dialling
	if c != nil {
		c.Close()
	}
}

// IsClosed reports whether an error only says that the pool was closed, and
// nothing of the machine.
func IsClosed(err error) bool { return errors.Is(err, errClosed) }
