package watch

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/cmd/stoke/terminal"
	"github.com/stokehq/stoke/providers"
)

// Source is a run to watch.
type Source struct {
	Name string
	// Open finds the run: at first, and again after its connection was lost.
	Open func(context.Context) (providers.Run, error)
}

// Options say what is shown, and where.
type Options struct {
	Sources []Source
	// Clean removes secrets from a text of a run.
	Clean func(string) string
	// In and Out are a terminal. Where Out is nil, plain lines are written to Lines.
	In, Out *os.File
	Lines   io.Writer
	Columns int // of Lines; 0: any
	Color   bool
}

// frameTime is the time between two frames at least.
const frameTime = 250 * time.Millisecond

// Show shows the runs until all of them have ended, a key leaves, or ctx is done. It
// returns the last status of the runs that were read, by name.
func Show(ctx context.Context, o Options) map[string]providers.RunStatus {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news := make(chan struct{}, 1)
	tell := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	var feeds []*feed
	var reading sync.WaitGroup
	for _, s := range o.Sources {
		f := newFeed(s, o.Clean, tell)
		feeds = append(feeds, f)
		reading.Go(func() { f.read(ctx) })
	}
	over := make(chan struct{})
	go func() {
		reading.Wait()
		close(over)
	}()
	if o.Out == nil {
		(&lines{Options: o, feeds: feeds}).show(ctx, news, over)
	} else {
		(&window{Options: o, feeds: feeds}).show(ctx, news, over)
	}
	last := make(map[string]providers.RunStatus)
	for _, f := range feeds {
		f.mu.Lock()
		if f.known {
			last[f.source.Name] = f.status
		}
		f.mu.Unlock()
	}
	return last
}

// window is the terminal while runs are shown on it.
type window struct {
	Options
	feeds []*feed
	choice
	size   providers.RunSize
	frozen []view
	drawn  []string // as the terminal has them
}

const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J" // another screen, without cursor and wrapping
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// show draws until all runs have ended, a key leaves, or ctx is done.
func (w *window) show(ctx context.Context, news, over <-chan struct{}) {
	keys := terminal.Give(ctx, w.In, w.Out)
	defer keys.TakeBack()
	_, _ = w.Out.WriteString(enter)
	defer func() { _, _ = w.Out.WriteString(leave) }()
	pressed := make(chan []byte)
	go func() { // for as long as the process lives: a read from a terminal cannot be called off
		defer close(pressed)
		for {
			b := make([]byte, 256)
			n, err := keys.Read(b)
			if n > 0 {
				pressed <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	var next <-chan time.Time // the next frame, when there is news
	var last time.Time
	for {
		select {
		case w.size = <-keys.Sizes:
			w.drawn = nil
			w.draw()
			last = time.Now()
		case <-news:
			if next == nil {
				next = time.After(time.Until(last.Add(frameTime)))
			}
		case <-next:
			next, last = nil, time.Now()
			if !w.paused {
				w.draw()
			}
		case b, ok := <-pressed:
			if !ok || w.take(b) {
				return
			}
			w.draw()
		case <-over:
			w.draw()
			return
		case <-ctx.Done():
			return
		}
	}
}

// take takes keys. It reports whether one of them leaves.
func (w *window) take(b []byte) (leaves bool) {
	for len(b) > 0 {
		key, n := nextKey(b)
		b = b[n:]
		roles := 0
		if v := w.views(); w.run < len(v) {
			roles = len(v[w.run].status.Roles)
		}
		was := w.paused
		if w.press(key, len(w.feeds), roles, max(1, int(w.size.Rows)/3)) {
			return true
		}
		if w.paused != was {
			w.frozen = nil
			if w.paused {
				w.frozen = w.freeze()
			}
		}
	}
	return false
}

func (w *window) freeze() (all []view) {
	for _, f := range w.feeds {
		all = append(all, f.view(true))
	}
	return all
}

// views returns the present views, or the views at the moment of the pause.
func (w *window) views() (all []view) {
	if w.frozen != nil {
		return w.frozen
	}
	for _, f := range w.feeds {
		all = append(all, f.view(false))
	}
	return all
}

// draw writes the lines that differ from the last frame.
func (w *window) draw() {
	if w.size.Columns == 0 || w.size.Rows == 0 {
		return
	}
	f := frame{choice: w.choice, columns: int(w.size.Columns), rows: int(w.size.Rows), color: w.Color, now: time.Now()}
	lines := f.draw(w.views())
	var b strings.Builder
	if w.drawn == nil {
		b.WriteString("\x1b[2J")
	}
	for i, line := range lines {
		if i < len(w.drawn) && w.drawn[i] == line {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[K%s", i+1, line)
	}
	w.drawn = lines
	if b.Len() > 0 {
		_, _ = w.Out.WriteString("\x1b[?2026h" + b.String() + "\x1b[?2026l") // in one step where the terminal can
	}
}
