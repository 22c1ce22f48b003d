package plan

import (
	"slices"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// Relocated returns what the moves change in a state: the objects under their
// new addresses, and the dependencies of whatever names the old ones. The
// moves' targets must be vacant. All changes belong into one record of the
// journal, so that no object is ever without an address or at two.
func Relocated(st *state.State, moves []Move) []state.Change {
	if len(moves) == 0 {
		return nil
	}
	names := renamed(st, moves)
	changes := make([]state.Change, 0, 2*len(moves))
	gone := make(map[address.Instance]bool, len(moves))
	for _, m := range moves {
		gone[m.From] = true
		if st.Current(m.From) != nil {
			changes = append(changes, state.Change{Address: m.From})
		}
		for key := range st.Deposed(m.From) {
			changes = append(changes, state.Change{Address: m.From, Deposed: key})
		}
	}
	add := func(a address.Instance, deposed string, o *state.Object, always bool) {
		if deps, ok := names.rename(o.Dependencies); ok {
			changes = append(changes, state.Change{Address: a, Deposed: deposed, Object: o.WithDependencies(deps)})
		} else if always {
			changes = append(changes, state.Change{Address: a, Deposed: deposed, Object: o})
		}
	}
	all := func(from, to address.Instance) {
		moved := from != to
		if o := st.Current(from); o != nil {
			add(to, "", o, moved)
		}
		for key, o := range st.Deposed(from) {
			add(to, key, o, moved)
		}
	}
	for _, m := range moves {
		all(m.From, m.To)
	}
	if len(names.to) == 0 {
		return changes
	}
	for _, a := range st.Instances() {
		if !gone[a] {
			all(a, a)
		}
	}
	return changes
}

// names maps addresses to their values after moves, in the form of
// dependencies. Objects share lists of dependencies, so that each is rewritten
// once.
type names struct {
	to   map[string][]string // where all or some of the old name's objects are
	memo map[*string][]string
}

func renamed(st *state.State, moves []Move) *names {
	n := &names{to: map[string][]string{}, memo: map[*string][]string{}}
	left := map[string]int{}
	for _, m := range moves {
		from, to := Keyless(m.From.Resource), Keyless(m.To.Resource)
		if from == to {
			continue
		}
		left[from]--
		if !slices.Contains(n.to[from], to) {
			n.to[from] = append(n.to[from], to)
		}
	}
	if len(left) == 0 {
		return n
	}
	for _, r := range st.Resources() {
		if name := Keyless(r); n.to[name] != nil {
			left[name] += len(st.Keys(r))
		}
	}
	for name, count := range left {
		if count > 0 {
			n.to[name] = append(n.to[name], name)
		}
	}
	return n
}

// rename returns the list with new names, and whether that differs.
func (n *names) rename(deps []string) ([]string, bool) {
	if len(deps) == 0 || !slices.ContainsFunc(deps, func(d string) bool { return n.to[d] != nil }) {
		return nil, false
	}
	if out, ok := n.memo[&deps[0]]; ok {
		return out, true
	}
	var out []string
	for _, d := range deps {
		if to := n.to[d]; to != nil {
			out = append(out, to...)
		} else {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	n.memo[&deps[0]] = out
	return out, true
}
