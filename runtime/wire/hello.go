package wire

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"time"
)

// Hello opens every connection.
type Hello struct {
	Token string `json:"token"`
	Role  string `json:"role"`  // of the one who dials
	Index int    `json:"index"` //
	PID   int    `json:"pid"`
}

// handshake bounds the first exchange.
const handshake = 10 * time.Second

// ErrRefused means that the other side did not take the token.
var ErrRefused = errors.New("connection refused: wrong token")

// Dial connects and introduces itself. The welcome tells that the other side
// is ready.
func Dial(ctx context.Context, address string, hello Hello) (*Conn, error) {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	tcp, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := newConn(tcp)
	stop := context.AfterFunc(ctx, func() { tcp.Close() })
	defer stop()
	if err := c.Send(TypeHello, hello, nil); err != nil {
		c.Close()
		return nil, err
	}
	m, err := c.receive(handshake, maxHello, 0)
	switch {
	case err != nil:
		c.Close()
		if ctx.Err() != nil { // that is why the connection was closed
			err = ctx.Err()
		}
		return nil, fmt.Errorf("greet %s: %w", address, err)
	case m.Type == TypeRefused:
		c.Close()
		return nil, ErrRefused
	case m.Type != TypeWelcome:
		c.Close()
		return nil, fmt.Errorf("greet %s: answered with %s", address, m.Type)
	}
	return c, nil
}

// Accept answers one who dialled. Whoever cannot show the token is told so and
// nothing else; the returned connection is then nil.
func Accept(tcp net.Conn, token string) (*Conn, Hello, error) {
	c := newConn(tcp)
	var hello Hello
	m, err := c.receive(handshake, maxHello, 0)
	if err == nil && m.Type != TypeHello {
		err = fmt.Errorf("first frame is %s", m.Type)
	}
	if err == nil {
		err = m.Decode(&hello)
	}
	if err == nil && !Same(hello.Token, token) {
		c.Send(TypeRefused, struct{}{}, nil) // as a courtesy: it is closed either way
		err = ErrRefused
	}
	if err == nil {
		err = c.Send(TypeWelcome, struct{}{}, nil)
	}
	if err != nil {
		c.Close()
		return nil, Hello{}, fmt.Errorf("accept %s: %w", tcp.RemoteAddr(), err)
	}
	hello.Token = ""
	return c, hello, nil
}

// Same compares secrets in a time that tells nothing about them.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
