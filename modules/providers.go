package modules

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// emptyBody reports whether nothing is left in a body: a provider block
// without arguments only says that the module expects the configuration, and
// gives way to one that the caller passes.
func emptyBody(body hcl.Body) bool {
	if native, ok := body.(*hclsyntax.Body); ok {
		return len(native.Attributes)+len(native.Blocks) == 0
	}
	attrs, diags := body.JustAttributes()
	return len(attrs) == 0 && !diags.HasErrors()
}

// checkPassed compares the provider configurations that a call passes with
// those that the child expects. The child's own calls are loaded.
func (l *loader) checkPassed(call *Call) {
	child := call.Module
	expected := map[string]bool{}
	for _, required := range child.Settings.RequiredProviders {
		for _, alias := range required.Aliases {
			expected[alias] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(call.Providers)) {
		ref := call.Providers[key]
		own := child.Providers[key]
		switch _, alias := cutAlias(key); {
		case own != nil && !own.Empty:
			l.fail(&ref.Range, "Provider configured in the module",
				"Module %q configures the provider %s itself at %s, so that none can be passed. Take the block out of the module, or the entry out of providers.", call.Name, key, own.Range)
		case own == nil && alias && !expected[key]:
			l.fail(&ref.Range, "Module expects no such provider",
				"Module %q declares no provider configuration %s; it would have to be among the configuration_aliases of its required_providers.%s",
				call.Name, key, didYouMean(key, slices.Collect(maps.Keys(expected))))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(expected)) {
		if _, ok := call.Providers[key]; !ok && child.Providers[key] == nil {
			l.fail(&call.Range, "Missing provider configuration",
				"Module %q expects the provider configuration %s. Add it to the call: providers = { %s = … }.", call.Name, key, key)
		}
	}
	if call.Count == nil && call.ForEach == nil && len(call.DependsOn) == 0 {
		return
	}
	if own := configuredBelow(child); own != nil {
		l.fail(&call.Range, "Module with its own provider configuration",
			"Module %q, or a module that it calls, configures a provider at %s. Such a module cannot have count, for_each or depends_on, because the configuration has to outlive its objects. "+
				"Move the block to the root module and pass it on with providers = { … }.", call.Name, own.Range)
	}
}

// cutAlias takes a provider's key apart.
func cutAlias(key string) (name string, alias bool) {
	for i := range key {
		if key[i] == '.' {
			return key[:i], true
		}
	}
	return key, false
}

// configuredBelow finds a provider block with arguments in a module or in one
// that it calls.
func configuredBelow(m *Module) *ProviderConfig {
	for _, key := range slices.Sorted(maps.Keys(m.Providers)) {
		if p := m.Providers[key]; !p.Empty {
			return p
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Calls)) {
		if child := m.Calls[name].Module; child != nil {
			if p := configuredBelow(child); p != nil {
				return p
			}
		}
	}
	return nil
}
