package plan

import (
	"fmt"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// MovesTo returns the objects of a state that a move concerns, each with its
// new address. All those addresses must be vacant in the target, which may be
// another state. Errors say what does not fit.
func MovesTo(st *state.State, from, to address.Target, target *state.State) ([]Move, error) {
	switch {
	case from.String() == to.String() && st == target:
		return nil, fmt.Errorf("the objects are there already")
	case from.Resource == nil && to.Resource != nil:
		return nil, fmt.Errorf("%s is a module and %s is not; a module can only become a module", from, to)
	case from.Resource != nil && to.Resource == nil:
		return nil, fmt.Errorf("%s is a module; write the whole new address, such as %s.%s", to, to, local(*from.Resource))
	case from.Resource != nil && from.Resource.Mode != to.Resource.Mode:
		return nil, fmt.Errorf("a data source and a resource cannot take each other's place")
	case from.Resource != nil && from.Resource.Type != to.Resource.Type:
		return nil, fmt.Errorf("%s is of the type %s and %s of the type %s; an object keeps its type", from, from.Resource.Type, to, to.Resource.Type)
	}
	s := newStatement(nil, &modules.Moved{From: from, To: to})
	var moves []Move
	for _, r := range st.Resources() {
		for _, key := range st.Keys(r) {
			at := placeOf(r.Instance(key))
			if s.matches(at) {
				moves = append(moves, Move{r.Instance(key), s.apply(at).instance()})
			}
		}
	}
	if len(moves) == 0 && !s.whole && from.Resource != nil && from.Key.IsZero() && len(st.Keys(*from.Resource)) > 0 {
		return nil, fmt.Errorf("%s has several instances; name one of them, such as %s%s, or a whole resource as the target", from, from, st.Keys(*from.Resource)[0])
	}
	if s.whole && from.Resource != nil && len(moves) > 0 && len(target.Keys(*to.Resource)) > 0 {
		return nil, fmt.Errorf("there are objects at %s already", to)
	}
	for _, m := range moves {
		if !isVacant(target, m.To) {
			return nil, fmt.Errorf("there is an object at %s already", m.To)
		}
	}
	return moves, nil
}

func local(r address.Resource) string {
	r.Module = ""
	return r.String()
}
