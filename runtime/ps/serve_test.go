package ps

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/wire"
)

// serve runs a server until the test ends.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestHostilePeersDoNoHarm(t *testing.T) {
	s := restored(t, io.Discard)
	address := serve(t, s)
	ctx := context.Background()
	stranger := wire.Credentials{Token: "wrong"}
	if _, err := stranger.Dial(ctx, address, wire.Hello{Role: "coordinator"}); !errors.Is(err, wire.ErrRefused) {
		t.Errorf("wrong token: %v", err)
	}
	garbage, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(garbage, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if data, err := io.ReadAll(garbage); len(data) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("garbage was answered with %q, %v", data, err)
	}
	garbage.Close()

	dial := func(role string) *wire.Conn {
		t.Helper()
		c, err := credentials.Dial(ctx, address, wire.Hello{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	ask := func(c *wire.Conn, kind wire.Type, head any, body []float32) wire.Answer {
		t.Helper()
		if err := c.Send(kind, head, body); err != nil {
			t.Fatal(err)
		}
		m, err := c.Receive(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var a wire.Answer
		if err := m.Decode(&a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	w := dial("worker")
	if a := ask(w, wire.TypeApply, wire.Apply{Term: 3, Version: 10, Skip: true}, nil); a.Error == "" {
		t.Error("a worker applied an update")
	}
	if a := ask(w, wire.TypePush, push(1, true, 10), make([]float32, 1000)); a.Refused == "" {
		t.Error("a push of another length was taken")
	}
	if a := ask(w, wire.TypePush, push(1, true, 10), make([]float32, 4)); a != (wire.Answer{}) {
		t.Errorf("a good push after a bad one: %+v", a)
	}
	if a := ask(dial("coordinator"), wire.TypePush, push(2, true, 10), nil); a.Error == "" {
		t.Error("the coordinator pushed")
	}
	// One that hangs up in the middle of a push leaves nothing behind.
	half := dial("worker")
	if err := half.Send(wire.TypePull, wire.Pull{Term: 3, Version: 11, Have: -1}, nil); err != nil {
		t.Fatal(err)
	}
	half.Close() // while it waits for a version that is not there yet
	if diff := cmp.Diff([]float32{1, 2, 3, 4}, values(t, s, 3, 10)); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkPullPush(b *testing.B) {
	const n = 110_000
	s := newServer(io.Discard)
	restore(b, s, wire.Restore{Term: 3, To: n, Recipe: recipe, Vars: []model.Var{{Len: n}}}, make([]float32, n))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.Serve(ctx, l)
	c, err := credentials.Dial(ctx, l.Addr().String(), wire.Hello{Role: "worker"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	values := make([]float32, n)
	version := int64(0)
	var pull, pushed, commit time.Duration
	for b.Loop() {
		t0 := time.Now()
		c.Send(wire.TypePull, wire.Pull{Term: 3, Version: version, Have: -1}, nil)
		m, err := c.Receive(0)
		if err != nil || c.Body(m, values) != nil {
			b.Fatal("pull")
		}
		t1 := time.Now()
		c.Send(wire.TypePush, push(version, true, version), values)
		if _, err := c.Receive(0); err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		s.prepare(context.Background(), wire.Prepare{Term: 3, Version: version, IDs: []int64{version}, Weight: 1})
		if a := s.apply(wire.Apply{Term: 3, Version: version, Scale: 1, Recipe: recipe}); a != (wire.Answer{}) {
			b.Fatal(a)
		}
		version++
		pull, pushed, commit = pull+t1.Sub(t0), pushed+t2.Sub(t1), commit+time.Since(t2)
	}
	for name, d := range map[string]time.Duration{"µs/pull": pull, "µs/push": pushed, "µs/commit": commit} {
		b.ReportMetric(float64(d.Microseconds())/float64(b.N), name)
	}
}

// pull is await for tests: nothing ends it.
func (s *Server) pull(p wire.Pull, closed <-chan struct{}) (wire.Values, *vector, *wire.Answer) {
	a := s.await(p, &link{closed: closed})
	return a.head, a.held, a.refused
}
