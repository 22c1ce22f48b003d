package history

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/stokehq/stoke/runtime/spec"
)

// samples counts the lines of usage in a file.
type samples struct {
	lines int
	roles map[string]bool // that have one
}

func (s *samples) add(e spec.Event) {
	if e.Usage == nil {
		return
	}
	if s.roles == nil {
		s.roles = make(map[string]bool)
	}
	s.lines++
	s.roles[e.Usage.Role] = true
}

// isDue reports whether thinning saves at least a quarter of the lines of usage: it
// leaves at most one and a half times keep of each role. So the file is written
// again once for at least as many samples as keep/2 for each role.
func (s *samples) isDue(keep int) bool { return s.lines > 2*keep*len(s.roles) }

// thinUsage merges the samples of each role that are older than its newest keep ones
// until at most keep/2 lines of them are left. A merged sample takes the place of
// its last one.
//
// Only neighbours that are means of at most so many samples together are merged,
// and that bound is doubled as often as necessary. All lines of a long run then
// stand for about equally long times; halving all of them would leave one line
// for all that is older than an hour.
func (l *lines) thinUsage(keep int) {
	at := make(map[string][]int) // indexes of lines, by role
	for i, line := range l.all {
		if u := line.event.Usage; u != nil {
			at[u.Role] = append(at[u.Role], i)
		}
	}
	for _, own := range at {
		old := own[:max(0, len(own)-keep)]
		for most := int64(2); len(old) > keep/2 && most < math.MaxInt64/4; most *= 2 {
			old = l.mergeSamples(old, most)
		}
	}
	l.all = slices.DeleteFunc(l.all, func(merged line) bool { return merged.text == nil })
}

// mergeSamples merges neighbours of a role's lines two by two where they are at most
// so many samples together. It returns the indexes of the lines that are left; the
// others have no text.
func (l *lines) mergeSamples(at []int, most int64) (left []int) {
	for i := 1; i < len(at); i++ {
		older, newer := &l.all[at[i-1]], &l.all[at[i]]
		n, more := samplesOf(older.event), samplesOf(newer.event)
		if n > most-more {
			continue
		}
		both := newer.event // it has the newest number, time, term and step
		both.Count, both.Usage = n+more, new(spec.MergeUsage(*older.event.Usage, n, *newer.event.Usage, more))
		text, err := json.Marshal(both)
		if err != nil { // they are left as they are
			continue
		}
		older.text, *newer = nil, line{append(text, '\n'), both}
	}
	for _, index := range at {
		if l.all[index].text != nil {
			left = append(left, index)
		}
	}
	return left
}

// samplesOf returns of how many samples an event of usage is the mean.
func samplesOf(e spec.Event) int64 { return max(1, e.Count) }
