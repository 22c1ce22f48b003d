package eval

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/stokehq/stoke/modules/lang"
)

// functions returns the module's table, one for all instances, and one for all
// modules whose providers have no functions. Relative file names start from the
// working directory, whatever module they are in: that is what path.module is
// made for.
func (m *Module) functions() map[string]function.Function {
	ev := m.ev
	ev.shared.Lock()
	table, ok := ev.shared.functions[m.Decl]
	ev.shared.Unlock()
	if ok {
		return table
	}
	own := m.providerFunctions()
	ev.shared.Lock()
	defer ev.shared.Unlock()
	if len(own) > 0 {
		table = lang.NewFunctions(lang.Options{Planning: ev.opts.Planning, PlanTime: ev.opts.PlanTime, Interrupted: ev.interrupted, Providers: own})
	} else if table = ev.shared.functions[nil]; table == nil {
		table = lang.NewFunctions(lang.Options{Planning: ev.opts.Planning, PlanTime: ev.opts.PlanTime, Interrupted: ev.interrupted})
		ev.shared.functions[nil] = table
	}
	ev.shared.functions[m.Decl] = table
	return table
}

const providerPrefix = "provider::"

// providerFunctions returns the functions of the module's required providers,
// by their local names. A provider that is not in required_providers has none
// here, not even where resources need no such entry.
func (m *Module) providerFunctions() map[string]function.Function {
	var own map[string]function.Function
	for local := range m.Decl.Settings.RequiredProviders {
		source, err := m.sourceOf(local)
		if err != nil {
			continue // whoever needs the provider says so
		}
		for name, f := range m.ev.opts.Catalogue[source].Functions {
			if own == nil {
				own = map[string]function.Function{}
			}
			own[providerPrefix+local+"::"+name] = f
		}
	}
	return own
}

// explainFunctions adds the missing declaration to errors about functions in
// unknown namespaces.
func explainFunctions(diags hcl.Diagnostics) {
	for _, d := range diags {
		unknown, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
		if !ok || unknown.CalledFunctionNamespace() == "" {
			continue
		}
		space, name := unknown.CalledFunctionNamespace(), unknown.CalledFunctionName()
		rest, isProvider := strings.CutPrefix(space, providerPrefix)
		local := strings.TrimSuffix(rest, "::")
		switch {
		case !isProvider && space == "core::":
			continue // hcl says it well
		case !isProvider:
			d.Detail = fmt.Sprintf("There is no namespace %q. Call functions of providers as "+
				"provider::LOCAL_NAME::FUNCTION, and functions of the language by their names.", strings.TrimSuffix(space, "::"))
		case local == "" || strings.Contains(local, "::"):
			d.Summary = "Unknown provider function"
			d.Detail = "Functions of providers are called as provider::LOCAL_NAME::FUNCTION, with the provider's name in required_providers."
		case hasPrefix(d.EvalContext, space):
			d.Summary = "Unknown provider function"
			d.Detail = fmt.Sprintf("The provider %q has no function %q.", local, name)
		default:
			d.Summary = "Unknown provider function"
			d.Detail = fmt.Sprintf("Function %q is not available here: required_providers of this module has no provider "+
				"%q, or that provider has no functions.", space+name, local)
		}
	}
}

// hasPrefix reports whether some function of the context is in the namespace.
func hasPrefix(ctx *hcl.EvalContext, space string) bool {
	for ; ctx != nil; ctx = ctx.Parent() {
		for name := range ctx.Functions {
			if strings.HasPrefix(name, space) {
				return true
			}
		}
	}
	return false
}
