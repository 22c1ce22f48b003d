package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
)

// signals turns SIGINT and SIGTERM into what the engine understands: the
// first closes stopping, the second ends the context.
type signals struct {
	stopping chan struct{}
	now      func() time.Time // time.Now where it is nil
}

// signalWindow is for how long signals count as one. A person does not press Ctrl-C
// twice that fast, but a process may get two signals at once: timeout(1) signals
// it and then its process group.
const signalWindow = 200 * time.Millisecond

// interrupts counts what is heard.
type interrupts struct {
	n     int
	first time.Time
}

// counts reports whether a signal counts. A terminal that goes away (SIGHUP) is a
// first interrupt, however often it says so.
func (i *interrupts) counts(sig os.Signal, at time.Time) bool {
	if i.n > 0 && (sig == syscall.SIGHUP || at.Sub(i.first) < signalWindow) {
		return false
	}
	if i.n++; i.n == 1 {
		i.first = at
	}
	return true
}

const (
	firstSignal = "\nInterrupt received.\n" +
		"Stoke finishes the steps that are under way, writes the state and exits; please wait.\n" +
		"A second interrupt stops those steps at once.\n\n"
	secondSignal = "\nSecond interrupt: stopping what is under way. Completed changes stay recorded.\n\n"
)

var errInterrupted = errors.New("interrupted twice")

// interrupted reports whether a signal has come.
func (g *signals) interrupted() bool {
	select {
	case <-g.stopping:
		return true
	default:
		return false
	}
}

// watch listens until the returned function is called, which waits for the
// listener's end.
func (g *signals) watch(parent context.Context, say func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	heard := make(chan os.Signal, 16) // hangups may come in numbers, and no interrupt may be lost
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it goes on
		signal.Notify(heard, syscall.SIGHUP)
	}
	now := g.now
	if now == nil {
		now = time.Now
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for count := (interrupts{}); count.n < 2; {
			var sig os.Signal
			select {
			case sig = <-heard:
			case <-quit:
				return
			}
			switch {
			case !count.counts(sig, now()):
			case count.n == 1:
				close(g.stopping)
				say(firstSignal)
			default:
				say(secondSignal)
				cancel(errInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		close(quit)
		<-done
		cancel(nil)
	}
}

// ignoreSIGPIPE keeps the process alive when the reader of its output goes away (apply |
// head), until the returned function is called: the operations in progress matter
// more than their report.
func ignoreSIGPIPE() func() {
	heard := make(chan os.Signal, 1) // never read: what is noted is enough
	signal.Notify(heard, syscall.SIGPIPE)
	return func() { signal.Stop(heard) }
}

// untilStopped is a context that the first signal ends already, for waits
// that can be given up at once.
func (g *signals) untilStopped(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-g.stopping:
			cancel(terminal.ErrStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
