package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/certificate"
)

// encrypted is a run with a certificate: what its listeners have, and what
// those have who only connect.
func encrypted(t *testing.T) (server, client Credentials) {
	t.Helper()
	made, err := certificate.Make("run")
	if err != nil {
		t.Fatal(err)
	}
	server, client = ours, ours
	server.Certificate, server.Key = &made.Pin, made
	client.Certificate = &made.Pin
	return server, client
}

func TestVersionsAreComparedAtTheHello(t *testing.T) {
	c, s, err, refused := pair(t, Credentials{Token: token, Version: "1.2.4"})
	if !errors.Is(err, ErrRefused) || !errors.Is(refused, ErrRefused) || c != nil || s != nil {
		t.Fatalf("client %v, server %v", err, refused)
	}
	for _, want := range []string{`"1.2.4"`, `"1.2.3"`, "worker", "one version"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	// Who has not shown the token does not learn the version.
	if _, _, err, _ := pair(t, Credentials{Token: "wrong", Version: "1.2.4"}); err == nil || strings.Contains(err.Error(), "1.2.3") {
		t.Errorf("a stranger hears %v", err)
	}
}

func TestEncryptedConnection(t *testing.T) {
	server, client := encrypted(t)
	c, s, err, refused := meet(t, client, server)
	if err != nil || refused != nil {
		t.Fatal(err, refused)
	}
	values := make([]float32, 3*writePiece/4+1) // several pieces
	values[0], values[len(values)-1] = 1, 2
	go func() {
		if err := c.Send(TypePush, Push{ID: 1}, values); err != nil {
			t.Error(err)
		}
	}()
	m, err := s.Receive(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, m.Values)
	if err := s.Body(m, got); err != nil || len(got) != len(values) || got[0] != 1 || got[len(got)-1] != 2 {
		t.Errorf("%d values arrived: %v", len(got), err)
	}
}

// A stranger who is on the network, without the certificate or with another
// one, in the middle or at the end, reads and writes nothing, token or not.
func TestStrangersOnTheNetwork(t *testing.T) {
	server, client := encrypted(t)
	other, otherClient := encrypted(t)
	for name, tt := range map[string]struct{ client, server Credentials }{
		"plain, to a run with a certificate":    {ours, server},
		"with a certificate, to a plain server": {client, ours},
		"to another run":                        {client, other},
		"from another run":                      {otherClient, server},
	} {
		if c, s, err, _ := meet(t, tt.client, tt.server); err == nil || c != nil || s != nil {
			t.Errorf("%s: connected", name)
		}
	}
	// One in the middle sees no token.
	seen := make(chan []byte, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		defer raw.Close()
		thief := tls.Server(raw, other.Key.Server())
		thief.Handshake()
		text, _ := io.ReadAll(thief)
		seen <- text
	}()
	if _, err := client.Dial(context.Background(), l.Addr().String(), Hello{}); !errors.Is(err, certificate.ErrOther) {
		t.Errorf("the client met a stranger: %v", err)
	}
	if text := <-seen; len(text) > 0 {
		t.Errorf("a stranger got %d bytes", len(text))
	}
}

// elsewhere is a connection, or a listener, that is not on this machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5} }

type anywhere struct{ net.Listener }

func (anywhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 5} }

// Plain connections are for loopback alone.
func TestPlainOnlyOnLoopback(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go io.Copy(io.Discard, b)
	if _, err := ours.greet(context.Background(), elsewhere{a}, Hello{}); err == nil || !strings.Contains(err.Error(), "192.0.2.1:5") {
		t.Errorf("the token went over a network: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := ours.Serve(context.Background(), anywhere{l}, nil, nil); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("listened for everybody without a certificate: %v", err)
	}
	if _, err := ours.Listener(anywhere{l}); err == nil {
		t.Error("the API listened for everybody without a certificate")
	}
}

// A handshake that does not go on is given up, so that strangers cannot hold
// connections.
func TestHalfAHello(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go a.Write(make([]byte, 3))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := ours.accept(ctx, b); err == nil {
		t.Error("accepted")
	}
}
