package ssh

import (
	"bytes"
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
	Address    string // host name or IP address
	Port       int    // 0 for 22
	HostKey    string // authorized_keys line of the key that it must show
	Credential Credential
}

// Target is a machine with the way there.
type Target struct {
	Hop
	Hops []Hop // the machines on the way, nearest first

	// AcceptNew, when not nil, is asked about a key of the target where HostKey
	// is empty; without it such a machine is refused. Hops always need a key.
	AcceptNew func(key string) error
}

// Timeouts of a connection.
type Timeouts struct {
	Dial  time.Duration // of each hop, handshake and login included; 0: 20 s
	Alive time.Duration // between keepalives; 0: 15 s. After three without an answer the connection counts as lost.
}

// Client is a connection to a machine. Its methods may be called by many
// goroutines; sessions share the connection.
type Client struct {
	Host string // as messages call it

	target Target
	conn   *ssh.Client
	chain  []*ssh.Client // of the hops, nearest first
	once   sync.Once
	end    chan struct{}
	alive  sync.WaitGroup
}

func (h Hop) address() string {
	port := h.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(strings.Trim(h.Address, "[]"), strconv.Itoa(port))
}

// Dial connects to the target and logs in. An error that trying again cannot
// mend is Permanent; a *HostKeyError is.
func Dial(ctx context.Context, target Target, limits Timeouts) (*Client, error) {
	if limits.Dial <= 0 {
		limits.Dial = 20 * time.Second
	}
	if limits.Alive <= 0 {
		limits.Alive = 15 * time.Second
	}
	c := &Client{Host: target.Address, target: target, end: make(chan struct{})}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
	for i, hop := range append(append([]Hop(nil), target.Hops...), target.Hop) {
		last := i == len(target.Hops)
		accept := target.AcceptNew
		if !last {
			accept = nil
		}
		next, err := login(ctx, dial, hop, accept, limits.Dial)
		if err != nil {
			c.closeChain()
			if !last {
				return nil, fmt.Errorf("hop %s: %w", hop.Address, err)
			}
			return nil, err
		}
		c.chain = append(c.chain, next)
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return next.DialContext(ctx, "tcp", address)
		}
	}
	c.conn = c.chain[len(c.chain)-1]
	c.alive.Go(func() { c.keepAlive(limits.Alive) })
	return c, nil
}

// login connects to one machine. The context and the limit cover all of it:
// a machine that accepts a connection and then says nothing is given up.
func login(ctx context.Context, dial func(context.Context, string) (net.Conn, error), hop Hop, accept func(string) error, limit time.Duration) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer for %s", limit))
	defer cancel()
	known, err := newKnown(hop, accept)
	if err != nil {
		return nil, err
	}
	auth, done, err := hop.Credential.methods()
	if err != nil {
		return nil, err
	}
	defer done()
	conn, err := dial(ctx, hop.address())
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", hop.address(), because(ctx, err))
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	config := &ssh.ClientConfig{
		User: hop.Credential.User, Auth: auth, HostKeyCallback: known.check, HostKeyAlgorithms: known.algorithms,
		ClientVersion: "SSH-2.0-stoke",
	}
	c, channels, requests, err := ssh.NewClientConn(conn, hop.address(), config)
	if err != nil {
		conn.Close()
		return nil, refused(hop, because(ctx, err), known.failed)
	}
	if !stop() { // the limit struck just now
		c.Close()
		return nil, fmt.Errorf("dial %s: %w", hop.address(), context.Cause(ctx))
	}
	return ssh.NewClient(c, channels, requests), nil
}

// because prefers why the context ended to what that broke.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// refused says what a failed handshake means.
func refused(hop Hop, err, hostKey error) error {
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case hostKey != nil:
		return Permanent{hostKey}
	case strings.Contains(err.Error(), "unable to authenticate"):
		return Permanent{fmt.Errorf("%s does not let %s in: %w", hop.Address, hop.Credential.User, err)}
	case errors.As(err, &negotiation):
		return Permanent{fmt.Errorf("%s offers other algorithms, or no host key of the kind that is known: %w", hop.Address, err)}
	}
	return fmt.Errorf("log in on %s: %w", hop.Address, err)
}

// known checks a host key.
type known struct {
	address    string
	want       ssh.PublicKey // nil: none is known
	accept     func(string) error
	algorithms []string // nil: any
	failed     error
}

func newKnown(hop Hop, accept func(string) error) (*known, error) {
	k := &known{address: hop.Address, accept: accept}
	if strings.TrimSpace(hop.HostKey) == "" {
		return k, nil
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(strings.TrimSpace(hop.HostKey)))
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, Permanent{fmt.Errorf("host_key of %s is not one line such as \"ssh-ed25519 AAAA…\"", hop.Address)}
	}
	k.want = key
	k.algorithms = []string{key.Type()}
	if key.Type() == ssh.KeyAlgoRSA { // one key, three signatures
		k.algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return k, nil
}

func (k *known) check(_ string, _ net.Addr, got ssh.PublicKey) error {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(got)))
	switch {
	case k.want != nil && bytes.Equal(k.want.Marshal(), got.Marshal()):
		return nil
	case k.want == nil && k.accept != nil:
		k.failed = k.accept(line)
		return k.failed
	}
	e := &HostKeyError{Address: k.address, Got: line, Print: ssh.FingerprintSHA256(got)}
	if k.want != nil {
		e.Want = ssh.FingerprintSHA256(k.want)
	}
	k.failed = e
	return e
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
		case <-c.end:
			return
		case <-answered:
			pending = 0
		case <-ticker.C:
			if pending++; pending > 3 {
				c.closeChain()
				return
			}
			if pending == 1 {
				go func() { // ends with the answer or with the connection
					if _, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil); err == nil {
						answered <- struct{}{}
					}
				}()
			}
		}
	}
}

// DialContext opens a connection from the machine to an address as it is
// called there.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return c.conn.DialContext(ctx, network, address)
}

// Close ends the connection and those on the way. It may be called again.
func (c *Client) Close() error {
	c.once.Do(func() { close(c.end) })
	c.closeChain()
	c.alive.Wait()
	return nil
}

func (c *Client) closeChain() {
	for i := len(c.chain) - 1; i >= 0; i-- {
		c.chain[i].Close() // it may be gone already
	}
}
