package wire

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/stokehq/stoke/runtime/certificate"
)

// Credentials are what the processes of one run know each other by.
type Credentials struct {
	Token   string
	Version string // of the program: all processes of a run are of one
	// Certificate is the run's own. Without it connections are plain, which
	// is for loopback alone. Whoever listens has the key as well (Key).
	Certificate *certificate.Pin
	Key         *certificate.Certificate
	// Network makes processes of one machine exchange over TCP, as those of several do.
	Network bool
}

// Roles of a run's processes. Workers and servers join a session.
const (
	RoleCoordinator = "coordinator"
	RoleWorker      = "worker"
	RoleServer      = "ps"
	RoleMember      = "member" // of an all-reduce, to another one
)

// Hello opens every connection.
type Hello struct {
	Token   string `json:"token"`
	Version string `json:"version"`
	Role    string `json:"role"`  // of the dialling process
	Index   int    `json:"index"` // of its role
	PID     int    `json:"pid"`
	// Instance, of a worker, is drawn by each process: it tells a worker that
	// comes back from another one of its index.
	Instance string `json:"instance,omitempty"`
	// Session, of a worker, is drawn each time that it connects, the same for
	// the coordinator and all servers.
	Session string `json:"session,omitempty"`
	// Class, of a deterministic run's worker, is on what its results depend
	// beside the specification, see engine.Classed; Threads is what it computes
	// on.
	Class   string `json:"class,omitempty"`
	Threads int    `json:"threads,omitempty"`
	// Machine, of a worker, names the machine and the copy of the data that it
	// reads. Crashed is how the process of its index before it crashed, as
	// far as its launcher knows; "": it did not.
	Machine string `json:"machine,omitempty"`
	Crashed string `json:"crashed,omitempty"`
	// Address, of a worker that is a member of an all-reduce, is where the other
	// members and the coordinator reach it, host:port.
	Address string `json:"address,omitempty"`
}

// Refusal is the answer to a hello that is not accepted.
type Refusal struct {
	Reason string `json:"reason"`
}

// handshake bounds TLS and the exchange of the first two frames.
const handshake = 10 * time.Second

// ErrRefused means that the two sides do not belong together: token, version or
// certificate are other ones, or the connection would be plain where it must
// not be. Trying again is of no use.
var ErrRefused = errors.New("connection refused")

// secure refuses connections over a network that would be plain.
func secure(address net.Addr, encrypted bool) error {
	tcp, ok := address.(*net.TCPAddr)
	if encrypted || !ok || tcp.IP.IsLoopback() { // what is no TCP stays within the machine
		return nil
	}
	return fmt.Errorf("%w: %s is not on this machine, and the run has no certificate: plain connections are only "+
		"for loopback", ErrRefused, address)
}

// Dial connects to a role of the run and greets it; hello's token and version
// are filled in. The error is ErrRefused when the other side declines.
func (c Credentials) Dial(ctx context.Context, address string, hello Hello) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	if raw := c.dialLocal(ctx, address); raw != nil {
		return c.meet(ctx, raw, address, hello)
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn, err := c.meet(ctx, raw, address, hello)
	if err != nil {
		return nil, err
	}
	// The port may have been open before its process was there.
	if raw := c.dialLocal(ctx, address); raw != nil {
		conn.Close()
		return c.meet(ctx, raw, address, hello)
	}
	return conn, nil
}

// meet greets whoever is at the other end.
func (c Credentials) meet(ctx context.Context, raw net.Conn, address string, hello Hello) (*Conn, error) {
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	conn, err := c.greet(ctx, raw, hello)
	if err != nil {
		raw.Close()
		if ctx.Err() != nil { // that is why the connection was closed
			err = ctx.Err()
		}
		return nil, fmt.Errorf("greet %s: %w", address, err)
	}
	return conn, nil
}

func (c Credentials) greet(ctx context.Context, raw net.Conn, hello Hello) (*Conn, error) {
	if err := secure(raw.RemoteAddr(), c.Certificate != nil); err != nil {
		return nil, err
	}
	if c.Certificate != nil {
		encrypted := tls.Client(raw, c.Certificate.Client())
		if err := encrypted.HandshakeContext(ctx); errors.Is(err, certificate.ErrOther) {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		} else if err != nil {
			return nil, err
		}
		raw = encrypted
	}
	conn := newConn(raw)
	hello.Token, hello.Version = c.Token, c.Version
	if err := conn.Send(TypeHello, hello, nil); err != nil {
		return nil, err
	}
	m, err := conn.receive(handshake, maxHello, 0)
	switch {
	case err != nil:
		return nil, err
	case m.Type == TypeRefused:
		var r Refusal
		if err := m.Decode(&r); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s", ErrRefused, r.Reason)
	case m.Type != TypeWelcome:
		return nil, fmt.Errorf("answered with %s", m.Type)
	}
	conn.begin()
	return conn, nil
}

// accept is the other side of Dial. An error closes the connection.
func (c Credentials) accept(ctx context.Context, raw net.Conn) (*Conn, Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	conn, hello, err := c.welcome(ctx, raw)
	if err != nil {
		raw.Close()
		return nil, Hello{}, fmt.Errorf("accept %s: %w", raw.RemoteAddr(), err)
	}
	return conn, hello, nil
}

func (c Credentials) welcome(ctx context.Context, raw net.Conn) (*Conn, Hello, error) {
	var hello Hello
	if c.Key != nil {
		encrypted := tls.Server(raw, c.Key.Server())
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, hello, err
		}
		raw = encrypted
	}
	conn := newConn(raw)
	m, err := conn.receive(handshake, maxHello, 0)
	if err != nil {
		return nil, hello, err
	}
	if m.Type != TypeHello {
		return nil, hello, fmt.Errorf("the first frame is %s", m.Type)
	}
	if err := m.Decode(&hello); err != nil {
		return nil, hello, err
	}
	if reason := c.refuses(hello); reason != "" {
		conn.Send(TypeRefused, Refusal{reason}, nil) // as a courtesy: it is closed either way
		return nil, hello, fmt.Errorf("%w: %s", ErrRefused, reason)
	}
	hello.Token = ""
	if err := conn.Send(TypeWelcome, struct{}{}, nil); err != nil {
		return nil, hello, err
	}
	conn.begin()
	return conn, hello, nil
}

// refuses says why a hello is not accepted. Who has not shown the token learns
// nothing else.
func (c Credentials) refuses(h Hello) string {
	switch {
	case !EqualTokens(h.Token, c.Token):
		return "wrong token"
	case h.Version != c.Version:
		return fmt.Sprintf("the %s is version %q, this is %q: all processes of a run are started from one version of stoke-trainer", h.Role, h.Version, c.Version)
	}
	return ""
}

// EqualTokens compares tokens in a time that says nothing about them.
func EqualTokens(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
