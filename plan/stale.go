package plan

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// A saved plan is stale when something that it rests on has moved since: an
// object that it changes, one that a change or a changed output reads, such an
// output itself. Other changes of the state do not matter: two plans of
// disjoint parts can both be applied, in either order.
//
// For this the plan has a version of each stored object: a digest, keyed so that
// it cannot be used to guess secrets. Without the key nothing but the state's
// serial can be compared.

// Pin notes which versions of the stored objects the plan rests on. The state
// is the one that it was made from.
func (p *Plan) Pin(s *state.State) {
	p.PinKey = make([]byte, sha256.Size)
	rand.Read(p.PinKey) // never fails (crypto/rand)
	for _, list := range [][]*Change{p.Changes, p.Refreshed} {
		for _, c := range list {
			c.Version = p.version(c.stored(s))
		}
	}
}

// stored is the object that the change starts from, where it is before
// anything has moved.
func (c *Change) stored(s *state.State) *state.Object {
	addr := c.Addr
	if c.Previous != (address.Instance{}) {
		addr = c.Previous
	}
	if c.Deposed != "" {
		return s.Deposed(addr)[c.Deposed]
	}
	return s.Current(addr)
}

// version is "" where there is no object.
func (p *Plan) version(o *state.Object) string {
	if o == nil {
		return ""
	}
	mac := hmac.New(sha256.New, p.PinKey)
	mac.Write(o.Content())
	return base64.RawStdEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// needs notes which unchanged objects the plan's changes read, data sources
// between them included.
func (p *planner) needs(result *Plan) {
	data := map[address.Resource]*item{}
	for addr, it := range p.items {
		if addr.Mode == address.Data {
			data[addr.Resource] = it
		}
	}
	needed := map[address.Resource]bool{}
	var visit func(read []address.Resource)
	visit = func(read []address.Resource) {
		for _, r := range read {
			if needed[r] {
				continue
			}
			needed[r] = true
			if it := data[r]; it != nil {
				visit(it.inst.Node().Resources())
			}
		}
	}
	for _, c := range result.Changes {
		if it := p.items[c.Addr]; it != nil && c.Action != NoOp && c.Deposed == "" {
			visit(it.inst.Node().Resources())
		}
	}
	for _, o := range result.Outputs {
		if o.Action == NoOp || o.Action == Delete {
			continue
		}
		if n := p.ev.Root().OutputNode(o.Name); n != nil {
			visit(n.Resources())
		}
	}
	for _, c := range result.Changes {
		c.Needed = c.Action == NoOp && needed[c.Addr.Resource]
	}
}

// Stale returns the reason why the plan can no longer be applied to the state, or
// nil.
// Objects that have moved and that it does not rest on are marked so: the apply
// takes them as they are.
func (p *Plan) Stale(s *state.State) error {
	same := s.Lineage() == p.Lineage
	switch {
	case !same && p.Serial != 0:
		return errors.New("the plan was made for another state; make a new plan")
	case same && s.Serial() == p.Serial && s.Seq() == 0:
		return nil
	case len(p.PinKey) == 0 && (s.Serial() != p.Serial || len(s.Instances()) > 0 && !same):
		return fmt.Errorf("the state has changed since the plan was made (serial %d then, %d now), and without the "+
			"plan's key stoke cannot tell whether that matters to it; make a new plan", p.Serial, s.Serial())
	case len(p.PinKey) == 0:
		return nil
	}
	moved := p.movedObjects(s)
	moved = append(moved, p.newUsers(s)...)
	for _, m := range p.Moves {
		switch {
		case s.Current(m.From) == nil && len(s.Deposed(m.From)) == 0:
			moved = append(moved, fmt.Sprintf("%s, which was to move to %s, no longer exists", m.From, m.To))
		case !isVacant(s, m.To):
			moved = append(moved, fmt.Sprintf("there is an object at %s now, where %s was to move", m.To, m.From))
		}
	}
	outputs := s.Outputs()
	for _, o := range p.Outputs {
		is, had := outputs[o.Name]
		if o.Action != NoOp && !o.Deferred && !o.wasLike(is, had) {
			moved = append(moved, fmt.Sprintf("the output %q has another value", o.Name))
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return fmt.Errorf("since the plan was made, what it rests on has moved:\n  - %s\n\nMake a new plan", someOf(moved, "\n  - "))
}

func (p *Plan) movedObjects(s *state.State) []string {
	var moved []string
	for _, c := range p.Refreshed {
		c.Outdated = p.version(c.stored(s)) != c.Version
	}
	for _, c := range p.Changes {
		if c.Addr.Mode == address.Data {
			continue // what was read while planning is what the plan rests on
		}
		o := c.stored(s)
		if c.Outdated = p.version(o) != c.Version; !c.Outdated {
			continue
		}
		if c.Action == NoOp && c.Importing == "" && c.Previous == (address.Instance{}) && !c.Needed {
			continue
		}
		name := c.Addr.String()
		if c.Deposed != "" {
			name += " (deposed object " + c.Deposed + ")"
		}
		switch {
		case o == nil:
			name += " is no longer in the state"
		case c.Version == "":
			name += " has been created"
		default:
			name += " has changed"
		}
		moved = append(moved, name)
	}
	return moved
}

// newUsers finds objects that depend by now on what the plan destroys. A plan
// to destroy a part has all that did before; what other plans of a part leave
// out is not looked at, because it may have done so all along.
func (p *Plan) newUsers(s *state.State) []string {
	going := map[string]bool{}
	known := make(map[address.Instance]*Change, len(p.Changes))
	for _, c := range p.Changes {
		if c.Action == Delete || c.Action.Replaces() {
			going[Keyless(c.Addr.Resource)] = true
		}
		if c.Deposed == "" {
			known[c.Addr] = c
		}
	}
	if len(going) == 0 {
		return nil
	}
	part := p.Mode != Destroy && len(p.Targets)+len(p.Excludes) > 0
	var found []string
	for _, addr := range s.Instances() {
		o, c := s.Current(addr), known[addr]
		if o == nil || c != nil && (!c.Outdated || c.Action == Delete) || c == nil && part {
			continue
		}
		for _, dep := range o.Dependencies {
			if going[dep] {
				found = append(found, fmt.Sprintf("%s depends on %s, which would be destroyed", addr, dep))
				break
			}
		}
	}
	return found
}

// wasLike reports whether a stored output is what it was.
func (o *OutputChange) wasLike(is state.Output, had bool) bool {
	if !had {
		return o.Before.IsNull()
	}
	return !o.Before.IsNull() && is.Sensitive == o.BeforeSensitive && is.Value.RawEquals(o.Before)
}

// Outdated reports whether a stored output that the plan does not change is
// another one by now.
func (o *OutputChange) Outdated(is state.Output, had bool) bool {
	return o.Action == NoOp && !o.wasLike(is, had)
}
