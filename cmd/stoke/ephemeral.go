package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
)

// ephemerals finds the values of the variables that a saved plan needs and
// does not hold, because they are ephemeral.
func (o *operation) ephemerals(root *modules.Module, pl *plan.Plan) (map[string]cty.Value, hcl.Diagnostics) {
	values, _, diags := modules.Values(root, modules.Inputs{
		Environ: o.s.environ, Source: modules.OnDisk(), Dir: ".", Flags: o.flags.variables,
	}, o.s.files)
	found := map[string]cty.Value{}
	var missing []*modules.Variable
	for name, decl := range root.Variables {
		v, given := values[name]
		switch wanted := slices.Contains(pl.Ephemeral, name); {
		case !decl.Ephemeral:
		case given && wanted:
			found[name] = v.Value
		case given:
			diags = append(diags, diagnostic(hcl.DiagError, "Variable was not set for the plan",
				"The ephemeral variable %q had no value but its default when the plan was made, and must have none now. Make a new plan.", name))
		case wanted:
			missing = append(missing, decl)
		}
	}
	slices.SortFunc(missing, func(a, b *modules.Variable) int { return strings.Compare(a.Name, b.Name) })
	for _, decl := range missing {
		diags = append(diags, diagnostic(hcl.DiagError, "No value for ephemeral variable",
			"The variable %q had a value when the plan was made. It is ephemeral, so the plan does not hold it: give it again, with -var %s=… or in the environment as TF_VAR_%s.", decl.Name, decl.Name, decl.Name))
	}
	return found, diags
}

// contradicted reports variables that -var and -var-file give another value
// than the plan was made with. For the sealed values of a locked plan it
// compares digests; ephemeral values may differ each time and are not compared.
func (o *operation) contradicted(root *modules.Module, pl *plan.Plan) hcl.Diagnostics {
	values, _, _ := modules.Values(root, modules.Inputs{Source: modules.OnDisk(), Flags: o.flags.variables, FlagsOnly: true}, o.s.files)
	var diags hcl.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(values)) { // mistakes in them are found, and told, with the ephemeral ones
		decl := root.Variables[name]
		if decl.Ephemeral || pl.Locked != nil && slices.Contains(pl.Locked.Variables, name) {
			continue
		}
		planned, given := pl.Variables[name]
		if !given {
			planned = decl.Default
		}
		if planned != cty.NilVal && values[name].Value.RawEquals(planned) {
			continue
		}
		diags = append(diags, diagnostic(hcl.DiagError, "Value differs from the plan's",
			"The saved plan was made with another value of the variable %q than -var or -var-file gives now. A plan holds its variables: leave the option out, or make a new plan.", name))
	}
	return diags
}
