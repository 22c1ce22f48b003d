package program

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// follow reads metrics and looks for checkpoints until finish is closed, and once
// more then.
func (g *Generation) follow(finish <-chan struct{}) {
	ticks := time.NewTicker(g.machine.poll)
	defer ticks.Stop()
	for last := false; !last; {
		select {
		case <-ticks.C:
		case <-finish:
			last = true
		}
		for _, r := range g.ranks {
			if err := r.metrics.read(); err != nil {
				g.malformed(r, err)
			}
			if last {
				r.metrics.lines.flush()
			}
		}
		if !last && !g.checkpoints.isDue() {
			continue
		}
		for _, path := range g.checkpoints.look() {
			g.emit(Event{Kind: Complete, Rank: -1, Checkpoint: path})
		}
	}
}

// readLine reads a line that a rank has for stoke.
func (g *Generation) readLine(r *rank, line []byte, cut bool) {
	if cut {
		g.malformed(r, fmt.Errorf("the line is longer than %d bytes", lineBytes))
		return
	}
	report, err := parseReport(line)
	if err != nil {
		g.malformed(r, fmt.Errorf("%w: %s", err, harmless(line[:min(len(line), tailBytes)])))
		return
	}
	if len(report.values) > 0 || report.checkpoint == "" {
		g.emit(Event{Kind: Metric, Rank: r.number, Step: report.step, Values: report.values})
	}
	if report.checkpoint == "" {
		return
	}
	path, err := g.checkpoints.mark(report.checkpoint)
	if err != nil {
		g.malformed(r, err)
		return
	}
	g.emit(Event{Kind: Complete, Rank: r.number, Checkpoint: path})
}

// malformed counts a line, and reports the rank's first one.
func (g *Generation) malformed(r *rank, err error) {
	r.mu.Lock()
	r.malformed++
	first := r.malformed == 1
	r.mu.Unlock()
	if first {
		g.emit(Event{Kind: Malformed, Rank: r.number, Text: harmless([]byte(err.Error()))})
	}
}

// watcher finds checkpoints that become complete.
type watcher struct {
	dir string

	mu    sync.Mutex
	known map[string]time.Time // when the mark was made

	// Of the goroutine that looks.
	looked time.Time
	cost   time.Duration // of the last look
}

// lookShare bounds the cost of looks to a share of 1/lookShare of a core, whatever the
// number of checkpoints is.
const lookShare = 200

// isDue reports whether it is time for a look.
func (w *watcher) isDue() bool { return time.Since(w.looked) >= lookShare*w.cost }

// newWatcher returns a watcher that does not report checkpoints of earlier
// generations.
func newWatcher(dir string) *watcher {
	w := &watcher{dir: dir, known: make(map[string]time.Time)}
	w.look()
	return w
}

// look returns the checkpoints that are complete since the last look.
func (w *watcher) look() []string {
	if w.dir == "" {
		return nil
	}
	w.mu.Lock() // before the list is read: mark changes the files
	defer w.mu.Unlock()
	start := time.Now()
	defer func() { w.looked = time.Now(); w.cost = w.looked.Sub(start) }()
	all, err := Checkpoints(w.dir)
	if err != nil {
		return nil // it may be readable at the next look
	}
	var fresh []string
	for _, c := range all {
		if !w.known[c.Path].Equal(c.Marked) {
			w.known[c.Path] = c.Marked
			fresh = append(fresh, c.Path)
		}
	}
	return fresh
}

// mark makes a checkpoint that a rank reported complete for later generations too.
func (w *watcher) mark(name string) (string, error) {
	path, folder, err := locate(w.dir, name)
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := complete(path, folder); err != nil {
		return "", err
	}
	if info, err := os.Lstat(markerOf(path, folder)); err == nil {
		w.known[filepath.Clean(path)] = info.ModTime()
	}
	return path, nil
}
