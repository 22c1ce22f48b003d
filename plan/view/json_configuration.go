package view

import (
	"sort"
	"strings"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

// Configuration is what views know of the configuration that a plan was made
// from, and of the providers that it names.
type Configuration struct {
	Root *modules.Module
	// Source is the address of the provider behind a local name of a module.
	Source func(m *modules.Module, name string) string
	// Schema is what the provider of a source address offers; nil where it is
	// not at hand.
	Schema func(source string) *providers.Schema
}

type jsonConfig struct {
	ProviderConfig map[string]jsonProviderConfig `json:"provider_config,omitempty"`
	RootModule     jsonConfigModule              `json:"root_module"`
}

type jsonProviderConfig struct {
	Name              string         `json:"name,omitempty"`
	FullName          string         `json:"full_name,omitempty"`
	Alias             string         `json:"alias,omitempty"`
	VersionConstraint string         `json:"version_constraint,omitempty"`
	ModuleAddress     string         `json:"module_address,omitempty"`
	Expressions       map[string]any `json:"expressions,omitempty"`
}

type jsonConfigModule struct {
	Outputs     map[string]jsonConfigOutput   `json:"outputs,omitempty"`
	Resources   []jsonConfigResource          `json:"resources,omitempty"`
	ModuleCalls map[string]jsonModuleCall     `json:"module_calls,omitempty"`
	Variables   map[string]jsonConfigVariable `json:"variables,omitempty"`
}

type jsonConfigOutput struct {
	Sensitive   bool     `json:"sensitive,omitempty"`
	Ephemeral   bool     `json:"ephemeral,omitempty"`
	Expression  any      `json:"expression"`
	DependsOn   []string `json:"depends_on,omitempty"`
	Description string   `json:"description,omitempty"`
}

type jsonConfigResource struct {
	Address           string         `json:"address"`
	Mode              string         `json:"mode"`
	Type              string         `json:"type"`
	Name              string         `json:"name"`
	ProviderConfigKey string         `json:"provider_config_key"`
	Expressions       map[string]any `json:"expressions,omitempty"`
	SchemaVersion     int64          `json:"schema_version"`
	CountExpression   any            `json:"count_expression,omitempty"`
	ForEachExpression any            `json:"for_each_expression,omitempty"`
	DependsOn         []string       `json:"depends_on,omitempty"`
}

type jsonModuleCall struct {
	Source            string           `json:"source,omitempty"`
	Expressions       map[string]any   `json:"expressions,omitempty"`
	CountExpression   any              `json:"count_expression,omitempty"`
	ForEachExpression any              `json:"for_each_expression,omitempty"`
	Module            jsonConfigModule `json:"module"`
	VersionConstraint string           `json:"version_constraint,omitempty"`
	DependsOn         []string         `json:"depends_on,omitempty"`
}

type jsonConfigVariable struct {
	Default     *any   `json:"default,omitempty"`
	Description string `json:"description,omitempty"`
	Sensitive   bool   `json:"sensitive,omitempty"`
}

// frame is a module under the calls that lead to it.
type frame struct {
	module *modules.Module
	call   *modules.Call // nil at the root
	parent *frame
	path   string // module.a.module.b
}

// owner finds the provider block, or the module that would have it, behind a
// reference, as the engine does: passed on by calls, else inherited.
func (f *frame) owner(ref modules.ProviderRef) (*frame, modules.ProviderRef) {
	for {
		if f.module.Providers[ref.Key()] != nil || f.parent == nil {
			return f, ref
		}
		if passed, ok := f.call.Providers[ref.Key()]; ok {
			f, ref = f.parent, passed
			continue
		}
		if ref.Alias != "" {
			return f, ref
		}
		f = f.parent
	}
}

func (f *frame) key(ref modules.ProviderRef) string {
	if f.path == "" {
		return ref.Key()
	}
	return f.path + ":" + ref.Key()
}

// configurationJSON is the configuration in the published format.
func configurationJSON(c Configuration) jsonConfig {
	w := &configWriter{Configuration: c, out: jsonConfig{ProviderConfig: map[string]jsonProviderConfig{}}}
	if c.Root != nil {
		w.out.RootModule = w.module(&frame{module: c.Root})
		w.defaults()
	}
	return w.out
}

type configWriter struct {
	Configuration
	out jsonConfig
}

func (w *configWriter) module(f *frame) jsonConfigModule {
	m := f.module
	var out jsonConfigModule
	for _, p := range m.Providers {
		w.provider(f, modules.ProviderRef{Name: p.Name, Alias: p.Alias})
	}
	for name, o := range m.Outputs {
		if out.Outputs == nil {
			out.Outputs = make(map[string]jsonConfigOutput, len(m.Outputs))
		}
		out.Outputs[name] = jsonConfigOutput{
			Sensitive: o.Sensitive, Ephemeral: o.Ephemeral, Expression: expressionJSON(o.Value),
			DependsOn: traversalNames(o.DependsOn), Description: o.Description,
		}
	}
	for _, r := range m.Resources {
		out.Resources = append(out.Resources, w.resource(f, r))
	}
	sort.Slice(out.Resources, func(i, j int) bool {
		a, b := out.Resources[i], out.Resources[j]
		if a.Mode != b.Mode {
			return a.Mode == "managed"
		}
		return a.Address < b.Address
	})
	for name, call := range m.Calls {
		if out.ModuleCalls == nil {
			out.ModuleCalls = make(map[string]jsonModuleCall, len(m.Calls))
		}
		out.ModuleCalls[name] = w.call(f, call)
	}
	for name, v := range m.Variables {
		if out.Variables == nil {
			out.Variables = make(map[string]jsonConfigVariable, len(m.Variables))
		}
		j := jsonConfigVariable{Description: v.Description, Sensitive: v.Sensitive}
		if !v.Required() {
			x := plainJSON(v.Default)
			j.Default = &x
		}
		out.Variables[name] = j
	}
	return out
}

func (w *configWriter) resource(f *frame, r *modules.Resource) jsonConfigResource {
	owner, ref := f.owner(r.Provider)
	source := w.provider(owner, ref)
	addr := address.Resource{Mode: r.Mode, Type: r.Type, Name: r.Name}
	out := jsonConfigResource{
		Address: addr.String(), Mode: modeName(r.Mode), Type: r.Type, Name: r.Name,
		ProviderConfigKey: owner.key(ref), DependsOn: traversalNames(r.DependsOn),
		CountExpression: given(expressionJSON(r.Count)), ForEachExpression: given(expressionJSON(r.ForEach)),
	}
	if all := w.Schema(source); all != nil {
		types := all.Resources
		if r.Mode == address.Data {
			types = all.Data
		}
		if schema := types[r.Type]; schema != nil {
			out.SchemaVersion = schema.Version
			out.Expressions = bodyJSON(r.Body, schema.Block)
		}
	}
	return out
}

// defaults lists the default configuration of every provider in use, which
// exists whether or not somebody refers to it.
func (w *configWriter) defaults() {
	for _, p := range w.out.ProviderConfig {
		name := p.FullName[strings.LastIndexByte(p.FullName, '/')+1:]
		if _, listed := w.out.ProviderConfig[name]; !listed {
			w.out.ProviderConfig[name] = jsonProviderConfig{Name: name, FullName: p.FullName}
		}
	}
}

// given is an expression, or nothing where none is written.
func given(expression map[string]any) any {
	if expression == nil {
		return nil
	}
	return expression
}

func (w *configWriter) call(f *frame, c *modules.Call) jsonModuleCall {
	out := jsonModuleCall{
		Source: c.Source, DependsOn: traversalNames(c.DependsOn),
		CountExpression: given(expressionJSON(c.Count)), ForEachExpression: given(expressionJSON(c.ForEach)),
	}
	for name, attr := range c.Args {
		if out.Expressions == nil {
			out.Expressions = make(map[string]any, len(c.Args))
		}
		out.Expressions[name] = expressionJSON(attr.Expr)
	}
	if c.Module != nil {
		path := strings.TrimPrefix(f.path+".module."+c.Name, ".")
		out.Module = w.module(&frame{module: c.Module, call: c, parent: f, path: path})
	}
	return out
}

// provider lists a provider configuration, written or implied, and returns
// the source address behind it.
func (w *configWriter) provider(owner *frame, ref modules.ProviderRef) string {
	source := w.Source(owner.module, ref.Name)
	key := owner.key(ref)
	if _, done := w.out.ProviderConfig[key]; done {
		return source
	}
	j := jsonProviderConfig{
		Name: ref.Name, FullName: source, Alias: ref.Alias, ModuleAddress: owner.path,
		VersionConstraint: owner.module.Settings.RequiredProviders[ref.Name].Version,
	}
	if block := owner.module.Providers[ref.Key()]; block != nil {
		if schema := w.Schema(source); schema != nil {
			j.Expressions = bodyJSON(block.Body, schema.Provider)
		}
	}
	w.out.ProviderConfig[key] = j
	return source
}
