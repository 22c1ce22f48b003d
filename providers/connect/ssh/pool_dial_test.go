package ssh

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// TestPoolDials reaches a server as the machine calls it, and goes on after the
// connection was forgotten.
func TestPoolDials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer server.Close()
	p := &Pool{}
	defer p.Close()
	target := Target{Hop: hop(serverWith(t, sshtest.Config{}), byPassword)}
	for range 2 {
		conn, err := p.DialContext(t.Context(), target, "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
		said, err := io.ReadAll(conn)
		if err != nil || !strings.HasSuffix(string(said), "hello") {
			t.Errorf("%q, %v", said, err)
		}
		conn, err = p.DialContext(t.Context(), target, "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		p.Forget(target)
		if _, err := io.ReadAll(conn); err == nil {
			if _, err := conn.Write([]byte("x")); err == nil {
				t.Error("a connection outlives the one that it goes through")
			}
		}
	}
	if _, err := p.Run(t.Context(), target, func() Command { return Command{Args: []string{"true"}} }, false); err != nil {
		t.Errorf("after Forget: %v", err)
	}
}

func TestPoolDialIsRefused(t *testing.T) {
	p := &Pool{}
	defer p.Close()
	target := Target{Hop: hop(serverWith(t, sshtest.Config{}), byPassword)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, err = p.DialContext(t.Context(), target, "tcp", address); err == nil || IsPermanent(err) || !strings.Contains(err.Error(), "Connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
	target.Hop = hop(serverWith(t, sshtest.Config{NoForwarding: true}), byPassword)
	if _, err = p.DialContext(t.Context(), target, "tcp", address); !IsPermanent(err) || !strings.Contains(err.Error(), "AllowTcpForwarding") {
		t.Errorf("forbidden: %v", err)
	}
}

func TestForgetOfNothing(t *testing.T) {
	p := &Pool{}
	target := Target{Hop: Hop{Address: "192.0.2.1"}}
	p.Forget(target)
	p.Close()
	p.Forget(target)
}
