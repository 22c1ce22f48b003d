package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
)

// stage is the process around a command: its streams and environment, and the
// providers that are built into it.
type stage struct {
	in, out, err *os.File
	environ      []string
	built        providers.Catalogue
}

// getenv returns a variable of the environment, "" where it is not set.
func (st stage) getenv(name string) string {
	for i := len(st.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(st.environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// isTerminal reports whether a stream is a screen or a keyboard.
func isTerminal(f *os.File) bool { return terminal.IsTerminal(f) }

// screen says how large the terminal behind a stream is.
func screen(f *os.File) view.Terminal {
	return func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0, 0
		}
		return columns, rows
	}
}

// printer dresses a stream: colours on a terminal that wants them, frames
// unless -no-color asks for bare text.
func (st stage) printer(f *os.File, noColor bool) *view.Printer {
	p := &view.Printer{Out: f, Box: !noColor}
	if isTerminal(f) {
		p.Color = !noColor && st.getenv("NO_COLOR") == "" && st.getenv("TERM") != "dumb"
		p.Width, _ = screen(f)()
	}
	return p
}

// live is the terminal to draw a live area on; nil where there is none.
func (st stage) live() view.Terminal {
	if !isTerminal(st.out) || st.getenv("TERM") == "dumb" {
		return nil
	}
	return screen(st.out)
}

// mayAsk reports whether people may be asked: -input and TF_INPUT allow it.
func (st stage) mayAsk(input bool) bool {
	if text := st.getenv("TF_INPUT"); text != "" {
		if allowed, err := strconv.ParseBool(text); err == nil && !allowed {
			return false
		}
	}
	return input
}

// automated reports whether nobody reads hints about what to run next.
func (st stage) automated() bool { return st.getenv("TF_IN_AUTOMATION") != "" }

// dataDir is the folder for what belongs to this working directory alone.
func (st stage) dataDir() string {
	if dir := st.getenv("TF_DATA_DIR"); dir != "" {
		return dir
	}
	return ".terraform"
}

// outlet is the standard output. It keeps the first write error: most printing
// code does not check errors, and a pipeline must learn that its input is
// incomplete.
type outlet struct {
	file *os.File

	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *outlet) Write(text []byte) (int, error) {
	n, err := o.file.Write(text)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// writeError is what went wrong with the standard output, nil for nothing. A reader
// who has gone is no mistake.
func (o *outlet) writeError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return o.err
}
