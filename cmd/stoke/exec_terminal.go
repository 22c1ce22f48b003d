package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/stokehq/stoke/providers"
)

// terminal is the session's, given to a command. It is read first when the
// command runs: from then on keys go to it as they are, Ctrl-C among them, which
// stops stoke until then.
type terminal struct {
	in    *os.File
	sizes chan providers.RunSize // the present one first, then every change

	mu     sync.Mutex
	before *term.State // as it is given back; nil while keys are stoke's
	back   bool
	stop   func()
}

// give hands the terminal over, until takeBack.
func (s *session) give(ctx context.Context) *terminal {
	ctx, cancel := context.WithCancel(ctx)
	t := &terminal{in: s.stage.in, sizes: make(chan providers.RunSize)}
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		defer close(done)
		for {
			columns, rows, err := term.GetSize(int(s.stage.out.Fd()))
			if err == nil && columns > 0 && rows > 0 {
				select {
				case t.sizes <- providers.RunSize{Columns: uint16(columns), Rows: uint16(rows)}:
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.stop = func() {
		signal.Stop(changed)
		cancel()
		<-done
	}
	return t
}

// Read gives the keys.
func (t *terminal) Read(b []byte) (int, error) {
	if err := t.raw(); err != nil {
		return 0, err
	}
	return t.in.Read(b)
}

func (t *terminal) raw() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.back {
		return io.EOF
	}
	if t.before == nil {
		if t.before, err = term.MakeRaw(int(t.in.Fd())); err != nil {
			return fmt.Errorf("hand the terminal over: %w", err)
		}
	}
	return nil
}

func (t *terminal) takeBack() {
	t.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back = true
	if t.before != nil {
		_ = term.Restore(int(t.in.Fd()), t.before)
	}
}
