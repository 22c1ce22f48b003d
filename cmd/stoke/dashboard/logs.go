package dashboard

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Bounds of a log on a page.
const (
	fewLines = 500
	maxLines = 20_000
)

// logRequest is which lines a browser wants.
type logRequest struct {
	options providers.RunLogs
	search  string // in lower case
	lines   int
}

// logRequestOf reads the parameters role, stream, q and lines.
func logRequestOf(r *http.Request) logRequest {
	q := r.URL.Query()
	l := logRequest{options: providers.RunLogs{Role: q.Get("role")}, search: strings.ToLower(q.Get("q")), lines: fewLines}
	if stream := q.Get("stream"); stream == "stdout" || stream == "stderr" {
		l.options.Stream = stream
	}
	if n, err := strconv.Atoi(q.Get("lines")); err == nil {
		l.lines = min(max(n, 1), maxLines)
	}
	return l
}

// wants reports whether the search finds a line.
func (l *logRequest) wants(line providers.RunLine) bool {
	return l.search == "" || strings.Contains(strings.ToLower(line.Text), l.search)
}

// logLine is a line for scripts.
type logLine struct {
	Role   string `json:"role"`
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// tail keeps the newest lines until they are sent.
type tail struct {
	mu    sync.Mutex
	most  int
	lines []logLine
	left  int // lines that were dropped
	next  int // where the oldest line is, once there are most lines
	ended bool
	err   error
}

func (t *tail) add(line logLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) < t.most {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.next] = line
	t.next = (t.next + 1) % t.most
	t.left++
}

// drain returns the lines, the oldest first, and the number of those before them.
func (t *tail) drain() (lines []logLine, left int, ended bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines = append(append([]logLine{}, t.lines[t.next:]...), t.lines[:t.next]...)
	left = t.left
	t.lines, t.next, t.left = nil, 0, 0
	return lines, left, t.ended, t.err
}

func (t *tail) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.err = true, err
}

// streamLogs sends the newest lines of a run, and the lines that follow.
func (s *Server) streamLogs(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	st, end := s.begin(w, r)
	defer end()
	l := logRequestOf(r)
	l.options.Follow = true
	t := &tail{most: l.lines}
	ctx, cancel := context.WithCancel(st.ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		t.finish(one.run.Logs(ctx, l.options, func(line providers.RunLine) error {
			if l.wants(line) {
				t.add(logLine{name(line.Role), name(line.Stream), cleanText(line.Text, longestLine, false)})
			}
			return nil
		}))
	}()
	defer func() { cancel(); <-read }()
	if st.send("reset", nil) != nil {
		return
	}
	isOver, ticks := false, 0
	st.keep(everyLine, func() error {
		if isOver {
			return nil // the stream stays open: the browser would connect again
		}
		lines, left, ended, err := t.drain()
		ticks++
		if len(lines) > 0 || left > 0 || ticks == 2 { // without a line too, the page should say so
			if err := st.send("lines", map[string]any{"lines": lines, "left": left}); err != nil {
				return err
			}
		}
		if !ended {
			return nil
		}
		isOver = true
		if err != nil {
			return st.send("trouble", cleanText(err.Error(), longestText, true))
		}
		return st.send("end", nil)
	})
}

// sendLogs answers with all lines as text.
func (s *Server) sendLogs(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	l := logRequestOf(r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	b := bufio.NewWriter(w)
	control := http.NewResponseController(w)
	at := time.Now()
	err := one.run.Logs(r.Context(), l.options, func(line providers.RunLine) error {
		if !l.wants(line) {
			return nil
		}
		if time.Since(at) > time.Second {
			at = time.Now()
			_ = control.SetWriteDeadline(at.Add(slowest))
		}
		_, err := b.WriteString(name(line.Role) + "\t" + cleanText(line.Text, 1<<20, false) + "\n")
		return err
	})
	if err != nil {
		b.WriteString("The rest cannot be read: " + cleanText(err.Error(), longestText, true) + "\n") //nolint:errcheck // see Flush
	}
	b.Flush() //nolint:errcheck // the browser has left
}
