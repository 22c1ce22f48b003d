package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stokehq/stoke/plan/canvas"
	"github.com/stokehq/stoke/providers"
)

// fake is a run whose streams break and end as a test wants.
type fake struct {
	mu     sync.Mutex
	status providers.RunStatus
	err    error // of Status
	events []providers.RunEvent
	lines  []providers.RunLine
	broken int           // how often the streams break after all events
	done   chan struct{} // is closed when the run ends
	opened int
	all    []func() // makes a value that cannot be compared, as those of providers
}

func (r *fake) source(name string) Source {
	return Source{name, func(context.Context) (providers.Run, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.opened++
		return handle{r, r.all}, nil
	}}
}

// handle is what a provider returns: not a pointer, and not comparable.
type handle struct {
	*fake
	_ []func()
}

func (r *fake) Status(context.Context) (providers.RunStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.err
}

func (r *fake) set(phase string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Phase, r.err = phase, err
}

func (r *fake) wait(ctx context.Context) error {
	r.mu.Lock()
	r.broken--
	isBroken := r.broken >= 0
	r.mu.Unlock()
	if isBroken {
		return errors.New("connection reset by peer")
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	return nil
}

func (r *fake) Metrics(ctx context.Context, _ providers.RunMetrics, event func(providers.RunEvent) error) error {
	for _, e := range r.events {
		if err := event(e); err != nil {
			return err
		}
	}
	return r.wait(ctx)
}

func (r *fake) Logs(ctx context.Context, _ providers.RunLogs, line func(providers.RunLine) error) error {
	for _, l := range r.lines {
		if err := line(l); err != nil {
			return err
		}
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	return nil
}

func running(steps int) *fake {
	r := &fake{done: make(chan struct{}), status: providers.RunStatus{Trains: true, Phase: "running", Percent: -1, Progress: "step 3"}}
	for i := range steps {
		r.events = append(r.events, providers.RunEvent{Number: int64(i + 1), Type: "update", Step: int64(i + 1), Values: map[string]float64{"loss": 1}})
	}
	return r
}

func plain(text string) string { return text }

// TestConnectionLost breaks the stream of metrics and the status: the feed opens the
// run again, counts no event twice, and reports both.
func TestConnectionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := running(10)
		r.broken = 3
		f := newFeed(r.source("a"), plain, func() {})
		done := make(chan struct{})
		go func() {
			f.read(t.Context())
			close(done)
		}()
		time.Sleep(time.Minute + time.Second) // between two reads of the status
		if v := f.view(false); len(v.find("loss").Points) != 10 || !v.lost.since.IsZero() || v.over {
			t.Errorf("after broken streams: %d points, lost %v, over %t", len(v.find("loss").Points), v.lost, v.over)
		}
		if r.opened != 4 { // at first, and after each break
			t.Errorf("the run was opened %d times", r.opened)
		}
		r.set("running", errors.New("no route to \x1b[31mhost"))
		time.Sleep(10 * time.Second)
		if v := f.view(false); v.lost.reason != "no route to host" {
			t.Errorf("lost is %+v", v.lost)
		}
		r.set("running", nil)
		time.Sleep(10 * time.Second)
		v := f.view(false)
		text := ""
		for _, e := range v.events {
			text += e.Message + "\n"
		}
		want := strings.Repeat("metrics: connection lost, trying again: connection reset by peer\n", 3) + "connected again after 10s\n"
		if !v.lost.since.IsZero() || text != want {
			t.Errorf("lost %+v, events\n%s\nwant\n%s", v.lost, text, want)
		}
		r.set("failed", nil)
		close(r.done)
		<-done
		if v := f.view(false); !v.over || v.status.Phase != "failed" {
			t.Errorf("at the end: over %t, %s", v.over, v.status.Phase)
		}
	})
}

// TestGone removes a run that is watched.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := running(1)
		f := newFeed(r.source("a"), plain, func() {})
		time.AfterFunc(5*time.Second, func() { r.set("", fmt.Errorf("look: %w", providers.ErrNoRun)) })
		f.read(t.Context())
		if v := f.view(false); v.status.Phase != "gone" || !v.over {
			t.Errorf("phase %q, over %t", v.status.Phase, v.over)
		}
	})
}

func TestTimeLeft(t *testing.T) {
	f := newFeed(Source{}, plain, func() {})
	f.status = providers.RunStatus{Phase: "running", Steps: 100}
	at := time.Now()
	f.rates = []progress{{at, 10}, {at.Add(10 * time.Second), 30}}
	if got := f.timeLeft(); got != 35*time.Second {
		t.Errorf("%s are left, want 35s", got)
	}
	f.rates[1].step = 10
	if got := f.timeLeft(); got != 0 {
		t.Errorf("%s are left without progress", got)
	}
}

