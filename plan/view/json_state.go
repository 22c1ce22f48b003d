package view

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// TerraformVersion is the version whose formats and files these are; tools
// that read them decide by it.
const TerraformVersion = "1.11.4"

// jsonState is Terraform's published JSON of a state, format 1.0.
// https://developer.hashicorp.com/terraform/internals/json-format#state-representation
type jsonState struct {
	FormatVersion    string      `json:"format_version"`
	TerraformVersion string      `json:"terraform_version,omitempty"`
	Values           *jsonValues `json:"values,omitempty"`
}

type jsonValues struct {
	Outputs    map[string]jsonOutput `json:"outputs,omitempty"`
	RootModule *jsonModule           `json:"root_module"`
}

type jsonModule struct {
	Resources    []jsonResource `json:"resources,omitempty"`
	Address      string         `json:"address,omitempty"`
	ChildModules []*jsonModule  `json:"child_modules,omitempty"`
}

type jsonResource struct {
	Address         string   `json:"address"`
	Mode            string   `json:"mode"`
	Type            string   `json:"type"`
	Name            string   `json:"name"`
	Index           any      `json:"index,omitempty"`
	ProviderName    string   `json:"provider_name"`
	SchemaVersion   int64    `json:"schema_version"`
	Values          any      `json:"values,omitempty"`
	SensitiveValues any      `json:"sensitive_values,omitempty"`
	DependsOn       []string `json:"depends_on,omitempty"`
	Tainted         bool     `json:"tainted,omitempty"`
	DeposedKey      string   `json:"deposed_key,omitempty"`
}

// StateJSON is a state in Terraform's published format.
func StateJSON(s *state.State, schemas Schemas) ([]byte, error) {
	out := jsonState{FormatVersion: "1.0"}
	instances := s.Instances()
	if len(instances) > 0 || len(s.Outputs()) > 0 {
		out.TerraformVersion = TerraformVersion
		out.Values = &jsonValues{}
		tree := newModuleTree()
		for _, a := range instances {
			tree.addObjects(s, a, schemas)
		}
		out.Values.RootModule = tree.finish()
		for name, o := range s.Outputs() {
			j, err := outputJSON(o.Value, o.Sensitive)
			if err != nil {
				return nil, fmt.Errorf("encode output %s: %w", name, err)
			}
			if out.Values.Outputs == nil {
				out.Values.Outputs = make(map[string]jsonOutput)
			}
			out.Values.Outputs[name] = j
		}
	}
	return json.Marshal(out)
}

func (t *moduleTree) addObjects(s *state.State, a address.Instance, schemas Schemas) {
	add := func(o *state.Object, deposed string) {
		schema := lookup(schemas, a, o)
		v, known := objectValue(o, schema)
		hide := secret{named: placesOf(o.Sensitive)}
		if known {
			hide.declared = declared(schema.Block)
		}
		r := resourceJSON(a, o.Provider, o.SchemaVersion, v, hide)
		r.DependsOn, r.Tainted, r.DeposedKey = o.Dependencies, o.Tainted, deposed
		t.add(a.Module, r)
	}
	if o := s.Current(a); o != nil {
		add(o, "")
	}
	for _, key := range sortedKeys(s.Deposed(a)) {
		add(s.Deposed(a)[key], key)
	}
}

func resourceJSON(a address.Instance, provider string, version int64, v cty.Value, hide secret) jsonResource {
	values, _ := jsonValue(v)
	return jsonResource{
		Address: a.String(), Mode: modeName(a.Mode), Type: a.Type, Name: a.Name, Index: jsonKey(a.Key),
		ProviderName: ProviderSource(provider), SchemaVersion: version,
		Values: values, SensitiveValues: outline(v, hide, isSecret),
	}
}

func modeName(m address.Mode) string {
	if m == address.Data {
		return "data"
	}
	return "managed"
}

func jsonKey(k address.Key) any {
	if n, ok := k.Int(); ok {
		return n
	}
	if s, ok := k.Str(); ok {
		return s
	}
	return nil
}

// moduleTree puts resources under the modules that they belong to.
type moduleTree struct {
	root    *jsonModule
	modules map[address.Module]*jsonModule
}

func newModuleTree() *moduleTree {
	root := &jsonModule{}
	return &moduleTree{root: root, modules: map[address.Module]*jsonModule{"": root}}
}

func (t *moduleTree) add(m address.Module, r jsonResource) {
	at := t.module(m)
	at.Resources = append(at.Resources, r)
}

// module returns the node of a module, with those above it.
func (t *moduleTree) module(m address.Module) *jsonModule {
	if at := t.modules[m]; at != nil {
		return at
	}
	steps := m.Steps()
	var parent address.Module
	for _, s := range steps[:len(steps)-1] {
		parent = parent.Child(s.Name, s.Key)
	}
	up := t.module(parent)
	at := &jsonModule{Address: string(m)}
	up.ChildModules = append(up.ChildModules, at)
	t.modules[m] = at
	return at
}

func (t *moduleTree) finish() *jsonModule {
	for _, m := range t.modules {
		sort.Slice(m.ChildModules, func(i, j int) bool { return m.ChildModules[i].Address < m.ChildModules[j].Address })
	}
	return t.root
}
