package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signals turns SIGINT and SIGTERM into what the engine understands: the
// first closes stopping, the second ends the context. A terminal that goes away
// (SIGHUP) counts as a first one, however often it says so.
type signals struct {
	stopping chan struct{}
}

const (
	firstSignal = "\nInterrupt received.\n" +
		"Stoke finishes the steps that are under way, writes the state and exits; please wait.\n" +
		"A second interrupt stops those steps at once.\n\n"
	secondSignal = "\nSecond interrupt: stopping what is under way. What was done stays recorded.\n\n"
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
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; n < 2; {
			var sig os.Signal
			select {
			case sig = <-heard:
			case <-quit:
				return
			}
			if n > 0 && sig == syscall.SIGHUP {
				continue
			}
			if n++; n == 1 {
				close(g.stopping)
				say(firstSignal)
			} else {
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

// unread keeps the process alive while nobody reads what it prints (apply | head)
// until the returned function is called: what is under way is worth more than
// the telling of it.
func unread() func() {
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
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
