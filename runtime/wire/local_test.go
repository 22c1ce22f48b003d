package wire

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// accepted serves one listener and says what each connection came over.
func accepted(t *testing.T, c Credentials, l net.Listener) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	networks := make(chan string, 16)
	var serving sync.WaitGroup
	serving.Go(func() {
		c.Serve(ctx, l, func(conn *Conn, _ Hello) {
			networks <- conn.conn.LocalAddr().Network()
			conn.Receive(0) // until the other side goes
		}, func(error) {})
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	return networks
}

func dialled(t *testing.T, c Credentials, address string) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := c.Dial(ctx, address, Hello{Role: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestFramesOfOneMachineTakeAUnixSocket(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has names for sockets that vanish with their process")
	}
	mine := Credentials{Token: strings.Repeat("a", 40)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	// The port is open before anybody serves it, as under a supervisor.
	early := make(chan *Conn)
	go func() { early <- dialled(t, mine, address) }()
	networks := accepted(t, mine, l)
	if c := <-early; c.unix == nil {
		t.Error("a connection that was begun early stays with TCP")
	}
	if c := dialled(t, mine, address); c.unix == nil {
		t.Error("a connection takes TCP")
	}
	unix := 0
	for unix < 2 { // one over TCP may have come before
		if <-networks == "unix" {
			unix++
		}
	}
	// Who does not know the token finds no such socket.
	if c := (Credentials{Token: strings.Repeat("b", 40)}).dialLocal(context.Background(), address); c != nil {
		t.Error("the socket has a name that strangers know")
	}
	// Another listener's socket is another one.
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if c := mine.dialLocal(context.Background(), other.Addr().String()); c != nil {
		t.Error("two ports have one socket")
	}
}

func TestEncryptedConnectionsStayEncrypted(t *testing.T) {
	server, client := encrypted(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	networks := accepted(t, server, l)
	if c := dialled(t, client, l.Addr().String()); c.unix != nil || <-networks != "tcp" {
		t.Error("a run with a certificate uses a plain socket")
	}
}

func TestNetworkTakesTCP(t *testing.T) {
	network := Credentials{Token: strings.Repeat("a", 40), Network: true}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	networks := accepted(t, network, l)
	if c := dialled(t, network, l.Addr().String()); c.unix != nil || <-networks != "tcp" {
		t.Error("a connection that stays with TCP uses a local socket")
	}
}

// A server ends that is told to while it begins, whichever of its listeners
// hears of it first.
func TestServeEndsWhileItBegins(t *testing.T) {
	for range 300 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- ours.Serve(ctx, l, func(*Conn, Hello) {}, func(error) {}) }()
		runtime.Gosched()
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the server does not end")
		}
	}
}
