package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestInterrupts: what comes at the same time is one interrupt.
func TestInterrupts(t *testing.T) {
	type heard struct {
		sig    os.Signal
		at     time.Duration
		counts bool
	}
	for name, all := range map[string][]heard{
		"by hand":            {{os.Interrupt, 0, true}, {os.Interrupt, 300 * time.Millisecond, true}},
		"timeout":            {{syscall.SIGTERM, 0, true}, {syscall.SIGTERM, time.Millisecond, false}},
		"timeout, then hand": {{syscall.SIGTERM, 0, true}, {syscall.SIGTERM, time.Millisecond, false}, {os.Interrupt, signalWindow, true}},
		"impatience":         {{os.Interrupt, 0, true}, {os.Interrupt, 150 * time.Millisecond, false}, {os.Interrupt, 250 * time.Millisecond, true}},
		"terminal":           {{syscall.SIGHUP, 0, true}, {syscall.SIGHUP, time.Hour, false}, {syscall.SIGTERM, time.Hour, true}},
	} {
		var count interrupts
		began := time.Now()
		for i, h := range all {
			if got := count.counts(h.sig, began.Add(h.at)); got != h.counts {
				t.Errorf("%s: signal %d counts: %v", name, i, got)
			}
		}
	}
}

// A terminal that goes away says so to a whole group of processes, and often
// twice: that must not stop what is under way.
func TestHangupCountsOnce(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("started by something that is to outlive its terminal")
	}
	came := make(chan os.Signal, 8)
	signal.Notify(came, syscall.SIGHUP, os.Interrupt) // as long as the test lasts
	send := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		<-came
	}
	clock := time.Now()
	g := &signals{stopping: make(chan struct{}), now: func() time.Time { clock = clock.Add(time.Second); return clock }}
	var said atomic.Int32
	ctx, stop := g.watch(t.Context(), func(string) { said.Add(1) })
	defer stop()

	send(syscall.SIGHUP)
	<-g.stopping
	send(syscall.SIGHUP)
	send(syscall.SIGHUP)
	if ctx.Err() != nil {
		t.Fatal("the second hangup ended the context")
	}
	send(syscall.SIGINT)
	<-ctx.Done()
	if n := said.Load(); n != 2 {
		t.Errorf("said %d things, want one for the first hangup and one for the interrupt", n)
	}
}
