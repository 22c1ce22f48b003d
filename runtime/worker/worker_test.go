package worker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

var credentials = wire.Credentials{Token: "0123456789abcdef0123456789abcdef"}

// serve answers workers at a port of its own until the test ends: at that
// alone, for a worker that dials before the Unix socket beside it is there comes
// twice, and tests count.
func serve(t *testing.T, answer func(*wire.Conn, wire.Hello)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { credentials.Serve(ctx, struct{ net.Listener }{l}, answer, func(error) {}) })
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	return l.Addr().String()
}

// idle receives until the connection ends.
func idle(c *wire.Conn, _ wire.Hello) {
	for {
		if _, err := c.Receive(0); err != nil {
			return
		}
	}
}

func options(t *testing.T, coordinator, server string) Options {
	t.Helper()
	network := &model.Model{
		Name: "points", Input: model.Features{Type: model.U8, Shape: []int{2}}, Classes: 2, Metrics: []string{model.Accuracy},
		Layers: []model.Layer{{Name: "w", Op: model.Dense, Units: 2}}, Loss: model.SoftmaxCrossEntropy,
	}
	s := spec.Default()
	s.Worker.Replicas = 4
	return Options{
		Spec: s, Credentials: credentials, Coordinator: coordinator, Servers: []string{server}, Engine: cpu.New(),
		Workload: &workload.Workload{Model: network}, Log: slog.New(slog.DiscardHandler),
	}
}

// A worker that is told to leave does so, also where its server hangs up in the
// same moment: what it was told is its end, whichever it hears of first.
func TestToldToLeaveWhileTheServerHangsUp(t *testing.T) {
	for _, first := range []string{"coordinator", "server"} {
		told, hung := make(chan struct{}), make(chan struct{})
		server := serve(t, func(c *wire.Conn, h wire.Hello) {
			if first == "coordinator" {
				<-told
			}
			c.Close()
			select {
			case <-hung:
			default:
				close(hung)
			}
		})
		var once sync.Once
		coordinator := serve(t, func(c *wire.Conn, h wire.Hello) {
			if first == "server" {
				<-hung
			}
			c.Send(wire.TypeLeave, wire.Leave{Term: 1, End: spec.EndFinished, Reason: "over"}, nil)
			once.Do(func() { close(told) })
			idle(c, h)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := Run(ctx, options(t, coordinator, server))
		cancel()
		var how wire.Leave
		if !errors.As(err, &how) || how.End != spec.EndFinished {
			t.Errorf("the %s first: the worker ended with %v", first, err)
		}
	}
}

// A coordinator of a lower term than one that was heard of is not obeyed.
func TestLowerTermIsNotObeyed(t *testing.T) {
	calls := make(chan int, 10)
	n := 0
	var mu sync.Mutex
	coordinator := serve(t, func(c *wire.Conn, h wire.Hello) {
		mu.Lock()
		n++
		at := n
		mu.Unlock()
		calls <- at
		terms := map[int][]int64{1: {7, 6}, 2: {7}}[at] // the first one falls back
		for i, term := range terms {
			if i == len(terms)-1 {
				c.Send(wire.TypeLeave, wire.Leave{Term: term, End: spec.EndAsked, Reason: "leave"}, nil)
			} else {
				c.Send(wire.TypeApplied, wire.Applied{Term: term}, nil)
			}
		}
		idle(c, h)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var how wire.Leave
	if err := Run(ctx, options(t, coordinator, serve(t, idle))); !errors.As(err, &how) || how.Term != 7 {
		t.Errorf("the worker ended with %v", err)
	}
	if len(calls) != 2 {
		t.Errorf("%d sessions, want 2: the lower term was obeyed", len(calls))
	}
}

// Every session of a process shows the same instance, two processes do not; a
// deterministic run's worker says what its results depend on. Nobody is left
// in doubt on how many cores it computes.
func TestWhatAWorkerTellsOfItself(t *testing.T) {
	hellos := make(chan wire.Hello, 10)
	coordinator := serve(t, func(c *wire.Conn, h wire.Hello) {
		hellos <- h
		if len(hellos)%2 == 1 {
			return // the connection is lost
		}
		c.Send(wire.TypeLeave, wire.Leave{Term: 1, End: spec.EndAsked}, nil)
		idle(c, h)
	})
	var fitted []int
	o := options(t, coordinator, serve(t, idle))
	o.Cores, o.Fit = 8, func(threads int) { fitted = append(fitted, threads) }
	for _, deterministic := range []bool{false, true} {
		o.Spec.Deterministic = deterministic
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := Run(ctx, o); !errors.As(err, new(wire.Leave)) {
			t.Fatalf("the worker ended with %v", err)
		}
		cancel()
	}
	a, b, c, d := <-hellos, <-hellos, <-hellos, <-hellos
	if a.Instance == "" || a.Instance != b.Instance || c.Instance != d.Instance || a.Instance == c.Instance {
		t.Errorf("instances %q, %q; %q, %q", a.Instance, b.Instance, c.Instance, d.Instance)
	}
	if a.Class != "" || c.Class == "" || a.Threads != 2 {
		t.Errorf("%+v, deterministic %+v", a, c)
	}
	if !slices.Equal(fitted, []int{2, 2}) {
		t.Errorf("computes on %v cores of 8, as one of four", fitted)
	}
}

// A worker that finds no coordinator for longer than its patience ends so.
func TestPatience(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	o := options(t, nobody, nobody)
	o.Patience = time.Millisecond
	var how wire.Leave
	if err := Run(t.Context(), o); !errors.As(err, &how) || how.End != spec.EndNoCoordinator {
		t.Errorf("the worker ended with %v", err)
	}
}
