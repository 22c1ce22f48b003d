package plan

import (
	"slices"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// Departure is how long an object stays in the state.
type Departure uint8

const (
	Stays     Departure = iota
	Destroyed           // removed by its own operation
	Leaves              // it leaves at once
)

// DepartureChanges returns the changes of the state when objects depart: dependents
// that stay, or stay longer, inherit the dependencies of the departed, so that
// the order of destruction is not lost. It has to be stored no later than the
// departure.
func DepartureChanges(st *state.State, departs func(a address.Instance, deposed string) Departure) []state.Change {
	each := func(visit func(a address.Instance, deposed string, o *state.Object)) {
		for _, a := range st.Instances() {
			if o := st.Current(a); o != nil {
				visit(a, "", o)
			}
			for key, o := range st.Deposed(a) {
				visit(a, key, o)
			}
		}
	}
	last := map[string]Departure{} // a resource is there until the last of its objects leaves
	each(func(a address.Instance, deposed string, o *state.Object) {
		name, departure := Keyless(a.Resource), departs(a, deposed)
		if d, ok := last[name]; !ok || departure < d {
			last[name] = departure
		}
	})
	needs := map[string][]string{} // of departing resources
	each(func(a address.Instance, _ string, o *state.Object) {
		if name := Keyless(a.Resource); last[name] != Stays {
			needs[name] = append(needs[name], o.Dependencies...)
		}
	})
	if len(needs) == 0 {
		return nil
	}
	lists := map[departedList][]string{} // objects share lists, so that each is completed once
	var changes []state.Change
	each(func(a address.Instance, deposed string, o *state.Object) {
		stays := departs(a, deposed)
		if stays == Leaves || len(o.Dependencies) == 0 {
			return
		}
		key := departedList{&o.Dependencies[0], len(o.Dependencies), stays}
		list, ok := lists[key]
		if !ok {
			list = completed(o.Dependencies, func(name string) []string { return needs[name] }, func(name string) bool { return last[name] > stays })
			lists[key] = list
		}
		if len(list) > len(o.Dependencies) {
			changes = append(changes, state.Change{Address: a, Deposed: deposed, Object: o.WithDependencies(list)})
		}
	})
	return changes
}

type departedList struct {
	first *string
	count int
	stays Departure
}

// completed adds to a sorted list of names what those need that pass on what
// they need.
func completed(list []string, needs func(name string) []string, passesOn func(name string) bool) []string {
	if !slices.ContainsFunc(list, passesOn) {
		return list
	}
	listed := map[string]bool{}
	out := slices.Clone(list)
	for _, name := range out {
		listed[name] = true
	}
	for i := 0; i < len(out); i++ { // out grows
		if !passesOn(out[i]) {
			continue
		}
		for _, name := range needs(out[i]) {
			if !listed[name] {
				listed[name] = true
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}
