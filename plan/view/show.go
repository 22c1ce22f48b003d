package view

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// Schemas finds the schema of a resource or data source by its provider, as
// the state writes it, or nil when the provider is not at hand.
type Schemas func(provider string, mode address.Mode, typeName string) *providers.ResourceSchema

// State prints every object of a state and its outputs.
func (p *Printer) State(s *state.State, schemas Schemas) {
	p, flush := p.buffered()
	defer flush()
	instances := s.Instances()
	if len(instances) == 0 && len(s.Outputs()) == 0 {
		p.print("The state is empty: it holds no objects and no outputs.\n")
		return
	}
	for _, a := range instances {
		p.Instance(s, a, schemas)
		p.print("\n")
	}
	if len(s.Outputs()) > 0 {
		p.print("\nOutputs:\n\n")
		for _, name := range outputNames(s.Outputs()) {
			o := s.Outputs()[name]
			d := &differ{color: p.Color}
			d.WriteString(name + " = ")
			d.writeWhole(0, same, o.Value, secret{named: &places{here: o.Sensitive}})
			p.print(d.String(), "\n")
		}
	}
}

// Instance prints the objects under one address: the current one and those
// that wait to be deleted.
func (p *Printer) Instance(s *state.State, a address.Instance, schemas Schemas) {
	if o := s.Current(a); o != nil {
		remark := ""
		if o.Tainted {
			remark = " (tainted)"
		}
		p.object(a, remark, o, schemas)
	}
	for i, key := range sortedKeys(s.Deposed(a)) {
		if i > 0 || s.Current(a) != nil {
			p.print("\n")
		}
		p.object(a, " (deposed object "+key+")", s.Deposed(a)[key], schemas)
	}
}

func (p *Printer) object(a address.Instance, remark string, o *state.Object, schemas Schemas) {
	schema := lookup(schemas, a, o)
	v, known := objectValue(o, schema)
	var block *providers.Block
	if known {
		block = schema.Block
	}
	d := &differ{color: p.Color}
	d.WriteString(p.paintText(bold, "# "+printable(a.String())+":"+printable(remark)) + "\n")
	d.WriteString(blockHeader(a) + " {\n")
	hide := secret{placesOf(o.Sensitive), sensitivePlaces(block)}.echoed(v, schema, o.Sensitive)
	d.body(4, same, block, pair{before: v, after: v, beforeSecret: hide, afterSecret: hide}, true)
	d.WriteString("}\n")
	p.print(d.String())
}

// ObjectValue is an object's attributes; known is false where its schema is
// not at hand and they are read as plain JSON.
func ObjectValue(a address.Instance, o *state.Object, schemas Schemas) (v cty.Value, known bool) {
	return objectValue(o, lookup(schemas, a, o))
}

func lookup(schemas Schemas, a address.Instance, o *state.Object) *providers.ResourceSchema {
	if schemas == nil {
		return nil
	}
	return schemas(o.Provider, a.Mode, a.Type)
}

// objectValue decodes an object by its schema, or, where that is missing or
// of another version, as plain JSON; it reports which.
func objectValue(o *state.Object, schema *providers.ResourceSchema) (cty.Value, bool) {
	if schema != nil {
		if v, err := o.Value(schema.Block.ImpliedType()); err == nil {
			return v, true
		}
	}
	ty, err := ctyjson.ImpliedType(o.JSON)
	if err != nil {
		return cty.EmptyObjectVal, false
	}
	v, err := ctyjson.Unmarshal(o.JSON, ty)
	if err != nil {
		return cty.EmptyObjectVal, false
	}
	return v, false
}

// ProviderSource is the source address in a provider as the state writes it:
// module.a.provider["registry.terraform.io/x/y"].alias.
func ProviderSource(text string) string {
	_, rest, ok := strings.Cut(text, `provider["`)
	if !ok {
		return text
	}
	name, _, _ := strings.Cut(rest, `"`)
	return name
}
