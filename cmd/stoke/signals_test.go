package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
)

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
	g := &signals{stopping: make(chan struct{})}
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