// hostile are texts that a program may print or report.
var hostile = []string{
	"plain", "", "\x1b[2J\x1b[Hgone", "\x1b]0;title\x07", "日本語の長い行" + strings.Repeat("界", 300), "\u202eevil", "bad \xff\xfe", "tab\tand\rreturn",
	strings.Repeat("x", 100_000), "\x1bP1;2;3|" + strings.Repeat("A", 50), "\u009b31mC1", "e\u0301\u0301\u0301", "🚀🚀🚀", "<script>alert(1)</script>", "\x00\x07\x08",
}

// odd returns a feed with hostile names, lines and numbers.
func odd(random *rand.Rand) *feed {
	pick := func() string { return hostile[random.IntN(len(hostile))] }
	f := newFeed(Source{Name: canvas.Clean(pick() + pick())}, plain, func() {})
	is := providers.RunStatus{Trains: random.IntN(2) == 0, Phase: pick(), Message: pick(), Progress: pick(), Where: pick(), Percent: random.Float64()*200 - 50}
	for range random.IntN(40) {
		role := providers.RunRole{Name: pick(), Phase: pick(), Reason: pick(), Restarts: random.IntN(3), Since: time.Now()}
		if random.IntN(2) == 0 {
			role.Usage = &providers.RunUsage{CPU: random.Float64() * 1e6, Memory: math.MaxInt64, Received: random.Float64() * 1e15, Network: true}
		}
		is.Roles = append(is.Roles, role)
	}
	f.cleanStatus(&is)
	f.status, f.known = is, true
	r := running(0)
	close(r.done)
	for i := range random.IntN(50) {
		e := providers.RunEvent{Number: int64(i + 1), Type: "evaluation", Step: int64(i), Message: pick(), Values: map[string]float64{pick(): random.NormFloat64() * 1e300}}
		r.events = append(r.events, e)
		r.lines = append(r.lines, providers.RunLine{Role: pick(), Text: pick()})
	}
	_ = f.readMetrics(context.Background(), r, func() {})
	_ = f.readLogs(context.Background(), r, func() {})
	if random.IntN(3) == 0 {
		f.lost = outage{time.Now(), f.oneLine(pick())}
	}
	return f
}

// TestFramesFit draws hostile runs on windows of many sizes.
func TestFramesFit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	sizes := [][2]int{{80, 24}, {200, 60}, {20, 5}, {1, 1}, {0, 0}, {59, 13}}
	for i := range 600 {
		size := [2]int{random.IntN(220), random.IntN(70)}
		if i < len(sizes) {
			size = sizes[i]
		}
		all := []view{odd(random).view(true)}
		for range random.IntN(3) {
			all = append(all, odd(random).view(false))
		}
		c := choice{run: random.IntN(len(all)), role: random.IntN(5), metric: random.IntN(5), scroll: random.IntN(100), help: random.IntN(9) == 0, paused: random.IntN(2) == 0}
		if random.IntN(3) == 0 {
			c.search = "界"
		}
		f := frame{choice: c, columns: size[0], rows: size[1], color: random.IntN(2) == 0, now: time.Now()}
		lines := f.draw(all)
		if len(lines) != size[1] {
			t.Fatalf("%d lines on a window of %v", len(lines), size)
		}
		for _, line := range lines {
			if visible(line) > size[0] {
				t.Fatalf("%d columns on a window of %v: %q", visible(line), size, line)
			}
			if rest := withoutColors(line); strings.ContainsAny(rest, "\x1b\x07\x08\n\r\t\x00") || strings.ContainsRune(rest, '\u202e') {
				t.Fatalf("the line moves the cursor: %q", line)
			}
		}
	}
}

// withoutColors removes the codes of colours that a frame writes.
func withoutColors(line string) string {
	for _, code := range []string{"0", "1", "2", "7", "31", "32", "33", "34", "35", "36", "1;31", "1;32", "1;33"} {
		line = strings.ReplaceAll(line, "\x1b["+code+"m", "")
	}
	return line
}

