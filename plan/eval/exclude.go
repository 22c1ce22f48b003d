package eval

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
)

// Excluded reports whether the count or for_each of the resource, or of a
// module around it, depends on something excluded: it represents instances that
// are left as they are.
func (i *Instance) Excluded() bool { return i.rep.excluded || i.Resource.module.excluded() }

func (m *Module) excluded() bool {
	for ; m != nil; m = m.parent {
		if m.rep.excluded {
			return true
		}
	}
	return false
}

// open is the value of a call or resource whose instances are not known.
func open(reps ...repetition) cty.Value {
	for _, r := range reps {
		if r.excluded {
			return cty.DynamicVal.Mark(lang.Excluded)
		}
	}
	return cty.DynamicVal
}
