package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// orderEvent is one line of the file provider's own log.
type orderEvent struct {
	what       string // create, update or delete
	node       int
	name, inst int
}

func (e orderEvent) String() string {
	return fmt.Sprintf("%s o%d.%d.%d", e.what, e.node, e.name, e.inst)
}

func (e orderEvent) put() bool { return e.what != "delete" }

// orderEvents reads a part of the log.
func orderEvents(log string) ([]orderEvent, error) {
	var events []orderEvent
	for line := range strings.Lines(log) {
		var e orderEvent
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("log line %q", line)
		}
		e.what = words[0]
		if _, err := fmt.Sscanf(words[2][strings.LastIndexByte(words[2], '/')+1:], "o%d.%d.%d", &e.node, &e.name, &e.inst); err != nil {
			return nil, fmt.Errorf("log line %q: %w", line, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// orderRules holds what a tool did in one step against what docs/differences.md
// says of the order.
type orderRules struct {
	old, now  orderVersion // before and after; now is nil where everything goes
	first     map[int]bool // nodes made anew before the old object goes
	lost      map[int]bool
	retried   bool // some of it failed at first
	anyUpdate bool // what lets go of an object that goes may do so before or after
}

// pair is two places in the log: the first has to come before the second.
type pair struct{ before, after int }

// broken lists the rules that the events break, one line each.
func (r orderRules) broken(events []orderEvent) []string {
	hard, soft, usual := r.pairs(events)
	var out []string
	for _, p := range hard {
		if p.before > p.after {
			out = append(out, fmt.Sprintf("%s came before %s", events[p.after], events[p.before]))
		}
	}
	kept := slices.Clone(hard)
	for _, p := range usual {
		if p.before < p.after {
			kept = append(kept, p)
		}
	}
	var late []pair
	for _, p := range soft {
		if p.before < p.after {
			kept = append(kept, p)
		} else {
			late = append(late, p)
		}
	}
	waits := make([][]int, len(events))
	for _, p := range kept {
		waits[p.after] = append(waits[p.after], p.before)
	}
	for _, p := range late { // allowed where the update waits for the deletion
		if !waitsFor(waits, p.before, p.after) {
			out = append(out, fmt.Sprintf("%s came before %s, which waits for nothing of it", events[p.after], events[p.before]))
		}
	}
	return out
}

func waitsFor(waits [][]int, from, to int) bool {
	seen := map[int]bool{from: true}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, before := range waits[queue[0]] {
			if before == to {
				return true
			}
			if !seen[before] {
				seen[before] = true
				queue = append(queue, before)
			}
		}
	}
	return false
}

// pairs lists which events have to come in which order, which should, and which
// do where nothing has failed.
func (r orderRules) pairs(events []orderEvent) (hard, soft, usual []pair) {
	needed, all := r.old.closure(nil), r.guessed().closure(nil)
	if r.retried { // what the first apply has brought up to date has let go of what it read
		put := map[int]bool{}
		for _, e := range events {
			put[e.node] = put[e.node] || e.put()
		}
		needed = r.old.closure(func(d int) bool {
			is := r.now[d]
			return !put[d] && (is == nil || is.forgets || slices.Equal(is.deps, r.old[d].deps))
		})
	}
	direct := r.old.closure(r.passes(events))
	needs := r.now.closure(func(d int) bool { return r.now[d].count != 0 })
	read := r.reads(direct, needs)
	for i, e := range events {
		for j, f := range events {
			switch {
			case i == j:
			case e.node == f.node && e.inst == f.inst && e.what == "delete" && f.what == "create":
				if r.first[e.node] {
					hard = append(hard, pair{j, i})
				} else {
					hard = append(hard, pair{i, j})
				}
			case e.what == "delete" && f.what == "delete" && needed[e.node][f.node]:
				hard = append(hard, pair{i, j})
			case e.what == "delete" && f.what == "delete" && all[e.node][f.node]:
				usual = append(usual, pair{i, j})
			case e.put() && f.put() && needs[f.node][e.node]:
				hard = append(hard, pair{i, j})
			case e.what == "update" && f.what == "delete" && direct[e.node][f.node] && !r.lost[e.node]:
				switch anew := r.anew(events, f); {
				case anew && r.first[f.node]:
					hard = append(hard, pair{i, j})
				case !anew && !r.anyUpdate:
					soft = append(soft, pair{i, j})
				}
			case e.put() && f.what == "delete" && (direct[e.node][f.node] || read[e.node][f.node]):
				usual = append(usual, pair{i, j})
			}
		}
	}
	return hard, soft, usual
}

// reads maps each node to what a data source depended on that waits for the node now: such an
// object goes once the data source is read.
func (r orderRules) reads(direct, needs map[int]map[int]bool) map[int]map[int]bool {
	read := map[int]map[int]bool{}
	for d, was := range r.old {
		if is := r.now[d]; !was.data || is == nil || !is.data {
			continue
		}
		for e := range needs[d] {
			if read[e] == nil {
				read[e] = map[int]bool{}
			}
			maps.Copy(read[e], direct[d])
		}
	}
	return read
}

// guessed is the old version with what a node may depend on that has no object: the state
// does not tell, and the new configuration does.
func (r orderRules) guessed() orderVersion {
	guessed := maps.Clone(r.old)
	for i, n := range r.old {
		if is := r.now[i]; n.count == 0 && is != nil {
			both := *n
			both.deps = slices.Concat(n.deps, is.deps)
			guessed[i] = &both
		}
	}
	return guessed
}

// anew reports whether a deleted object is made anew.
func (r orderRules) anew(events []orderEvent, e orderEvent) bool {
	return slices.ContainsFunc(events, func(f orderEvent) bool { return f.what == "create" && f.node == e.node && f.inst == e.inst })
}

// passes tells which nodes only pass on what they depend on: data sources, and
// files of which nothing is or will be there, and nothing is deleted.
func (r orderRules) passes(events []orderEvent) func(int) bool {
	deleted := map[int]bool{}
	for _, e := range events {
		deleted[e.node] = deleted[e.node] || e.what == "delete"
	}
	return func(d int) bool {
		was, is := r.old[d], r.now[d]
		stays := is != nil && !is.forgets && is.count != 0
		return was.data || !deleted[d] && !stays
	}
}