func TestFrame(t *testing.T) {
	r := running(100)
	for i := range r.events {
		r.events[i].Values["loss"] = 100 - float64(i)
	}
	r.events = append(r.events, providers.RunEvent{Number: 101, Type: "evaluation", Step: 100, Values: map[string]float64{"accuracy": 0.5}},
		providers.RunEvent{Number: 102, Type: "epoch", Step: 100})
	r.lines = []providers.RunLine{{Role: "worker-0", Text: "first"}, {Role: "worker-1", Text: "the Second"}, {Role: "worker-0", Text: "second, too"}}
	close(r.done)
	f := newFeed(r.source("train_experiment.digits"), plain, func() {})
	f.status, f.known = providers.RunStatus{Trains: true, Phase: "running", Percent: 40, Progress: "step 40/100",
		Roles: []providers.RunRole{{Name: "worker-0", Phase: "running", Usage: &providers.RunUsage{CPU: 1.5, Memory: 3 << 30}}, {Name: "worker-1", Phase: "waiting", Reason: "no node"}}}, true
	if err := errors.Join(f.readMetrics(t.Context(), r, func() {}), f.readLogs(t.Context(), r, func() {})); err != nil {
		t.Fatal(err)
	}
	show := func(c choice) string {
		rows := 24
		if c.scroll > 0 { // no room for all lines
			rows = 5
		}
		return strings.Join((&frame{choice: c, columns: 80, rows: rows, now: time.Now()}).draw([]view{f.view(false)}), "\n")
	}
	for _, test := range []struct {
		name            string
		choice          choice
		contain, absent []string
	}{
		{"all", choice{}, []string{"train_experiment.digits  running  40%  step 40/100", "loss  1", "accuracy  0.5", "⠉⠒⠢⠤⣀⡀", "└step 1", "  worker-0        running      1.50       3.0G",
			"no node", "  evaluation  step 100", "logs of all roles", "worker-0       first", "worker-1       the Second"}, []string{"PAUSED", "epoch  step"}},
		{"a role", choice{role: 1}, []string{"> worker-0", "logs of worker-0", "\nfirst", "\nsecond, too"}, []string{"the Second"}},
		{"search", choice{search: "SECOND"}, []string{"the Second", "second, too", "search: SECOND"}, []string{"first"}},
		{"back", choice{scroll: 1, search: "second"}, []string{"1 lines back", "the Second"}, []string{"second, too", "first"}},
		{"paused", choice{paused: true}, []string{"PAUSED"}, nil},
		{"help", choice{help: true}, []string{"PgUp"}, []string{"logs of all"}},
	} {
		got := show(test.choice)
		for _, text := range test.contain {
			if !strings.Contains(got, text) {
				t.Errorf("%s: no %q in\n%s", test.name, text, got)
			}
		}
		for _, text := range test.absent {
			if strings.Contains(got, text) {
				t.Errorf("%s: %q in\n%s", test.name, text, got)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	c := choice{}
	press := func(text string) (leaves bool) {
		for b := []byte(text); len(b) > 0; {
			key, n := nextKey(b)
			b = b[n:]
			leaves = leaves || c.press(key, 3, 2, 10)
		}
		return leaves
	}
	for _, test := range []struct {
		keys   string
		want   choice
		leaves bool
	}{
		{"\t\x1b[C", choice{run: 2}, false},
		{"\t", choice{run: 0}, false},
		{"\x1b[Z", choice{run: 2}, false},
		{"\x1b[B\x1b[B", choice{run: 2, role: 2}, false},
		{"\x1bOB", choice{run: 2}, false},
		{"\x1b[A", choice{run: 2, role: 2}, false},
		{"\x1b[5~\x1b[5~\x1b[6~", choice{run: 2, role: 2, scroll: 10}, false},
		{"/", choice{run: 2, role: 2, typing: true}, false},
		{"q界\x1b[A\x7f", choice{run: 2, role: 2, typing: true, search: "q"}, false},
		{"\r", choice{run: 2, role: 2, search: "q"}, false},
		{"\x1b", choice{run: 2, role: 2}, false},
		{"p?", choice{run: 2, role: 2, paused: true, help: true}, false},
		{"x", choice{run: 2, role: 2, paused: true}, false},
		{"\x1b[12;5Hz\xff", choice{run: 2, role: 2, paused: true}, false},
		{"q", choice{run: 2, role: 2, paused: true}, true},
		{"\x03", choice{run: 2, role: 2, paused: true}, true},
	} {
		if leaves := press(test.keys); c != test.want || leaves != test.leaves {
			t.Errorf("%q: got %+v, %t; want %+v, %t", test.keys, c, leaves, test.want, test.leaves)
		}
	}
}

// TestPlainLines shows two runs without a terminal.
func TestPlainLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := running(5), running(1)
		a.events = append(a.events, providers.RunEvent{Number: 6, Type: "checkpoint", Step: 5, Message: "saved \x1b[31mred"})
		time.AfterFunc(25*time.Second, func() { a.set("succeeded", nil); close(a.done) })
		time.AfterFunc(35*time.Second, func() { b.set("failed", nil); close(b.done) })
		var out bytes.Buffer
		last := Show(t.Context(), Options{Sources: []Source{a.source("a"), b.source("b")}, Clean: plain, Lines: &out, Columns: 30})
		if last["a"].Phase != "succeeded" || last["b"].Phase != "failed" {
			t.Errorf("the last status is %+v", last)
		}
		for _, want := range []string{"  running  step 3\n", "checkpoint  step…\n", "a: ", "  succeeded  step 3\n", "  failed  step 3\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
		if strings.Contains(out.String(), "update") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("plain lines are\n%s", out.String())
		}
		for line := range strings.Lines(out.String()) {
			if canvas.Width(strings.TrimSuffix(line, "\n")) > 30 {
				t.Errorf("too wide: %q", line)
			}
		}
	})
}
