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
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/seal"
	"github.com/stokehq/stoke/providers"
)

// decodeRecords reads the records into the plan, one by one.
func decodeRecords(r io.Reader, p *Plan, key *Key) (*seal.Box, error) {
	in := json.NewDecoder(r)
	var h fileHeader
	if err := in.Decode(&h); err != nil {
		return nil, err
	}
	if h.Format != planFormat {
		return nil, fmt.Errorf("it has format %d, this version of stoke reads %d; make a new plan", h.Format, planFormat)
	}
	p.Mode, p.Lineage, p.Serial, p.Dir, p.Workspace = h.Mode, h.Lineage, h.Serial, h.Dir, h.Workspace
	p.Made, p.Complete, p.Targets, p.Excludes, p.Unread, p.Unseen = h.Made, h.Complete, h.Targets, h.Excludes, h.Unread, h.Unseen
	p.Ephemeral = h.Ephemeral
	d := decoder{plan: p}
	if h.Seal != nil {
		var err error
		if d.box, err = h.Seal.open(key); err != nil {
			return nil, err
		}
		if d.box == nil {
			p.Locked = &Locked{digest: h.Seal.Digest, salt: h.Seal.DigestSalt}
		}
	}
	switch {
	case h.Seal == nil:
		p.PinKey = h.PinKey
	case d.box != nil && h.PinKey != nil:
		var err error
		if p.PinKey, err = d.box.Open(h.PinKey, []byte(pinPlace)); err != nil {
			return nil, err
		}
	}
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
			return nil, d.err
		}
	}
	return d.box, checkOps(p)
}

