package backend

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Take converts arguments that are the members of an object, as the data
// source terraform_remote_state has them. Null is no arguments. What is not
// known yet is left out; an error names the argument at fault.
func (k *Kind) Take(config cty.Value) (Values, error) {
	values := Values{}
	if !config.IsKnown() || config.IsNull() {
		return values, nil
	}
	if ty := config.Type(); !ty.IsObjectType() && !ty.IsMapType() {
		return nil, fmt.Errorf("the backend %q takes its arguments as an object, and this is a %s", k.Name, ty.FriendlyName())
	}
	given := config.AsValueMap()
	for _, name := range sortedNames(given) {
		a := k.argument(name)
		if a == nil {
			return nil, fmt.Errorf("the backend %q has no argument %q%s", k.Name, name, k.suggestArgument(name))
		}
		v, err := convert.Convert(first(given[name], a), a.valueType())
		if err != nil {
			return nil, fmt.Errorf("the argument %q does not fit: %w", name, err)
		}
		if v.IsWhollyKnown() && !v.IsNull() {
			values[name] = v
		}
	}
	return values, nil
}

// first takes the block out of a list of one, which is how some write nested
// blocks.
func first(v cty.Value, a *Argument) cty.Value {
	if a.Nested == nil || !v.IsKnown() || v.IsNull() {
		return v
	}
	if ty := v.Type(); (ty.IsTupleType() || ty.IsListType()) && v.LengthInt() == 1 {
		return v.Index(cty.Zero)
	}
	return v
}

func sortedNames(m map[string]cty.Value) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
