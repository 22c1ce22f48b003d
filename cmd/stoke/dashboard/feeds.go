package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/plan/series"
	"github.com/stokehq/stoke/providers"
)

// Bounds of histories in memory.
const (
	maxPoints = 600  // of a series
	maxEvents = 1000 // of a run, samples and updates aside
	maxChange = 2000 // in the number of workers
	idleFeeds = 12   // that are kept without a viewer
)

// part is the part of a run's history that a screen shows. No more of it is read or
// kept.
type part struct {
	usage  bool   // samples of usage, else all other events
	role   string // of usage: one role with all of its numbers; "": all roles
	recent bool   // of usage: the newest samples only
}

// The parts that screens show.
var (
	ofRun   = part{}
	ofRoles = part{usage: true}
	ofCards = part{usage: true, recent: true}
)

// request returns the events of the part. ended is the end of a run that has ended.
func (p part) request(ended time.Time) providers.RunMetrics {
	o := providers.RunMetrics{Usage: providers.WithoutUsage, Role: p.role, Brief: true}
	if p.usage {
		o.Usage = providers.OnlyUsage
	}
	if p.recent {
		if ended.IsZero() {
			ended = time.Now()
		}
		o.Since = ended.Add(-cardTime)
	}
	return o
}

// set returns an empty set for the part's series.
func (p part) set() *series.Set {
	switch {
	case p.recent:
		return series.NewSet(2 * cardPoints)
	case p.usage && p.role == "":
		return series.NewSet(usagePoints)
	}
	return series.NewSet(maxPoints)
}

// reduce removes the values of an event that the part does not show: most series of a
// run are numbers of roles.
func (p part) reduce(e *providers.RunEvent) {
	if !p.usage || p.role != "" {
		return
	}
	values := make(map[string]float64, len(cardNames))
	for _, name := range slices.Concat(cardNames, shareNames) {
		if v, ok := e.Values[e.Role+"."+name]; ok {
			values[name] = v
		}
	}
	addGPUs(values, e)
	e.Values = values
}

// addGPUs adds one number for all GPUs of a role: the mean of their utilisation, the sums
// of memory and power, and the highest temperature. The page of a role has each GPU.
func addGPUs(values map[string]float64, e *providers.RunEvent) {
	n := 0.0
	for key, v := range e.Values {
		of, isGPU := strings.CutPrefix(key, e.Role+".gpu")
		_, name, ok := strings.Cut(of, ".")
		if !isGPU || !ok {
			continue
		}
		switch key := "gpu." + name; name {
		case "utilization_percent":
			values[key] += v
			n++
		case "memory_used_bytes", "power_watts":
			values[key] += v
		case "temperature_celsius":
			values[key] = max(values[key], v)
		}
	}
	if n > 1 {
		values["gpu.utilization_percent"] /= n
	}
}

// feeds keeps the histories of runs that are on a screen: each part is read once, and
// followed while the run is live and has a viewer.
type feeds struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	slots  chan struct{} // histories that are read at the same time

	mu  sync.Mutex
	all map[string]*feed
}

