package agent

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/wire"
)

// Limits of what waits to be reported.
const (
	maxFacts  = 50
	maxValues = 256 // names of metrics of a rank
)

// observer collects what ranks do until it is reported: of each metric the newest
// value, so that a program that prints many costs the coordinator no more.
type observer struct {
	mu          sync.Mutex
	points      map[int]*wire.Point // by rank
	checkpoints []wire.Checkpoint
	facts       []string
	done        []int // ranks that have ended with 0
	dropped     int   // facts
	step        int64 // the newest one of all ranks
}

func newObserver() *observer { return &observer{step: -1} }

// report takes an event of the generation. It does not wait.
func (o *observer) report(e program.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e.Kind {
	case program.Metric:
		o.add(e)
	case program.Complete:
		o.checkpoints = append(o.checkpoints, wire.Checkpoint{Name: filepath.Base(e.Checkpoint), Step: o.step})
	default:
		if e.OK {
			o.done = append(o.done, e.Rank)
		}
		if len(o.facts) >= maxFacts {
			o.dropped++
			return
		}
		o.facts = append(o.facts, factOf(e))
	}
}

// add takes the values of a rank.
func (o *observer) add(e program.Event) {
	if o.points == nil {
		o.points = make(map[int]*wire.Point)
	}
	p := o.points[e.Rank]
	if p == nil {
		p = &wire.Point{Rank: e.Rank, Step: -1, Values: make(map[string]float64)}
		o.points[e.Rank] = p
	}
	p.Step = max(p.Step, e.Step)
	o.step = max(o.step, e.Step)
	for name, v := range e.Values {
		p.NotFinite = slices.DeleteFunc(p.NotFinite, func(other string) bool { return other == name })
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such number
			delete(p.Values, name)
			p.NotFinite = append(p.NotFinite, name)
			continue
		}
		if _, known := p.Values[name]; known || len(p.Values) < maxValues {
			p.Values[name] = v
		}
	}
}

// factOf words an event.
func factOf(e program.Event) string {
	text := string(e.Kind)
	if e.Rank >= 0 {
		text = fmt.Sprintf("rank %d %s", e.Rank, e.Kind)
		if e.Kind == program.Ended {
			text = fmt.Sprintf("rank %d", e.Rank)
		}
	}
	if e.PID > 0 && e.Kind != program.Ended {
		text += fmt.Sprintf(" (process %d)", e.PID)
	}
	switch {
	case e.Text == "":
	case e.Kind == program.Ended:
		text += " " + e.Text
	default:
		text += ": " + e.Text
	}
	return text
}

// take returns what has not been reported; false: there is nothing.
func (o *observer) take() (m wire.Observed, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, rank := range slices.Sorted(maps.Keys(o.points)) {
		m.Points = append(m.Points, *o.points[rank])
	}
	if o.dropped > 0 {
		o.facts = append(o.facts, fmt.Sprintf("%d more", o.dropped))
	}
	m.Checkpoints, m.Facts, m.Done = o.checkpoints, o.facts, o.done
	o.points, o.checkpoints, o.facts, o.done, o.dropped = nil, nil, nil, nil, 0
	return m, len(m.Points)+len(m.Checkpoints)+len(m.Facts) > 0
}

// flush reports what the ranks did. Without a connection it waits for one.
func (a *agent) flush() {
	if !a.link.connected() {
		return
	}
	if m, any := a.observer.take(); any {
		m.Generation = a.begin.Generation
		for _, text := range m.Facts {
			a.Log.Info(text)
		}
		a.link.send(wire.TypeObserved, m)
	}
}
