package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/seal"
	"github.com/stokehq/stoke/providers"
)

// encodeRecords writes the plan record by record.
func encodeRecords(w io.Writer, p *Plan, s *fileSeal, box *seal.Box) error {
	e := &encoder{
		out: json.NewEncoder(w), box: box, types: map[string]int{},
		implied: map[*providers.ResourceSchema]impliedType{}, places: redact.Places{},
	}
	e.write(fileHeader{
		Format: planFormat, Mode: p.Mode, Lineage: p.Lineage, Serial: p.Serial, Dir: p.Dir, Workspace: p.Workspace,
		Made: p.Made, Complete: p.Complete, Targets: p.Targets, Excludes: p.Excludes, Unread: p.Unread, Unseen: p.Unseen, Ephemeral: p.Ephemeral, Seal: s, PinKey: e.pinKey(p.PinKey),
	})
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		e.write(fileRecord{Variable: e.variable(name, p.Variables[name], slices.Contains(p.SensitiveVariables, name))})
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
		e.write(fileRecord{Output: e.output(o)})
	}
	for _, n := range p.Notes {
		e.write(fileRecord{Note: &fileNote{n.Address, e.path(n.Path), n.Kind, n.Text, n.Number}})
	}
	for _, c := range p.Checks {
		e.write(fileRecord{Check: checkRecord(c)})
	}
	for i := range p.Warnings {
		e.write(fileRecord{Warning: &p.Warnings[i]})
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
	box     *seal.Box // nil: nothing may be sensitive
	places  redact.Places
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

func (e *encoder) variable(name string, v cty.Value, sensitive bool) *fileVariable {
	f := &fileVariable{Name: name, Type: e.typeOf(v.Type())}
	if value := e.value(v, v.Type()); sensitive {
		f.Sealed = e.secrets(&fileSecrets{After: [][]byte{value}}, "variable "+name)
	} else {
		f.Value = value
	}
	return f
}

func (e *encoder) output(o *OutputChange) *fileOutput {
	f := &fileOutput{
		Name: o.Name, Action: o.Action, BeforeSensitive: o.BeforeSensitive, Sensitive: o.Sensitive, Deferred: o.Deferred,
		Before: e.value(o.Before, cty.DynamicPseudoType), After: e.value(o.After, cty.DynamicPseudoType),
	}
	if o.Sensitive || o.BeforeSensitive {
		f.Sealed = e.secrets(&fileSecrets{Before: [][]byte{f.Before}, After: [][]byte{f.After}}, "output "+o.Name)
		f.Before, f.After = nil, nil
	}
	return f
}

func (e *encoder) change(c *Change) *fileChange {
	t := e.objectType(c.Schema)
	f := &fileChange{
		Addr: c.Addr.String(), Deposed: c.Deposed, Version: c.Version, Needed: c.Needed, fileRefactoring: refactoringOf(c), Provider: c.Provider, Action: c.Action, Reason: c.Reason, Type: t.number,
		BeforeSensitive: e.paths(c.BeforeSensitive), AfterSensitive: e.paths(c.AfterSensitive), Replace: e.paths(c.Replace),
		HiddenPrivate: !bytes.Equal(c.Private, c.PriorPrivate), HiddenPriorPrivate: len(c.PriorPrivate) > 0,
		Legacy: c.Legacy, CBD: c.CreateBeforeDestroy, Dependencies: c.Dependencies, PriorDependencies: c.PriorDependencies,
	}
	at := placesOf(e.places, c)
	s := &fileSecrets{Private: c.Private, PriorPrivate: c.PriorPrivate}
	// Copies in the provider's answer are sealed as well.
	f.Before, f.HiddenBefore, s.Before = e.hidden(c.Before, t.ty, at)
	f.After, f.HiddenAfter, s.After = e.hidden(c.After, t.ty, at)
	f.Config, f.HiddenConfig, s.Config = e.hidden(c.Config, t.ty, at)
	f.Sealed = e.secrets(s, f.place())
	return f
}

// place names the record that something is sealed for.
func (f *fileChange) place() string { return "change " + f.Addr + " " + f.Deposed }

// hidden encodes a value without what is sensitive in it, and that apart.
func (e *encoder) hidden(v cty.Value, ty cty.Type, at []cty.Path) (value []byte, places [][]step, secrets [][]byte) {
	left, found, secrets, err := redact.TakeSecrets(v, append(at[:len(at):len(at)], redact.EchoesOf(v, at)...))
	if err != nil {
		e.fail(err)
	}
	return e.value(left, ty), e.paths(found), secrets
}

// pinPlace is what the key of the versions is sealed for.
const pinPlace = "versions"

func (e *encoder) pinKey(key []byte) []byte {
	if e.box == nil || key == nil {
		return key
	}
	return e.box.Seal(nil, key, []byte(pinPlace))
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
