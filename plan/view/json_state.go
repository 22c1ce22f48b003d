package view

import (
	"fmt"
	"io"
	"sort"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
)

// TerraformVersion is the version whose formats and files these are; tools
// that read them decide by it.
const TerraformVersion = "1.11.4"

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

// StateJSON writes a state in Terraform's published format 1.0.
// https://developer.hashicorp.com/terraform/internals/json-format#state-representation
func StateJSON(out io.Writer, s *state.State, schemas Schemas) error {
	w := newJSONWriter(out)
	w.object(func() {
		w.member("format_version", "1.0")
		instances := s.Instances()
		if len(instances) == 0 && len(s.Outputs()) == 0 {
			return
		}
		w.member("terraform_version", TerraformVersion)
		tree := newModuleTree()
		for _, a := range instances {
			tree.addObjects(s, a, schemas)
		}
		w.name("values")
		w.object(func() {
			if len(s.Outputs()) > 0 {
				w.stateOutputs(s.Outputs())
			}
			w.name("root_module")
			tree.write(w)
		})
		w.checks(s.CheckResults())
	})
	if err := w.finish(); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

func (w *jsonWriter) stateOutputs(outputs map[string]state.Output) {
	w.name("outputs")
	w.object(func() {
		for _, name := range sortedKeys(outputs) {
			j, err := outputJSON(outputs[name].Value, outputs[name].Sensitive)
			if err != nil {
				w.fail(fmt.Errorf("encode output %s: %w", name, err))
			}
			w.member(name, j)
		}
	})
}

func (t *moduleTree) addObjects(s *state.State, a address.Instance, schemas Schemas) {
	add := func(o *state.Object, deposed string) {
		t.add(a.Module, func() jsonResource {
			schema := lookup(schemas, a, o)
			v, known := objectValue(o, schema)
			hide := secret{named: placesOf(o.Sensitive)}
			if known {
				hide.declared = sensitivePlaces(schema.Block)
			}
			r := resourceJSON(a, o.Provider, o.SchemaVersion, v, hide)
			r.DependsOn, r.Tainted, r.DeposedKey = o.Dependencies, o.Tainted, deposed
			return r
		})
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
	if m, is := values.(map[string]any); is && len(m) == 0 {
		values = nil // nothing of it is known
	}
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

// moduleTree puts resources under the modules that they belong to. They are
// encoded one by one while the tree is written.
type moduleTree struct {
	root    *moduleNode
	modules map[address.Module]*moduleNode
	some    bool
}

type moduleNode struct {
	address   address.Module
	resources []func() jsonResource
	children  []*moduleNode
}

func newModuleTree() *moduleTree {
	root := &moduleNode{}
	return &moduleTree{root: root, modules: map[address.Module]*moduleNode{"": root}}
}

func (t *moduleTree) add(m address.Module, r func() jsonResource) {
	at := t.module(m)
	at.resources = append(at.resources, r)
	t.some = true
}

// module returns the node of a module, with those above it.
func (t *moduleTree) module(m address.Module) *moduleNode {
	if at := t.modules[m]; at != nil {
		return at
	}
	steps := m.Steps()
	var parent address.Module
	for _, s := range steps[:len(steps)-1] {
		parent = parent.Child(s.Name, s.Key)
	}
	up := t.module(parent)
	at := &moduleNode{address: m}
	up.children = append(up.children, at)
	t.modules[m] = at
	return at
}

func (t *moduleTree) write(w *jsonWriter) { t.root.write(w) }

func (n *moduleNode) write(w *jsonWriter) {
	sort.Slice(n.children, func(i, j int) bool { return n.children[i].address < n.children[j].address })
	w.object(func() {
		if len(n.resources) > 0 {
			w.name("resources")
			w.array(func() {
				for _, r := range n.resources {
					w.value(r())
				}
			})
		}
		w.optional("address", string(n.address))
		if len(n.children) > 0 {
			w.name("child_modules")
			w.array(func() {
				for _, c := range n.children {
					c.write(w)
				}
			})
		}
	})
}
