package series

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/stokehq/stoke/providers"
)

// Point is one sample, or several neighbouring ones. It has the time and the step
// of the newest one.
type Point struct {
	Time           time.Time
	Step           int64
	Min, Max, Mean float64
	Count          int64 // samples merged
}

// Series is one curve, the oldest point first. Role is "" for values of the whole
// run, and the name of a role for its usage.
type Series struct {
	Name, Role string
	Points     []Point
}

// Bounds of what a run may put into a Set, whatever its program reports.
const (
	maxSeries = 20_000 // 2,500 roles with the numbers of their usage
	maxNames  = 1000   // series of the whole run
	longest   = 100    // characters of a name
	maxCount  = 1 << 62
)

// Types of events that a Set treats in a way of their own.
const (
	evaluation = "evaluation"
	restore    = "restore"
)

// Set has the series of one run. Its methods may be called by several goroutines.
type Set struct {
	most int // points of a series

	mu    sync.Mutex
	all   map[key]*curve
	whole int // series of the whole run
	left  int64
}

type key struct{ role, name string }

// curve is a series, and how many samples its merged points have at most.
type curve struct {
	points []Point
	bound  int64
}

// NewSet returns a set without series. Each has at most so many points, at least 4.
func NewSet(points int) *Set {
	return &Set{most: max(4, points), all: make(map[key]*curve)}
}

// Add takes the next event of the run. Values that are not finite are left out. After
// a step back, the run's values of later steps are void: Add removes them.
func (s *Set) Add(e providers.RunEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Type == restore {
		s.goBack(e.Step)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		value := e.Values[name]
		p := Point{Time: e.Time, Step: e.Step, Min: value, Max: value, Mean: value, Count: min(max(1, e.Count), 1<<40)}
		if r, ok := e.Ranges[name]; ok {
			p.Min, p.Max = min(r.Min, value), max(r.Max, value)
		}
		if !isFinite(p.Mean) || !isFinite(p.Min) || !isFinite(p.Max) {
			continue
		}
		c := s.curve(key{clean(e.Role), Name(e, name)})
		if c == nil {
			s.left++
			continue
		}
		c.add(p, s.most)
	}
}

// Name returns the name of the series that a value of an event belongs to. A role's
// values lose the role. Evaluations and updates have a series of their own for the loss.
func Name(e providers.RunEvent, value string) string {
	if e.Role != "" {
		value = strings.TrimPrefix(value, e.Role+".")
	}
	if e.Type == evaluation && value == "loss" {
		value = "evaluation.loss"
	}
	return clean(value)
}

// curve returns the curve of a key, and makes it where it is missing; nil where the set
// is full.
func (s *Set) curve(k key) *curve {
	if c := s.all[k]; c != nil {
		return c
	}
	if len(s.all) >= maxSeries || k.role == "" && s.whole >= maxNames {
		return nil
	}
	if k.role == "" {
		s.whole++
	}
	c := &curve{bound: 1}
	s.all[k] = c
	return c
}

func (s *Set) goBack(step int64) {
	for k, c := range s.all {
		for k.role == "" && len(c.points) > 0 && c.points[len(c.points)-1].Step > step {
			c.points = c.points[:len(c.points)-1]
		}
	}
}

// CountLeftOut returns how many values were left out because the run has too many names.
func (s *Set) CountLeftOut() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// All returns a copy of the series, sorted by role and name.
func (s *Set) All() []*Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Series, 0, len(s.all))
	for k, c := range s.all {
		all = append(all, k.series(c))
	}
	slices.SortFunc(all, func(a, b *Series) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Names returns the names of the series of a role, sorted; "" is the whole run.
func (s *Set) Names(role string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.all {
		if k.role == role {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return names
}

// Find returns a copy of one series; nil where there is none.
func (s *Set) Find(role, name string) *Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{role, name}
	if c := s.all[k]; c != nil {
		return k.series(c)
	}
	return nil
}

func (k key) series(c *curve) *Series {
	return &Series{Name: k.name, Role: k.role, Points: slices.Clone(c.points)}
}

// add appends a point, and merges older ones where the curve is full.
func (c *curve) add(p Point, most int) {
	if len(c.points) >= most {
		c.merge(most / 2)
	}
	c.points = append(c.points, p)
}

// merge merges neighbours until at most so many points are left. Points of together
// at most bound samples are merged, and the bound is doubled as often as necessary:
// all parts of a long run then have about equally many points, and the newest
// samples stay apart until the curve is full again.
func (c *curve) merge(most int) {
	for {
		kept := c.points[:1]
		for _, p := range c.points[1:] {
			last := &kept[len(kept)-1]
			if last.Count <= c.bound-p.Count {
				*last = merged(*last, p)
				continue
			}
			kept = append(kept, p)
		}
		c.points = kept
		if len(kept) <= max(1, most) {
			return
		}
		if c.bound < maxCount {
			c.bound *= 2
			continue
		}
		for i := range c.points { // then sums of counts do not overflow
			c.points[i].Count = max(1, c.points[i].Count>>20)
		}
		c.bound >>= 20
	}
}

// merged returns one point for two; the first one is older.
func merged(a, b Point) Point {
	both := b
	both.Count = a.Count + b.Count
	share := float64(b.Count) / float64(both.Count)
	both.Mean = a.Mean*(1-share) + b.Mean*share
	both.Min, both.Max = min(a.Min, b.Min), max(a.Max, b.Max)
	return both
}

// Smooth returns the exponential moving mean of the points' means, as TensorBoard
// computes it: weight (0 to 1) is the share of the earlier ones, and the beginning is
// corrected for having none.
func (s *Series) Smooth(weight float64) []float64 {
	if !(weight > 0) { // NaN, too
		weight = 0
	}
	weight = min(weight, 0.999)
	smooth := make([]float64, len(s.Points))
	last, part := 0.0, 0.0 // part is the sum of the weights so far
	for i, p := range s.Points {
		last = last*weight + p.Mean*(1-weight)
		part = part*weight + (1 - weight)
		smooth[i] = last / part
	}
	return smooth
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// clean returns a name without characters that move a cursor, and cut to a length.
func clean(name string) string {
	isPlain := true
	for i, r := range name {
		if i >= longest || !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			isPlain = false
			break
		}
	}
	if isPlain {
		return name
	}
	var b strings.Builder
	n := 0
	for _, r := range name {
		if n >= longest {
			b.WriteRune('…')
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			n++
		}
	}
	return b.String()
}