// checkOps rejects operations with references to missing ones.
func checkOps(p *Plan) error {
	for i, op := range p.Ops {
		bad := op.Change >= int32(len(p.Changes)) || op.Change < -1 || op.Change < 0 && op.Kind != Barrier || op.Kind > Verify
		for _, before := range op.After {
			bad = bad || before < 0 || before >= int32(i)
		}
		if bad {
			return fmt.Errorf("operation %d is invalid", i)
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
		d.variable(rec.Variable)
	case rec.Move != nil:
		p.Moves = append(p.Moves, d.move(rec.Move))
	case rec.Change != nil:
		p.Changes = append(p.Changes, d.change(rec.Change))
	case rec.Drift != nil:
		p.Drift = append(p.Drift, d.decodeForDisplay(rec.Drift))
	case rec.Refreshed != nil:
		p.Refreshed = append(p.Refreshed, d.change(rec.Refreshed))
		d.refreshed()
	case rec.Deferral != nil:
		p.Deferred = append(p.Deferred, d.deferral(rec.Deferral))
	case rec.Output != nil:
		p.Outputs = append(p.Outputs, d.output(rec.Output))
	case rec.Note != nil:
		n := rec.Note
		p.Notes = append(p.Notes, providers.Note{Address: n.Address, Path: d.path(n.Path), Kind: n.Kind, Text: n.Text, Number: n.Number})
	case rec.Check != nil:
		p.Checks = append(p.Checks, rec.Check.result())
	case rec.Warning != nil:
		p.Warnings = append(p.Warnings, *rec.Warning)
	case rec.Op != nil:
		p.Ops = append(p.Ops, *rec.Op)
	default:
		d.fail(errors.New("a record holds nothing that is known"))
	}
}

func (d *decoder) variable(f *fileVariable) {
	p, ty := d.plan, d.typeAt(f.Type)
	if len(f.Sealed) == 0 {
		p.Variables[f.Name] = d.value(f.Value, ty)
		return
	}
	p.SensitiveVariables = append(p.SensitiveVariables, f.Name)
	switch s := d.open(f.Sealed, "variable "+f.Name); {
	case s == nil && p.Locked != nil:
		p.Locked.Variables = append(p.Locked.Variables, f.Name)
	case s != nil && len(s.After) == 1:
		p.Variables[f.Name] = d.value(s.After[0], ty)
	default:
		d.fail(fmt.Errorf("variable %s has no value", f.Name))
	}
}

func (d *decoder) output(f *fileOutput) *OutputChange {
	o := &OutputChange{
		Name: f.Name, Action: f.Action, BeforeSensitive: f.BeforeSensitive, Sensitive: f.Sensitive, Deferred: f.Deferred,
		Before: d.value(f.Before, cty.DynamicPseudoType), After: d.value(f.After, cty.DynamicPseudoType),
	}
	if len(f.Sealed) == 0 {
		return o
	}
	switch s := d.open(f.Sealed, "output "+f.Name); {
	case s == nil:
		o.Before, o.After = cty.DynamicVal, cty.DynamicVal
	case len(s.Before) == 1 && len(s.After) == 1:
		o.Before, o.After = d.value(s.Before[0], cty.DynamicPseudoType), d.value(s.After[0], cty.DynamicPseudoType)
	default:
		d.fail(fmt.Errorf("output %s has no value", f.Name))
	}
	return o
}

// decoder turns records into a plan. It keeps the first error.
type decoder struct {
	plan  *Plan
	box   *seal.Box // nil: the file is not sealed, or locked
	types []cty.Type
	err   error
}

func (d *decoder) fail(err error) {
	if d.err == nil && err != nil {
		d.err = err
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
	c := d.refactoring(f.fileRefactoring, &Change{
		Addr: addr, Deposed: f.Deposed, Version: f.Version, Needed: f.Needed, Provider: f.Provider, Action: f.Action, Reason: f.Reason,
		Before: d.value(f.Before, ty), After: d.value(f.After, ty), Config: d.value(f.Config, ty),
		BeforeSensitive: d.paths(f.BeforeSensitive), AfterSensitive: d.paths(f.AfterSensitive), Replace: d.paths(f.Replace),
		Legacy: f.Legacy, CreateBeforeDestroy: f.CBD, Dependencies: f.Dependencies, PriorDependencies: f.PriorDependencies,
	})
	before, after, config := d.paths(f.HiddenBefore), d.paths(f.HiddenAfter), d.paths(f.HiddenConfig)
	s := d.open(f.Sealed, f.place())
	if s == nil {
		if d.plan.Locked != nil {
			d.plan.Locked.gaps = append(d.plan.Locked.gaps, gap{change: c, before: before, after: after, private: f.HiddenPrivate, prior: f.HiddenPriorPrivate})
		}
		return c
	}
	c.Private, c.PriorPrivate = s.Private, s.PriorPrivate
	c.Before, c.After, c.Config = d.restoreSecrets(c.Before, before, s.Before), d.restoreSecrets(c.After, after, s.After), d.restoreSecrets(c.Config, config, s.Config)
	return c
}

func (d *decoder) restoreSecrets(v cty.Value, hidden []cty.Path, secrets [][]byte) cty.Value {
	if d.err != nil || v == cty.NilVal && len(hidden) == 0 {
		return v
	}
	v, err := redact.RestoreSecrets(v, hidden, secrets)
	d.fail(err)
	return v
}

// decodeForDisplay decodes a change without operations: missing parts need not be found.
func (d *decoder) decodeForDisplay(f *fileChange) *Change {
	l := d.plan.Locked
	if l == nil {
		return d.change(f)
	}
	n := len(l.gaps)
	c := d.change(f)
	l.gaps = l.gaps[:n]
	return c
}

// refreshed notes that what is missing of the last change was read while
// planning.
func (d *decoder) refreshed() {
	p := d.plan
	if p.Locked == nil || len(p.Locked.gaps) == 0 {
		return
	}
	if last := &p.Locked.gaps[len(p.Locked.gaps)-1]; last.change == p.Refreshed[len(p.Refreshed)-1] {
		last.refreshed = true
	}
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