func newFeeds() *feeds {
	f := &feeds{all: make(map[string]*feed), slots: make(chan struct{}, 4)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

func (f *feeds) close() {
	f.cancel()
	f.work.Wait()
}

// feed is the history of one run.
type feed struct {
	run    providers.Run
	part   part
	ended  time.Time // end of the run; zero where it was live at first
	set    *series.Set
	loaded chan struct{} // closed once the history was read

	// These belong to feeds.mu.
	viewers int
	used    time.Time
	follow  context.CancelFunc // nil: it is not followed

	mu      sync.Mutex
	err     error
	number  int64 // of the newest event
	events  []event
	left    int // events that were dropped
	workers []change
	present map[int]bool
	subs    map[*subscriber]bool
}

// event is one line of what happened.
type event struct {
	Time    time.Time `json:"-"`
	Clock   string    `json:"time"`
	Type    string    `json:"type"`
	Step    int64     `json:"step"`
	Message string    `json:"message"`
}

// change is the number of workers from a time on.
type change struct {
	at     time.Time
	step   int64
	number int
}

// open returns a part of the history of a run, which is read in the background. The
// caller releases it.
func (f *feeds) open(r row, p part) (*feed, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fmt.Sprintf("%s\x00%s\x00%v", r.Address, r.status.Run, p)
	one := f.all[key]
	if one != nil && one.hasFailed() && one.viewers == 0 {
		one = nil
	}
	if one == nil {
		one = &feed{run: r.run, part: p, ended: r.status.Ended, set: p.set(), loaded: make(chan struct{}), present: make(map[int]bool),
			subs: make(map[*subscriber]bool)}
		f.all[key] = one
		f.work.Add(1)
		go f.load(one)
	}
	one.viewers++
	if r.isLive() && one.follow == nil && f.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(f.ctx)
		one.follow = cancel
		f.work.Add(1)
		go f.goOn(ctx, one)
	}
	var once sync.Once
	return one, func() { once.Do(func() { f.release(one) }) }
}

// release ends the following of a run without a viewer, and drops the histories that
// were not used for longest.
func (f *feeds) release(one *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.viewers, one.used = one.viewers-1, time.Now()
	if one.viewers == 0 && one.follow != nil {
		one.follow()
		one.follow = nil
	}
	for {
		idle, oldest, at := 0, "", time.Time{}
		for key, o := range f.all {
			if o.viewers > 0 {
				continue
			}
			if idle++; oldest == "" || o.used.Before(at) {
				oldest, at = key, o.used
			}
		}
		if idle <= idleFeeds {
			return
		}
		delete(f.all, oldest)
	}
}

func (o *feed) hasFailed() bool {
	select {
	case <-o.loaded:
	default:
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// load reads the history up to now.
func (f *feeds) load(o *feed) {
	defer f.work.Done()
	defer close(o.loaded)
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-f.ctx.Done():
		return
	}
	o.note(o.run.Metrics(f.ctx, o.part.request(o.ended), o.take))
}

func (o *feed) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.err = err
	}
}

// goOn follows the run until it ends, or has no viewer.
func (f *feeds) goOn(ctx context.Context, o *feed) {
	defer f.work.Done()
	select {
	case <-o.loaded:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		want := o.part.request(o.ended)
		o.mu.Lock()
		want.Follow, want.After = true, o.number
		o.mu.Unlock()
		err := o.run.Metrics(ctx, want, o.take)
		if ctx.Err() != nil {
			return
		}
		o.note(err)
		if err == nil {
			break // it has ended
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.follow != nil && ctx.Err() == nil {
		o.follow()
		o.follow = nil
	}
}

// take adds one event of the run.
func (o *feed) take(e providers.RunEvent) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Number <= o.number {
		return nil
	}
	o.number, o.err = e.Number, nil
	o.part.reduce(&e)
	o.set.Add(e)
	told := e.Type != "usage" && e.Type != "update" && e.Type != "updates"
	if told {
		o.list(e)
		o.count(e)
	}
	for s := range o.subs {
		s.take(e, told)
	}
	return nil
}

// list keeps an event for the list of events.
func (o *feed) list(e providers.RunEvent) {
	if len(o.events) >= maxEvents {
		o.left += len(o.events) / 4
		o.events = append(o.events[:0], o.events[len(o.events)/4:]...)
	}
	o.events = append(o.events, eventOf(e))
}

// wait waits until the history was read, and returns the error of that.
func (o *feed) wait(ctx context.Context) error {
	select {
	case <-o.loaded:
	case <-ctx.Done():
		return ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// timeline returns copies of what happened and of the numbers of workers.
func (o *feed) timeline() (events []event, left int, workers []change, number int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]event(nil), o.events...), o.left, append([]change(nil), o.workers...), o.number
}

// subscriber gathers what is new since it was last asked, in bounded memory.
type subscriber struct {
	set     *series.Set
	events  []event
	isBack  bool // the run went back: curves have to be read again
	changed bool
}

const newPoints = 8 // of a series between two messages to a browser

// subscribe returns a subscriber to all events that follow, and the number of the
// newest one before them.
func (o *feed) subscribe() *subscriber {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &subscriber{set: series.NewSet(newPoints)}
	o.subs[s] = true
	return s
}

func (o *feed) unsubscribe(s *subscriber) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.subs, s)
}

// take is called with the feed's mu held.
func (s *subscriber) take(e providers.RunEvent, told bool) {
	s.changed = true
	s.set.Add(e)
	if e.Type == "restore" {
		s.isBack = true
	}
	if told && len(s.events) < 100 {
		s.events = append(s.events, eventOf(e))
	}
}

// drain returns what was gathered, nil for nothing.
func (o *feed) drain(s *subscriber) *subscriber {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !s.changed {
		return nil
	}
	now := *s
	*s = subscriber{set: series.NewSet(newPoints)}
	return &now
}
