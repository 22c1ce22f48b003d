package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Hop is one machine, the target or one on the way to it.
type Hop struct {
	Address string // host name or IP address
	Port    int    // 0 for 22
	// HostKey is the authorized_keys line of the key that the machine must show.
	// Several lines are several keys; the machine must show one of them. A line
	// that begins with "@cert-authority " is the key of an authority that signed
	// it.
	HostKey    string
	KeyFrom    string // the files that HostKey is from, for people; "" where it was declared
	Credential Credential
}

// Target is a machine with the way there.
type Target struct {
	Hop
	Hops []Hop // the machines on the way, nearest first

	// AcceptNew, when not nil, decides about a key of the target if HostKey is
	// empty; without it such a machine is refused. Hops always need a key.
	AcceptNew func(key string) error
}

// Timeouts of a connection.
type Timeouts struct {
	Dial  time.Duration // of each hop, handshake and login included; 0: 20 s
	Alive time.Duration // between keepalives; 0: 15 s. After three without an answer the connection counts as lost.
	Begin time.Duration // until a command begins, the login shell and sudo included; 0: 60 s

	// Grace is how long a machine has to end a session that is given up, before
	// the connection is. 0: 10 s
	Grace time.Duration
}

func (t Timeouts) orDefaults() Timeouts {
	for _, d := range []struct {
		of        *time.Duration
		otherwise time.Duration
	}{{&t.Dial, 20 * time.Second}, {&t.Alive, 15 * time.Second}, {&t.Begin, time.Minute}, {&t.Grace, 10 * time.Second}} {
		if *d.of <= 0 {
			*d.of = d.otherwise
		}
	}
	return t
}

// Client is a connection to a machine. Its methods may be called by many
// goroutines; sessions share the connection.
type Client struct {
	Host string // as messages call it

	credential Credential
	limits     Timeouts
	conn       *ssh.Client
	via        *Client       // the connection to the machine before, if it is only for this one
	gone       chan struct{} // closed when the connection is over, whoever ended it
	running    sync.WaitGroup
	looks      looks
	slow       sync.Once // it was said that sudo is slow
}

func (h Hop) address() string {
	port := h.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(strings.Trim(h.Address, "[]"), strconv.Itoa(port))
}

// name is what messages call the machine.
func (h Hop) name() string {
	if h.Port == 0 || h.Port == 22 {
		return h.Address
	}
	return h.address()
}

// Dial connects to the target and logs in. An error that trying again cannot
// fix is Permanent; a *HostKeyError is.
func Dial(ctx context.Context, target Target, limits Timeouts) (*Client, error) {
	return dialAll(ctx, target, limits, &keys{})
}

func dialAll(ctx context.Context, target Target, limits Timeouts, private *keys) (*Client, error) {
	var via *Client
	for _, hop := range target.Hops {
		next, err := reach(ctx, via, hop, nil, limits, private)
		if err != nil {
			via.Close()
			return nil, fmt.Errorf("hop %s: %w", hop.name(), err)
		}
		next.via, via = via, next
	}
	c, err := reach(ctx, via, target.Hop, target.AcceptNew, limits, private)
	if err != nil {
		via.Close()
		return nil, err
	}
	c.via = via
	return c, nil
}

// reach connects to one machine, through another if via is not nil.
func reach(ctx context.Context, via *Client, hop Hop, accept func(string) error, limits Timeouts, private *keys) (*Client, error) {
	limits = limits.orDefaults()
	conn, err := login(ctx, via, hop, accept, limits.Dial, private)
	if err != nil {
		return nil, err
	}
	c := &Client{
		Host: hop.name(), credential: hop.Credential, limits: limits, conn: conn,
		gone: make(chan struct{}), looks: looks{turn: make(chan struct{}, 1)},
	}
	c.running.Go(func() {
		conn.Wait()
		close(c.gone)
	})
	c.running.Go(func() { c.keepAlive(limits.Alive) })
	return c, nil
}

// keepAlive asks the machine now and then whether it is there, and closes the
// connection when it is not, so that whoever waits for it learns it.
func (c *Client) keepAlive(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	answered := make(chan struct{}, 1)
	pending := 0
	for {
		select {
		case <-c.gone:
			return
		case <-answered:
			pending = 0
		case <-ticker.C:
			if pending++; pending > 3 {
				c.conn.Close()
				return
			}
			if pending == 1 {
				c.running.Go(func() { // ends with the answer or with the connection
					if _, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil); err == nil {
						answered <- struct{}{}
					}
				})
			}
		}
	}
}

// isClosed reports whether the connection is over.
func (c *Client) isClosed() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// DialContext opens a connection from the machine to an address as it is called
// there. A failure is a *ForwardError, which is Permanent if the machine
// forbids forwarding.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.conn.DialContext(ctx, network, address)
	var refused *ssh.OpenChannelError
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !errors.As(err, &refused):
		return nil, &LostError{Host: c.Host, Err: err}
	case refused.Reason == ssh.Prohibited:
		return nil, Permanent{&ForwardError{Host: c.Host, Address: address}}
	}
	return nil, &ForwardError{Host: c.Host, Address: address, Reason: printable(refused.Message)}
}

// Close ends the connection, and those on the way that only it uses. It may be
// called again, and on nil.
func (c *Client) Close() error {
	if c == nil {
		return nil
	}
	c.conn.Close() // it may be gone already
	c.running.Wait()
	return c.via.Close()
}
