package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"
)

const token = "0123456789abcdef0123456789abcdef"

var ours = Credentials{Token: token, Version: "1.2.3"}

// pair connects a client with these credentials to a server of the run's.
func pair(t *testing.T, client Credentials) (c, s *Conn, err, refused error) {
	t.Helper()
	return meet(t, client, ours)
}

// meet connects a client to a server over loopback.
func meet(t *testing.T, client, server Credentials) (c, s *Conn, err, refused error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	served, declined := make(chan *Conn, 4), make(chan error, 4)
	go func() {
		defer close(ended)
		if err := server.Serve(ctx, l, func(conn *Conn, h Hello) {
			served <- conn
			<-ctx.Done()
		}, func(err error) { declined <- err }); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	c, err = client.Dial(ctx, l.Addr().String(), Hello{Role: "worker"})
	if c == nil {
		select {
		case refused = <-declined:
		case s = <-served:
		}
		return c, s, err, refused
	}
	t.Cleanup(func() { c.Close() })
	for s == nil || (s.unix == nil) != (c.unix == nil) { // it may have begun over TCP and gone on over the Unix socket
		s = <-served
	}
	return c, s, err, refused
}

func TestValuesTravelUnchanged(t *testing.T) {
	client, server, err, serr := pair(t, ours)
	if err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	want := []float32{0, -1.5, float32(math.Inf(1)), math.MaxFloat32, math.SmallestNonzeroFloat32}
	for range 3 {
		if err := client.Send(TypePush, Push{ID: 7}, want); err != nil {
			t.Fatal(err)
		}
		m, err := server.Receive(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var p Push
		if err := m.Decode(&p); err != nil || p.ID != 7 || m.Values != len(want) {
			t.Fatalf("%+v %d %v", p, m.Values, err)
		}
		got := make([]float32, m.Values)
		if err := server.Body(m, got); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("value %d: %v, want %v", i, got[i], want[i])
			}
		}
	}
}

func TestPlatformIsLittleEndian(t *testing.T) {
	if got := binary.LittleEndian.Uint32(raw([]float32{1.5})); got != math.Float32bits(1.5) {
		t.Errorf("1.5 lies in memory as %#x", got)
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	for _, with := range []string{"", "x", token[:31], token + "0"} {
		client, server, err, serr := pair(t, Credentials{Token: with, Version: ours.Version})
		if !errors.Is(err, ErrRefused) || !errors.Is(serr, ErrRefused) || client != nil || server != nil {
			t.Errorf("token %q: client %v, server %v", with, err, serr)
		}
	}
}

func TestMalformedFramesAreRefused(t *testing.T) {
	good := func() []byte {
		b := make([]byte, headerBytes+2)
		copy(b[headerBytes:], "{}")
		header{kind: TypeHello, head: 2, sum: 0x6d8b8a5d}.put(b)
		return b
	}
	tests := map[string]struct {
		bytes func() []byte
		want  string
	}{
		"not ours":       {func() []byte { return []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n") }, "not a frame"},
		"other protocol": {func() []byte { b := good(); b[2] = 9; return b }, "protocol 9"},
		"huge head":      {func() []byte { b := good(); binary.LittleEndian.PutUint32(b[4:], 1<<31); return b }, "over the limit"},
		"huge body":      {func() []byte { b := good(); binary.LittleEndian.PutUint32(b[8:], 1<<31); return b }, "over the limit"},
		"bad checksum":   {func() []byte { b := good(); b[12]++; return b }, "checksum"},
		"cut off":        {func() []byte { return good()[:headerBytes+1] }, io.ErrUnexpectedEOF.Error()},
	}
	for name, tt := range tests {
		a, b := sockets(t) // a pipe in memory refuses a deadline once its other end has closed; a socket does not
		go func() {
			a.Write(tt.bytes())
			a.Close()
		}()
		if c, _, err := ours.accept(context.Background(), b); err == nil || !strings.Contains(err.Error(), tt.want) || c != nil {
			t.Errorf("%s: %v, want an error with %q", name, err, tt.want)
		}
	}
}

// sockets returns both ends of a connection over loopback.
func sockets(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestSpoiledHeadIsRefused(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	c := newConn(b)
	defer c.Close()
	go func() {
		frame := make([]byte, headerBytes+2+4)
		copy(frame[headerBytes:], "{}")
		header{kind: TypePush, head: 2, body: 4, sum: 1}.put(frame)
		a.Write(frame)
	}()
	if m, err := c.Receive(time.Minute); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a head that does not match its checksum: message %v, error %v", m, err)
	}
}

func BenchmarkPush(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	values := make([]float32, 110_000)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go ours.Serve(ctx, l, func(c *Conn, _ Hello) {
		into := make([]float32, len(values))
		for {
			m, err := c.Receive(0)
			if err != nil || c.Body(m, into) != nil || c.Send(TypeAnswer, Answer{}, nil) != nil {
				return
			}
		}
	}, func(err error) { b.Error(err) })
	c, err := ours.Dial(ctx, l.Addr().String(), Hello{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.SetBytes(int64(4 * len(values)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send(TypePush, Push{}, values); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Receive(0); err != nil {
			b.Fatal(err)
		}
	}
}
