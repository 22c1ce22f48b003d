package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signals turns SIGINT and SIGTERM into what the engine understands: the
// first closes stopping, the second ends the context.
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
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; n < 2; n++ {
			select {
			case <-heard:
			case <-quit:
				return
			}
			if n == 0 {
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
