package plan

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/seal"
	"github.com/stokehq/stoke/plan/state"
)

// Locked is a plan that was read without its key. Sensitive values in it are
// unknown; Supply and Recover make it whole again as far as that is possible.
type Locked struct {
	Variables []string // sensitive ones, to be given again

	digest, salt []byte
	gaps         []gap
	files        map[string]sealedFile
}

// gap is a change with sealed parts.
type gap struct {
	change         *Change
	refreshed      bool
	before, after  []cty.Path
	private, prior bool // the provider's notes: of the plan, of the state
}

// secretVariables names the variables that are sealed, in order.
func (p *Plan) secretVariables() []string {
	var names []string
	for _, name := range p.SensitiveVariables {
		if _, given := p.Variables[name]; given {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// HoldsSecrets reports whether a file of the plan needs a key.
func (p *Plan) HoldsSecrets() bool {
	if len(p.secretVariables())+len(p.SensitiveDefaults) > 0 {
		return true
	}
	known := redact.Places{}
	for _, list := range [][]*Change{p.Changes, p.Drift, p.Refreshed, p.deferredChanges()} {
		for _, c := range list {
			at := placesOf(known, c)
			if len(c.Private)+len(c.PriorPrivate) > 0 || redact.Hides(c.Before, at) || redact.Hides(c.After, at) || redact.Hides(c.Config, at) {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Outputs, func(o *OutputChange) bool { return o.Sensitive || o.BeforeSensitive })
}

// Supply gives a locked plan its sensitive variables again. They must have the
// values that it was made with.
func (p *Plan) Supply(values map[string]cty.Value) error {
	l := p.Locked
	if l == nil || len(l.Variables) == 0 {
		return nil
	}
	for _, name := range l.Variables {
		if values[name] == cty.NilVal {
			return fmt.Errorf("the variable %q is missing", name)
		}
	}
	digest, err := digestOf(l.Variables, values, l.salt)
	if err != nil {
		return err
	}
	if !seal.SameDigest(digest, l.digest) {
		if len(l.Variables) == 1 {
			return fmt.Errorf("the variable %q has another value than the plan was made with", l.Variables[0])
		}
		return fmt.Errorf("some of the variables %s have other values than when the plan was made (stoke cannot see "+
			"which)", quotedList(l.Variables))
	}
	for _, name := range l.Variables {
		p.Variables[name] = values[name]
	}
	return nil
}

func quotedList(names []string) string {
	text := ""
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += fmt.Sprintf("%q", name)
	}
	return text
}

// Recover fills in the sealed values of a locked plan. Prior values are read
// from the state, which must be the state that the plan was made from; planned
// values are left to apply, which asks the providers again. An error names what
// only the key can open. The plan must be bound.
func (p *Plan) Recover(s *state.State) error {
	if p.Locked == nil {
		return nil
	}
	for _, g := range p.Locked.gaps {
		if err := g.fill(s); err != nil {
			name := g.change.Addr.String()
			if g.change.Deposed != "" {
				name += " (deposed object " + g.change.Deposed + ")"
			}
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (g gap) fill(s *state.State) error {
	c := g.change
	if g.refreshed {
		return errors.New("sensitive values that were read while planning are not in the state yet")
	}
	var stored *state.Object
	at := c.Addr
	if c.Previous != (address.Instance{}) {
		at = c.Previous
	}
	if stored = s.Current(at); c.Deposed != "" {
		stored = s.Deposed(at)[c.Deposed]
	}
	if stored == nil && (len(g.before) > 0 || g.prior) {
		return errors.New("the state does not hold it")
	}
	var err error
	if c.Before, err = borrow(c.Before, stored, g.before, c); err != nil {
		return err
	}
	if g.prior {
		c.PriorPrivate = stored.Private
	}
	switch {
	case c.Action == NoOp && c.Addr.Mode == address.Data:
		c.After, err = borrow(c.After, stored, g.after, c)
		return err
	case c.Action == NoOp:
		c.After, c.Private = c.Before, c.PriorPrivate
	case c.Action == Delete && g.private:
		return errors.New("what its provider noted for the deletion is sealed")
	case c.Action == Delete:
		c.Private = c.PriorPrivate
	default:
		c.Config = cty.NilVal // evaluated and planned again
	}
	return nil
}

// borrow fills the places where something is sealed with what the stored
// object has there. Everywhere else the two must be the same.
func borrow(v cty.Value, stored *state.Object, hidden []cty.Path, c *Change) (cty.Value, error) {
	if len(hidden) == 0 {
		return v, nil
	}
	if stored == nil || c.Schema == nil {
		return v, errors.New("sensitive values that were read while planning are not in the state yet")
	}
	there, err := stored.Value(c.Schema.Block.ImpliedType())
	if err != nil {
		return v, err
	}
	left, found, secrets, err := redact.TakeSecrets(there, hidden)
	if err != nil {
		return v, err
	}
	if len(found) != len(hidden) || !left.RawEquals(v) {
		return v, errors.New("it is not in the state as the plan knows it")
	}
	return redact.RestoreSecrets(v, found, secrets)
}
