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
	// Schema is what the provider of a source address offers; nil if it is not
	// available.
	Schema func(source string) *providers.Schema
}

type jsonConfig struct {
	ProviderConfig map[string]jsonProviderConfig `json:"provider_config,omitempty"`
	RootModule     jsonConfigModule              `json:"root_module"`
}

type jsonConfigModule struct {
	Outputs     map[string]jsonConfigOutput   `json:"outputs,omitempty"`
	Resources   []jsonConfigResource          `json:"resources,omitempty"`
	ModuleCalls map[string]jsonModuleCall     `json:"module_calls,omitempty"`
	Variables   map[string]jsonConfigVariable `json:"variables,omitempty"`
}

type jsonConfigOutput struct {
	Sensitive   bool     `json:"sensitive,omitempty"`
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

// configurationJSON is the configuration in the published format.
func configurationJSON(c Configuration) jsonConfig {
	w := &configWriter{Configuration: c, listed: make(map[string]listedProvider)}
	var out jsonConfig
	if c.Root != nil {
		out.RootModule = w.module(&frame{module: c.Root})
		out.ProviderConfig = w.providerConfigs()
	}
	return out
}

type configWriter struct {
	Configuration
	listed map[string]listedProvider
}

func (w *configWriter) module(f *frame) jsonConfigModule {
	m := f.module
	var out jsonConfigModule
	w.list(f)
	for name, o := range m.Outputs {
		if out.Outputs == nil {
			out.Outputs = make(map[string]jsonConfigOutput, len(m.Outputs))
		}
		out.Outputs[name] = jsonConfigOutput{
			Sensitive: o.Sensitive, Expression: expressionJSON(o.Value),
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
	source := w.Source(f.module, r.Provider.Name)
	addr := address.Resource{Mode: r.Mode, Type: r.Type, Name: r.Name}
	out := jsonConfigResource{
		Address: addr.String(), Mode: modeName(r.Mode), Type: r.Type, Name: r.Name,
		ProviderConfigKey: w.configKey(f, r.Provider), DependsOn: traversalNames(r.DependsOn),
		CountExpression: expressionOrNil(expressionJSON(r.Count)), ForEachExpression: expressionOrNil(expressionJSON(r.ForEach)),
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

// expressionOrNil is an expression, or nothing where none is written or the format has
// nothing to say of it.
func expressionOrNil(expression map[string]any) any {
	if len(expression) == 0 {
		return nil
	}
	return expression
}

func (w *configWriter) call(f *frame, c *modules.Call) jsonModuleCall {
	out := jsonModuleCall{
		Source: c.Source, DependsOn: traversalNames(c.DependsOn),
		CountExpression: expressionOrNil(expressionJSON(c.Count)), ForEachExpression: expressionOrNil(expressionJSON(c.ForEach)),
	}
	for name, attr := range c.Args {
		if out.Expressions == nil {
			out.Expressions = make(map[string]any, len(c.Args))
		}
		out.Expressions[name] = expressionJSON(attr.Expr)
	}
	if c.Module != nil {
		path := strings.TrimPrefix(f.path+".module."+c.Name, ".")
		child := &frame{module: c.Module, call: c, parent: f, path: path}
		w.pass(child)
		out.Module = w.module(child)
	}
	return out
}
