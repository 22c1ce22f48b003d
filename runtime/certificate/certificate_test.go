package certificate

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// meet has a client with a pin talk to a server, over a socket: both may write
// at once, which a net.Pipe would never let them finish.
func meet(t *testing.T, server *tls.Config, client *tls.Config) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	defer func() { <-served }()
	defer listener.Close()
	go func() {
		defer close(served)
		s, err := listener.Accept()
		if err != nil {
			return
		}
		defer s.Close()
		if s.(*tls.Conn).Handshake() == nil {
			s.Write([]byte("x"))
		}
	}()
	a, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	c := tls.Client(a, client)
	if err := c.Handshake(); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

func TestOnlyTheRunItselfIsTrusted(t *testing.T) {
	ours, err := Make("ours")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Make("ours")
	if err != nil {
		t.Fatal(err)
	}
	if err := meet(t, ours.Server(), ours.Client()); err != nil {
		t.Error("our own:", err)
	}
	if err := meet(t, other.Server(), ours.Client()); !errors.Is(err, ErrOther) {
		t.Error("another run's certificate with the same name:", err)
	}
	// Who shows our certificate without its key fails in the handshake.
	thief := &tls.Config{Certificates: []tls.Certificate{{Certificate: ours.pair.Certificate, PrivateKey: other.pair.PrivateKey}}}
	if err := meet(t, thief, ours.Client()); err == nil {
		t.Error("our certificate with another key was trusted")
	}
	old := ours.Server()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if err := meet(t, old, ours.Client()); err == nil {
		t.Error("TLS 1.2 was spoken")
	}
}

func TestText(t *testing.T) {
	made, err := Make("run")
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.PEM()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := meet(t, back.Server(), made.Client()); err != nil {
		t.Error(err)
	}
	pin, err := ReadPin(made.Pin.PEM())
	if err != nil {
		t.Fatal(err)
	}
	if err := meet(t, made.Server(), pin.Client()); err != nil {
		t.Error(err)
	}
	if bytes.Contains(made.Pin.PEM(), []byte("PRIVATE")) {
		t.Error("the pin has the private key")
	}
	for name, text := range map[string][]byte{"nothing": nil, "a pin": made.Pin.PEM(), "rubbish": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "half": text[:len(text)/2]} {
		if _, err := Read(text); err == nil || !strings.HasPrefix(err.Error(), "read certificate:") {
			t.Errorf("%s was read as a certificate with a key: %v", name, err)
		}
	}
}
