package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"github.com/stokehq/stoke/providers"
)

// Keys are the keys and the sizes of a terminal that a command was given. The first
// read switches it to raw keys, Ctrl-C among them; until then Ctrl-C stops stoke.
type Keys struct {
	in    *os.File
	Sizes chan providers.RunSize // the present one first, then every change

	mu     sync.Mutex
	before *term.State // as it is given back; nil while keys are stoke's
	back   bool
	stop   func()
}

// Give gives a terminal to a command until TakeBack.
func Give(ctx context.Context, in, out *os.File) *Keys {
	ctx, cancel := context.WithCancel(ctx)
	t := &Keys{in: in, Sizes: make(chan providers.RunSize)}
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		defer close(done)
		for {
			columns, rows, err := term.GetSize(int(out.Fd()))
			if err == nil && columns > 0 && rows > 0 {
				select {
				case t.Sizes <- providers.RunSize{Columns: uint16(columns), Rows: uint16(rows)}:
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

// IsTerminal reports whether a stream is a screen or a keyboard.
func IsTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }

// Read gives the keys.
func (t *Keys) Read(b []byte) (int, error) {
	if err := t.raw(); err != nil {
		return 0, err
	}
	return t.in.Read(b)
}

func (t *Keys) raw() (err error) {
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

// TakeBack restores the terminal.
func (t *Keys) TakeBack() {
	t.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back = true
	if t.before != nil {
		_ = term.Restore(int(t.in.Fd()), t.before)
	}
}
