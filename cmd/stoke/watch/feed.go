package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/plan/canvas"
	"github.com/stokehq/stoke/plan/series"
	"github.com/stokehq/stoke/providers"
)

const (
	pointsOfCurve = 400
	keptEvents    = 200
	keptLines     = 2000
	longestLine   = 4 << 10 // bytes of a line of a log
	statusEvery   = 2 * time.Second
	statusWithin  = 15 * time.Second
	firstWait     = 500 * time.Millisecond // before a stream is opened again
	longestWait   = 10 * time.Second
	rateOver      = time.Minute // for the time that is left
)

// feed has the newest facts about one run. Its fields below mu change while it is read.
type feed struct {
	source Source
	clean  func(string) string
	news   func() // is called after each change

	set *series.Set

	opening sync.Mutex // one connection at a time

	mu     sync.Mutex
	run    *opened // nil: opened when it is used next
	status providers.RunStatus
	known  bool // status has been read
	over   bool
	lost   outage
	events []providers.RunEvent
	lines  []providers.RunLine
	number int64 // of the newest event
	rates  []progress
}

// opened is a run with an identity: values of providers need not be comparable.
type opened struct{ providers.Run }

// outage is a connection that was lost: the zero value is a connection that works.
type outage struct {
	since  time.Time
	reason string
}

// progress is the step of a run at a time.
type progress struct {
	at   time.Time
	step int64
}

func newFeed(s Source, clean func(string) string, news func()) *feed {
	return &feed{source: s, clean: clean, news: news, set: series.NewSet(pointsOfCurve)}
}

// read reads the run until it ends or ctx does.
func (f *feed) read(ctx context.Context) {
	streams, stop := context.WithCancel(ctx)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { f.follow(streams, "metrics", f.readMetrics) })
	both.Go(func() { f.follow(streams, "logs", f.readLogs) })
	ended := make(chan struct{})
	go func() {
		both.Wait()
		close(ended)
	}()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		gone := f.readStatus(ctx)
		if gone {
			stop()
		}
		select {
		case <-tick.C:
		case <-ended:
			if !gone && ctx.Err() == nil {
				f.readStatus(ctx)
			}
			f.mu.Lock()
			f.over = true
			f.mu.Unlock()
			f.news()
			return
		}
	}
}

// open returns the run, found again where the connection was lost.
func (f *feed) open(ctx context.Context) (*opened, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	f.mu.Lock()
	run := f.run
	f.mu.Unlock()
	if run != nil {
		return run, nil
	}
	found, err := f.source.Open(ctx)
	if err != nil {
		return nil, err
	}
	run = &opened{found}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run = run
	return run, nil
}

// drop forgets a run whose connection was lost.
func (f *feed) drop(run *opened) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run == run {
		f.run = nil
	}
}

