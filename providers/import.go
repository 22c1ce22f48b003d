package providers

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// timeoutNames are what the block timeouts of Terraform's frameworks may hold.
var timeoutNames = []string{"create", "read", "update", "delete", "default"}

// isTimeouts reports whether an argument of a type is the block timeouts of Terraform's frameworks: how
// long calls may take, which no object in the world has.
func isTimeouts(name string, ty cty.Type) bool {
	if name != "timeouts" || !ty.IsObjectType() {
		return false
	}
	for part, of := range ty.AttributeTypes() {
		if of != cty.String || !slices.Contains(timeoutNames, part) {
			return false
		}
	}
	return true
}

// withTimeouts returns an imported object with the declared timeouts, which are not a fact of it: the next
// plan would have a difference that no call could mend.
func withTimeouts(state, config cty.Value) cty.Value {
	if config == cty.NilVal || !config.IsKnown() || config.IsNull() || state.IsNull() {
		return state
	}
	all := state.AsValueMap()
	for name, v := range config.AsValueMap() {
		was, ok := all[name]
		if ok && isTimeouts(name, v.Type()) && v.IsWhollyKnown() && was.Type().Equals(v.Type()) {
			all[name] = v
		}
	}
	return cty.ObjectVal(all)
}
