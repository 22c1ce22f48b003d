package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

// decodeRecords reads the records into the plan, one by one.
func decodeRecords(r io.Reader, p *Plan) error {
	in := json.NewDecoder(r)
	var h fileHeader
	if err := in.Decode(&h); err != nil {
		return fmt.Errorf("read plan file: %w", err)
	}
	if h.Format != planFormat {
		return fmt.Errorf("the plan file has format %d, this version of stoke reads %d; make a new plan", h.Format, planFormat)
	}
	p.Mode, p.Lineage, p.Serial, p.Dir, p.Workspace = h.Mode, h.Lineage, h.Serial, h.Dir, h.Workspace
	p.Made, p.Complete, p.Targets = h.Made, h.Complete, h.Targets
	d := decoder{plan: p}
	for {
		var rec fileRecord
		err := in.Decode(&rec)
		if err == io.EOF {
			break
		}
		d.fail(err)
		if d.err == nil {
			d.record(&rec)
		}
		if d.err != nil {
			return d.err
		}
	}
	return checkOps(p)
}

// checkOps refuses operations that refer to what is not there.
func checkOps(p *Plan) error {
	for i, op := range p.Ops {
		bad := op.Change >= int32(len(p.Changes)) || op.Change < -1 || op.Change < 0 && op.Kind != Barrier || op.Kind > Verify
		for _, before := range op.After {
			bad = bad || before < 0 || before >= int32(i)
		}
		if bad {
			return fmt.Errorf("read plan file: operation %d is invalid", i)
		}
	}
	return nil
}

func (d *decoder) record(rec *fileRecord) {
	p := d.plan
	switch {
	case rec.Type != nil:
		ty, err := ctyjson.UnmarshalType(rec.Type)
		d.fail(err)
		d.types = append(d.types, ty)
	case rec.Variable != nil:
		p.Variables[rec.Variable.Name] = d.value(rec.Variable.Value, d.typeAt(rec.Variable.Type))
	case rec.Move != nil:
		p.Moves = append(p.Moves, d.move(rec.Move))
	case rec.Change != nil:
		p.Changes = append(p.Changes, d.change(rec.Change))
	case rec.Drift != nil:
		p.Drift = append(p.Drift, d.change(rec.Drift))
	case rec.Refreshed != nil:
		p.Refreshed = append(p.Refreshed, d.change(rec.Refreshed))
	case rec.Deferral != nil:
		p.Deferred = append(p.Deferred, d.deferral(rec.Deferral))
	case rec.Output != nil:
		p.Outputs = append(p.Outputs, d.output(rec.Output))
	case rec.Note != nil:
		n := rec.Note
		p.Notes = append(p.Notes, providers.Note{Address: n.Address, Path: d.path(n.Path), Kind: n.Kind, Text: n.Text, Number: n.Number})
	case rec.Check != nil:
		p.Checks = append(p.Checks, rec.Check.result())
	case rec.Op != nil:
		p.Ops = append(p.Ops, *rec.Op)
	default:
		d.fail(errors.New("a record holds nothing that is known"))
	}
}

func (d *decoder) output(o *fileOutput) *OutputChange {
	return &OutputChange{
		Name: o.Name, Action: o.Action, BeforeSensitive: o.BeforeSensitive, Sensitive: o.Sensitive, Deferred: o.Deferred,
		Before: d.value(o.Before, cty.DynamicPseudoType), After: d.value(o.After, cty.DynamicPseudoType),
	}
}

// decoder turns records into a plan. It keeps the first error.
type decoder struct {
	plan  *Plan
	types []cty.Type
	err   error
}

func (d *decoder) fail(err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("read plan file: %w", err)
	}
}

func (d *decoder) typeAt(i int) cty.Type {
	if i < 0 || i >= len(d.types) {
		d.fail(fmt.Errorf("there is no type %d", i))
		return cty.DynamicPseudoType
	}
	return d.types[i]
}

func (d *decoder) value(b []byte, ty cty.Type) cty.Value {
	if b == nil {
		return cty.NilVal
	}
	v, err := msgpack.Unmarshal(b, ty)
	if err != nil {
		d.fail(err)
		return cty.DynamicVal
	}
	return v
}

func (d *decoder) change(f *fileChange) *Change {
	addr, err := address.ParseInstance(f.Addr)
	d.fail(err)
	ty := d.typeAt(f.Type)
	return d.refactoring(f.fileRefactoring, &Change{
		Addr: addr, Deposed: f.Deposed, Provider: f.Provider, Action: f.Action, Reason: f.Reason,
		Before: d.value(f.Before, ty), After: d.value(f.After, ty), Config: d.value(f.Config, ty),
		BeforeSensitive: d.paths(f.BeforeSensitive), AfterSensitive: d.paths(f.AfterSensitive), Replace: d.paths(f.Replace),
		Private: f.Private, PriorPrivate: f.PriorPrivate, Legacy: f.Legacy, CreateBeforeDestroy: f.CBD, Dependencies: f.Dependencies, PriorDependencies: f.PriorDependencies,
	})
}

func (d *decoder) paths(in [][]step) []cty.Path {
	var out []cty.Path
	for _, p := range in {
		out = append(out, d.path(p))
	}
	return out
}

func (d *decoder) path(in []step) cty.Path {
	out := make(cty.Path, 0, len(in))
	for _, s := range in {
		if s.Attr != nil {
			out = append(out, cty.GetAttrStep{Name: *s.Attr})
			continue
		}
		key, err := ctyjson.Unmarshal(s.Index, cty.DynamicPseudoType)
		d.fail(err)
		out = append(out, cty.IndexStep{Key: key})
	}
	return out
}
