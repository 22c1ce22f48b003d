package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
)

// hopTime is how long each machine on the way to a control plane may take to let
// stoke in.
const hopTime = 8 * time.Second

// ControlPlaneError says why a control plane was of no use over SSH.
type ControlPlaneError struct {
	Machine string // its address
	Err     error
}

func (e *ControlPlaneError) Error() string {
	return fmt.Sprintf("control plane %s: %v", e.Machine, e.Err)
}
func (e *ControlPlaneError) Unwrap() error { return e.Err }

// passing reports whether the error may go away by itself, such as a machine
// that reboots, unlike another host key.
func (e *ControlPlaneError) passing() bool { return !ssh.IsPermanent(e.Err) }

// Tunnel opens connections from a control plane, as it is reached over SSH. All
// of them share one SSH connection, which is dialled when it is needed and again
// when it was lost.
type Tunnel struct {
	Machine string // the control plane, as messages call it

	pool   *ssh.Pool
	target ssh.Target
}

// NewTunnel finds out how to log in on a control plane. It dials nothing yet.
// Nothing else may use its connection; Close ends it.
func NewTunnel(s connect.SSHSettings, to connect.SSH) (*Tunnel, error) {
	return tunnelIn(machines(s), s, to)
}

// machines are those that API servers are reached through. They are not tried
// again here: whoever sends requests repeats them.
func machines(s connect.SSHSettings) *ssh.Pool {
	p := s.Pool()
	p.Patience = 0
	p.Timeouts.Dial = min(cmp.Or(p.Timeouts.Dial, hopTime), hopTime)
	p.Timeouts.Grace = time.Second
	return p
}

func tunnelIn(pool *ssh.Pool, s connect.SSHSettings, to connect.SSH) (*Tunnel, error) {
	target, err := s.Target(to, nil)
	if err != nil {
		return nil, &NoCredentialError{"the way over SSH to " + to.Address, err}
	}
	return &Tunnel{Machine: to.Address, pool: pool, target: target}, nil
}

// DialContext opens a connection from the control plane to an address as it is
// called there. An error is a *ControlPlaneError.
func (t *Tunnel) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := t.pool.DialContext(ctx, t.target, network, address)
	if err != nil {
		return nil, &ControlPlaneError{t.Machine, err}
	}
	return conn, nil
}

// Close ends the connection to the control plane, and all that go through it.
func (t *Tunnel) Close() { t.pool.Close() }
