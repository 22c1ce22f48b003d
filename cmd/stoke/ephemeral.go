package main

import (
	"fmt"
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

// needless refuses options for variables whose values the plan holds.
func (o *operation) needless(pl *plan.Plan, root *modules.Module) error {
	again := len(pl.Ephemeral) > 0 || pl.Locked != nil && len(pl.Locked.Variables) > 0
	for _, flag := range o.flags.variables {
		option, holds := "-var-file", "what was given when it was made"
		if !flag.File {
			name, _, _ := strings.Cut(flag.Text, "=")
			name = strings.TrimSpace(name)
			decl := root.Variables[name]
			if decl == nil || decl.Ephemeral || pl.Locked != nil && slices.Contains(pl.Locked.Variables, name) {
				continue
			}
			option, holds = "-var", "the value of "+name
		} else if again {
			continue
		}
		return &usageError{path: "stoke apply", err: fmt.Errorf("%s has no place beside a saved plan, which holds %s", option, holds)}
	}
	return nil
}