// follow follows one stream until the run has ended, opening it again as often as
// it breaks.
func (f *feed) follow(ctx context.Context, name string, stream func(context.Context, providers.Run, func()) error) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		run, err := f.open(ctx)
		if err == nil {
			err = stream(ctx, run, func() { wait = firstWait / 2 })
			if err == nil && f.hasEnded(ctx, run) {
				return
			}
		}
		if ctx.Err() != nil || errors.Is(err, providers.ErrNoRun) {
			return
		}
		if err != nil {
			f.drop(run)
			f.note(fmt.Sprintf("%s: connection lost, trying again: %s", name, err))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// hasEnded reports whether a stream ended because the run did.
func (f *feed) hasEnded(ctx context.Context, run providers.Run) bool {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	is, err := run.Status(ctx)
	if err != nil {
		return errors.Is(err, providers.ErrNoRun)
	}
	return !is.Trains || slices.Contains([]string{"succeeded", "failed", "stopped", "lost"}, is.Phase)
}

// readStatus reads the status once. It reports whether nothing is left of the run.
func (f *feed) readStatus(ctx context.Context) (gone bool) {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	var is providers.RunStatus
	run, err := f.open(ctx)
	if err == nil {
		is, err = run.Status(ctx)
	}
	defer f.news()
	now := time.Now()
	if err != nil {
		f.drop(run)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.lost.since.IsZero() {
			f.lost.since = now
		}
		f.lost.reason = f.oneLine(err.Error())
		if errors.Is(err, providers.ErrNoRun) {
			f.lost = outage{}
			f.status.Phase, f.known = "gone", true
			return true
		}
		return false
	}
	f.cleanStatus(&is)
	f.mu.Lock()
	since := f.lost.since
	f.status, f.known, f.lost = is, true, outage{}
	f.rates = append(f.rates, progress{now, is.Step})
	for len(f.rates) > 2 && now.Sub(f.rates[0].at) > rateOver {
		f.rates = f.rates[1:]
	}
	f.mu.Unlock()
	if !since.IsZero() {
		f.note(fmt.Sprintf("connected again after %s", short(now.Sub(since))))
	}
	return false
}

func (f *feed) cleanStatus(is *providers.RunStatus) {
	for _, text := range []*string{&is.Phase, &is.Message, &is.Progress, &is.Run, &is.Where} {
		*text = f.oneLine(*text)
	}
	is.Roles = slices.Clone(is.Roles)
	for i := range is.Roles {
		for _, text := range []*string{&is.Roles[i].Name, &is.Roles[i].Phase, &is.Roles[i].Node, &is.Roles[i].Reason} {
			*text = f.oneLine(*text)
		}
	}
}

// readMetrics takes the events of the run, except usage, which the status has. After a
// lost connection it continues after the last known event.
func (f *feed) readMetrics(ctx context.Context, run providers.Run, got func()) error {
	f.mu.Lock()
	o := providers.RunMetrics{Follow: true, After: f.number, Usage: providers.WithoutUsage, Brief: true}
	f.mu.Unlock()
	return run.Metrics(ctx, o, func(e providers.RunEvent) error {
		got()
		f.mu.Lock()
		isKnown := e.Number > 0 && e.Number <= f.number
		f.number = max(f.number, e.Number)
		f.mu.Unlock()
		if isKnown {
			return nil
		}
		f.set.Add(e)
		if e.Type != "update" && e.Type != "updates" && e.Type != "usage" {
			e.Message, e.Type, e.JSON = f.oneLine(e.Message), f.oneLine(e.Type), nil
			f.addEvent(e)
		}
		f.news()
		return nil
	})
}

// note adds an event of the watch itself.
func (f *feed) note(text string) {
	f.addEvent(providers.RunEvent{Time: time.Now(), Type: "watch", Step: -1, Message: f.oneLine(text)})
	f.news()
}

func (f *feed) addEvent(e providers.RunEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = appendKept(f.events, e, keptEvents)
}

// readLogs takes the lines of all roles. After a lost connection they come again.
func (f *feed) readLogs(ctx context.Context, run providers.Run, got func()) error {
	f.mu.Lock()
	f.lines = nil
	f.mu.Unlock()
	add := func(line providers.RunLine) {
		got()
		line.Role, line.Text = f.oneLine(line.Role), f.oneLine(line.Text)
		f.mu.Lock()
		f.lines = appendKept(f.lines, line, keptLines)
		f.mu.Unlock()
		f.news()
	}
	waiting := func(role, reason string) { add(providers.RunLine{Role: role, Text: "waiting: " + reason}) }
	return run.Logs(ctx, providers.RunLogs{Follow: true, Waiting: waiting}, func(line providers.RunLine) error {
		add(line)
		return nil
	})
}

// appendKept appends to a list of at most twice so many elements. Copies of the list
// stay as they are.
func appendKept[E any](list []E, e E, most int) []E {
	if len(list) >= 2*most {
		list = append(make([]E, 0, 2*most), list[len(list)-most:]...)
	}
	return append(list, e)
}

// oneLine returns a text of the run without secrets and control characters, on one
// line of bounded length.
func (f *feed) oneLine(text string) string {
	text = f.clean(text)
	if len(text) > longestLine {
		text = strings.ToValidUTF8(text[:longestLine], "") + "…"
	}
	return canvas.Clean(text)
}

// view is a copy of a feed at one time.
type view struct {
	name   string
	status providers.RunStatus
	known  bool
	over   bool
	lost   outage
	left   time.Duration // until the end of the run; 0: unknown
	events []providers.RunEvent
	lines  []providers.RunLine
	names  []string // of series of the whole run
	find   func(name string) *series.Series
}

// view copies the feed. Series are read from the feed when find is called, unless the
// view is frozen.
func (f *feed) view(frozen bool) view {
	f.mu.Lock()
	v := view{name: f.source.Name, status: f.status, known: f.known, over: f.over, lost: f.lost, left: f.timeLeft(),
		events: f.events, lines: f.lines}
	f.mu.Unlock()
	v.names = f.set.Names("")
	v.find = func(name string) *series.Series { return f.set.Find("", name) }
	if frozen {
		all := make(map[string]*series.Series)
		for _, name := range v.names {
			all[name] = f.set.Find("", name)
		}
		v.find = func(name string) *series.Series { return all[name] }
		v.names = slices.Sorted(maps.Keys(all))
	}
	return v
}

// timeLeft estimates the time until the last step from the progress of the last
// minute; 0 where that is unknown.
func (f *feed) timeLeft() time.Duration {
	if len(f.rates) < 2 || f.status.Steps <= 0 || f.status.Phase != "running" {
		return 0
	}
	from, to := f.rates[0], f.rates[len(f.rates)-1]
	steps, took := to.step-from.step, to.at.Sub(from.at)
	if steps <= 0 || f.status.Steps <= to.step {
		return 0
	}
	return time.Duration(float64(took) * float64(f.status.Steps-to.step) / float64(steps))
}

// short returns a duration in its two largest units.
func short(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 100*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
