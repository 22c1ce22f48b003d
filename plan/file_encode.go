package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/stokehq/stoke/providers"
)

// encodeRecords writes the plan record by record.
func encodeRecords(w io.Writer, p *Plan) error {
	e := &encoder{out: json.NewEncoder(w), types: map[string]int{}, implied: map[*providers.ResourceSchema]impliedType{}}
	e.write(fileHeader{
		Format: planFormat, Mode: p.Mode, Lineage: p.Lineage, Serial: p.Serial, Dir: p.Dir, Workspace: p.Workspace,
		Made: p.Made, Complete: p.Complete, Targets: p.Targets,
	})
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		v := p.Variables[name]
		e.write(fileRecord{Variable: &fileVariable{name, e.typeOf(v.Type()), e.value(v, v.Type())}})
	}
	for _, m := range p.Moves {
		e.write(fileRecord{Move: &fileMove{m.From.String(), m.To.String()}})
	}
	for _, c := range p.Changes {
		e.write(fileRecord{Change: e.change(c)})
	}
	for _, c := range p.Drift {
		e.write(fileRecord{Drift: e.change(c)})
	}
	for _, c := range p.Refreshed {
		e.write(fileRecord{Refreshed: e.change(c)})
	}
	for _, d := range p.Deferred {
		e.write(fileRecord{Deferral: e.deferral(d)})
	}
	for _, o := range p.Outputs {
		e.write(fileRecord{Output: &fileOutput{
			Name: o.Name, Action: o.Action, BeforeSensitive: o.BeforeSensitive, Sensitive: o.Sensitive, Deferred: o.Deferred,
			Before: e.value(o.Before, cty.DynamicPseudoType), After: e.value(o.After, cty.DynamicPseudoType),
		}})
	}
	for _, n := range p.Notes {
		e.write(fileRecord{Note: &fileNote{n.Address, e.path(n.Path), n.Kind, n.Text, n.Number}})
	}
	for _, c := range p.Checks {
		e.write(fileRecord{Check: checkRecord(c)})
	}
	for i := range p.Ops {
		e.write(fileRecord{Op: &p.Ops[i]})
	}
	if e.err != nil {
		return fmt.Errorf("encode plan: %w", e.err)
	}
	return nil
}

// encoder turns a plan into records. It keeps the errors.
type encoder struct {
	out     *json.Encoder
	types   map[string]int
	implied map[*providers.ResourceSchema]impliedType // nil: of objects without a schema
	err     error
}

// impliedType is the type of a schema's objects, and its number.
type impliedType struct {
	ty     cty.Type
	number int
}

func (e *encoder) write(record any) {
	if err := e.out.Encode(record); err != nil {
		e.fail(err)
	}
}

func (e *encoder) fail(err error) { e.err = errors.Join(e.err, err) }

// typeOf is the number of a type, which is written when it is first seen.
func (e *encoder) typeOf(ty cty.Type) int {
	js, err := ctyjson.MarshalType(ty)
	if err != nil {
		e.fail(err)
		return 0
	}
	i, ok := e.types[string(js)]
	if !ok {
		i = len(e.types)
		e.types[string(js)] = i
		e.write(fileRecord{Type: js})
	}
	return i
}

func (e *encoder) objectType(schema *providers.ResourceSchema) impliedType {
	t, ok := e.implied[schema]
	if !ok {
		t.ty = cty.DynamicPseudoType
		if schema != nil {
			t.ty = schema.Block.ImpliedType()
		}
		t.number = e.typeOf(t.ty)
		e.implied[schema] = t
	}
	return t
}

func (e *encoder) value(v cty.Value, ty cty.Type) []byte {
	if v == cty.NilVal {
		return nil
	}
	b, err := msgpack.Marshal(v, ty)
	if err != nil {
		e.fail(err)
	}
	return b
}

func (e *encoder) change(c *Change) *fileChange {
	t := e.objectType(c.Schema)
	return &fileChange{
		Addr: c.Addr.String(), Deposed: c.Deposed, fileRefactoring: refactoringOf(c), Provider: c.Provider, Action: c.Action, Reason: c.Reason, Type: t.number,
		Before: e.value(c.Before, t.ty), After: e.value(c.After, t.ty), Config: e.value(c.Config, t.ty),
		BeforeSensitive: e.paths(c.BeforeSensitive), AfterSensitive: e.paths(c.AfterSensitive), Replace: e.paths(c.Replace),
		Private: c.Private, PriorPrivate: c.PriorPrivate, Legacy: c.Legacy, CBD: c.CreateBeforeDestroy, Dependencies: c.Dependencies, PriorDependencies: c.PriorDependencies,
	}
}

func (e *encoder) paths(paths []cty.Path) [][]step {
	var out [][]step
	for _, p := range paths {
		out = append(out, e.path(p))
	}
	return out
}

func (e *encoder) path(p cty.Path) []step {
	out := make([]step, 0, len(p))
	for _, s := range p {
		switch s := s.(type) {
		case cty.GetAttrStep:
			out = append(out, step{Attr: &s.Name})
		case cty.IndexStep:
			js, err := ctyjson.Marshal(s.Key, cty.DynamicPseudoType)
			if err != nil {
				e.fail(err)
			}
			out = append(out, step{Index: js})
		}
	}
	return out
}
