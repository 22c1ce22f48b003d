package plan

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/eval"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/providers"
)

// A plan file is a zip archive: plan.json, and below files/ every
// configuration file that the plan was made from. Values are msgpack by the
// types that plan.json lists once each.
const (
	planFormat  = 1
	planEntry   = "plan.json"
	filesPrefix = "files/"
	// mostPlan bounds what is unpacked of one entry: a plan file may come from
	// anywhere.
	mostPlan = 4 << 30
)

type filePlan struct {
	Format    int                     `json:"stoke_plan"`
	Mode      Mode                    `json:"mode"`
	Lineage   string                  `json:"lineage"`
	Serial    uint64                  `json:"serial"`
	Dir       string                  `json:"dir"`
	Workspace string                  `json:"workspace"`
	Made      time.Time               `json:"made"`
	Complete  bool                    `json:"complete"`
	Targets   []string                `json:"targets,omitempty"`
	Types     []json.RawMessage       `json:"types"`
	Changes   []fileChange            `json:"changes"`
	Drift     []fileChange            `json:"drift,omitempty"`
	Refreshed []fileChange            `json:"refreshed,omitempty"`
	Outputs   []fileOutput            `json:"outputs,omitempty"`
	Ops       []Op                    `json:"ops"`
	Notes     []fileNote              `json:"notes,omitempty"`
	Variables map[string]fileVariable `json:"variables,omitempty"`
}

type fileVariable struct {
	Type  int    `json:"type"`
	Value []byte `json:"value"`
}

type fileChange struct {
	Addr            string   `json:"addr"`
	Deposed         string   `json:"deposed,omitempty"`
	Provider        string   `json:"provider"`
	Action          Action   `json:"action"`
	Reason          Reason   `json:"reason,omitempty"`
	Type            int      `json:"type"`
	Before          []byte   `json:"before"`
	After           []byte   `json:"after"`
	Config          []byte   `json:"config,omitempty"`
	BeforeSensitive [][]step `json:"before_sensitive,omitempty"`
	AfterSensitive  [][]step `json:"after_sensitive,omitempty"`
	Replace         [][]step `json:"replace,omitempty"`
	Private         []byte   `json:"private,omitempty"`
	PriorPrivate    []byte   `json:"prior_private,omitempty"`
	Legacy          bool     `json:"legacy,omitempty"`
	CBD             bool     `json:"create_before_destroy,omitempty"`
	Dependencies    []string `json:"dependencies,omitempty"`
}

type fileOutput struct {
	Name            string `json:"name"`
	Action          Action `json:"action"`
	Before          []byte `json:"before"`
	After           []byte `json:"after"`
	BeforeSensitive bool   `json:"before_sensitive,omitempty"`
	Sensitive       bool   `json:"sensitive,omitempty"`
}

type fileNote struct {
	Address string             `json:"address"`
	Path    []step             `json:"path,omitempty"`
	Kind    providers.NoteKind `json:"kind"`
	Text    string             `json:"text"`
	Number  float64            `json:"number,omitempty"`
}

// step is one step of a path; exactly one member is set.
type step struct {
	Attr  *string         `json:"attr,omitempty"`
	Index json.RawMessage `json:"index,omitempty"`
}

// Encode writes the plan as a plan file.
func Encode(w io.Writer, p *Plan) error {
	e := encoder{types: map[string]int{}}
	f := filePlan{
		Format: planFormat, Mode: p.Mode, Lineage: p.Lineage, Serial: p.Serial, Dir: p.Dir, Workspace: p.Workspace,
		Made: p.Made, Complete: p.Complete, Targets: p.Targets, Ops: p.Ops,
		Changes: e.changes(p.Changes), Drift: e.changes(p.Drift), Refreshed: e.changes(p.Refreshed),
		Variables: map[string]fileVariable{},
	}
	for _, o := range p.Outputs {
		f.Outputs = append(f.Outputs, fileOutput{
			Name: o.Name, Action: o.Action, BeforeSensitive: o.BeforeSensitive, Sensitive: o.Sensitive,
			Before: e.value(o.Before, cty.DynamicPseudoType), After: e.value(o.After, cty.DynamicPseudoType),
		})
	}
	for _, n := range p.Notes {
		f.Notes = append(f.Notes, fileNote{n.Address, e.path(n.Path), n.Kind, n.Text, n.Number})
	}
	for name, v := range p.Variables {
		f.Variables[name] = fileVariable{e.typeOf(v.Type()), e.value(v, v.Type())}
	}
	f.Types = e.list
	if e.err != nil {
		return fmt.Errorf("encode plan: %w", e.err)
	}
	return archive(w, f, p.Files)
}

func archive(w io.Writer, f filePlan, files map[string][]byte) error {
	z := zip.NewWriter(w)
	out, err := z.Create(planEntry)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(f); err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out, err := z.Create(filesPrefix + name)
		if err != nil {
			return err
		}
		if _, err := out.Write(files[name]); err != nil {
			return err
		}
	}
	return z.Close()
}

// encoder turns values into bytes and collects their types.
type encoder struct {
	types map[string]int
	list  []json.RawMessage
	err   error
}

func (e *encoder) typeOf(ty cty.Type) int {
	js, err := ctyjson.MarshalType(ty)
	if err != nil {
		e.err = errors.Join(e.err, err)
		return 0
	}
	i, ok := e.types[string(js)]
	if !ok {
		i = len(e.list)
		e.types[string(js)] = i
		e.list = append(e.list, js)
	}
	return i
}

func (e *encoder) value(v cty.Value, ty cty.Type) []byte {
	if v == cty.NilVal {
		return nil
	}
	b, err := msgpack.Marshal(v, ty)
	if err != nil {
		e.err = errors.Join(e.err, err)
	}
	return b
}

func (e *encoder) changes(changes []*Change) []fileChange {
	out := make([]fileChange, len(changes))
	memo := map[*providers.ResourceSchema]int{}
	implied := map[*providers.ResourceSchema]cty.Type{}
	for i, c := range changes {
		ty := cty.DynamicPseudoType
		if c.Schema != nil {
			if _, ok := memo[c.Schema]; !ok {
				implied[c.Schema] = c.Schema.Block.ImpliedType()
				memo[c.Schema] = e.typeOf(implied[c.Schema])
			}
			ty = implied[c.Schema]
		} else if _, ok := memo[nil]; !ok {
			memo[nil] = e.typeOf(ty)
		}
		out[i] = fileChange{
			Addr: c.Addr.String(), Deposed: c.Deposed, Provider: c.Provider, Action: c.Action, Reason: c.Reason, Type: memo[c.Schema],
			Before: e.value(c.Before, ty), After: e.value(c.After, ty), Config: e.value(c.Config, ty),
			BeforeSensitive: e.paths(c.BeforeSensitive), AfterSensitive: e.paths(c.AfterSensitive), Replace: e.paths(c.Replace),
			Private: c.Private, PriorPrivate: c.PriorPrivate, Legacy: c.Legacy, CBD: c.CreateBeforeDestroy, Dependencies: c.Dependencies,
		}
	}
	return out
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
				e.err = errors.Join(e.err, err)
			}
			out = append(out, step{Index: js})
		}
	}
	return out
}

// Decode reads a plan file. What the changes' types are is filled in by Bind.
func Decode(r io.ReaderAt, size int64) (*Plan, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a plan file: %w", err)
	}
	p := &Plan{Files: map[string][]byte{}, Variables: map[string]cty.Value{}}
	var f filePlan
	found := false
	for _, entry := range z.File {
		content, err := unpack(entry)
		if err != nil {
			return nil, fmt.Errorf("read plan file: %s: %w", entry.Name, err)
		}
		switch name, isFile := strings.CutPrefix(entry.Name, filesPrefix); {
		case isFile:
			p.Files[name] = content
		case entry.Name == planEntry:
			found = true
			if err := json.Unmarshal(content, &f); err != nil {
				return nil, fmt.Errorf("read plan file: %w", err)
			}
		}
	}
	if !found {
		return nil, errors.New("not a plan file: the archive has no " + planEntry)
	}
	if f.Format != planFormat {
		return nil, fmt.Errorf("the plan file has format %d, this version of stoke reads %d; make a new plan", f.Format, planFormat)
	}
	return p, fill(p, &f)
}

func unpack(entry *zip.File) ([]byte, error) {
	if entry.UncompressedSize64 > mostPlan {
		return nil, errors.New("larger than any plan")
	}
	in, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, mostPlan))
}

func fill(p *Plan, f *filePlan) error {
	d := decoder{}
	for _, js := range f.Types {
		ty, err := ctyjson.UnmarshalType(js)
		if err != nil {
			return fmt.Errorf("read plan file: %w", err)
		}
		d.types = append(d.types, ty)
	}
	p.Mode, p.Lineage, p.Serial, p.Dir, p.Workspace = f.Mode, f.Lineage, f.Serial, f.Dir, f.Workspace
	p.Made, p.Complete, p.Targets, p.Ops = f.Made, f.Complete, f.Targets, f.Ops
	p.Changes, p.Drift, p.Refreshed = d.changes(f.Changes), d.changes(f.Drift), d.changes(f.Refreshed)
	for _, o := range f.Outputs {
		p.Outputs = append(p.Outputs, &OutputChange{
			Name: o.Name, Action: o.Action, BeforeSensitive: o.BeforeSensitive, Sensitive: o.Sensitive,
			Before: d.value(o.Before, cty.DynamicPseudoType), After: d.value(o.After, cty.DynamicPseudoType),
		})
	}
	for _, n := range f.Notes {
		p.Notes = append(p.Notes, providers.Note{Address: n.Address, Path: d.path(n.Path), Kind: n.Kind, Text: n.Text, Number: n.Number})
	}
	for name, v := range f.Variables {
		p.Variables[name] = d.value(v.Value, d.typeAt(v.Type))
	}
	for i, op := range p.Ops {
		bad := op.Change >= int32(len(p.Changes)) || op.Change < -1 || op.Change < 0 && op.Kind != Barrier || op.Kind > Verify
		for _, before := range op.After {
			bad = bad || before < 0 || before >= int32(i)
		}
		if bad {
			return fmt.Errorf("read plan file: operation %d is invalid", i)
		}
	}
	return d.err
}

type decoder struct {
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

func (d *decoder) changes(in []fileChange) []*Change {
	out := make([]*Change, len(in))
	for i, f := range in {
		addr, err := address.ParseInstance(f.Addr)
		d.fail(err)
		ty := d.typeAt(f.Type)
		out[i] = &Change{
			Addr: addr, Deposed: f.Deposed, Provider: f.Provider, Action: f.Action, Reason: f.Reason,
			Before: d.value(f.Before, ty), After: d.value(f.After, ty), Config: d.value(f.Config, ty),
			BeforeSensitive: d.paths(f.BeforeSensitive), AfterSensitive: d.paths(f.AfterSensitive), Replace: d.paths(f.Replace),
			Private: f.Private, PriorPrivate: f.PriorPrivate, Legacy: f.Legacy, CreateBeforeDestroy: f.CBD, Dependencies: f.Dependencies,
		}
	}
	return out
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

// Bind gives the changes of a decoded plan the schemas that they are of.
func (p *Plan) Bind(ctx context.Context, catalogue providers.Catalogue) hcl.Diagnostics {
	schemas := map[string]*providers.Schema{}
	var diags hcl.Diagnostics
	for _, list := range [][]*Change{p.Changes, p.Drift, p.Refreshed} {
		for _, c := range list {
			source, _, ok := eval.ParseProviderAddr(c.Provider)
			entry, known := catalogue[source]
			if !ok || !known {
				return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider not available", Detail: fmt.Sprintf("The plan needs %s for %s.", c.Provider, c.Addr)})
			}
			if schemas[source] == nil {
				server, err := entry.New()
				if err != nil {
					return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Failed to start provider", Detail: source + ": " + err.Error() + "."})
				}
				schema, more := server.Schema(ctx)
				server.Close()
				diags = append(diags, eval.FromProvider(more, nil, hcl.Range{}, source)...)
				if more.HasErrors() {
					return diags
				}
				schemas[source] = schema
			}
			all := schemas[source].Resources
			if c.Addr.Mode == address.Data {
				all = schemas[source].Data
			}
			c.Schema = all[c.Addr.Type]
			if c.Schema == nil && c.Before.Type() != cty.DynamicPseudoType {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Resource type not supported", Detail: fmt.Sprintf("The plan holds %s, but its provider knows no such type.", c.Addr)})
			}
		}
	}
	return diags
}

// Stale says why the plan cannot be applied to the state any more, or nil.
func (p *Plan) Stale(s *state.State) error {
	switch {
	case s.Lineage() != p.Lineage && (p.Serial != 0 || len(s.Instances()) > 0):
		return errors.New("the plan was made for another state; make a new plan")
	case s.Serial() != p.Serial:
		return fmt.Errorf("the state has changed since the plan was made (serial %d then, %d now); make a new plan", p.Serial, s.Serial())
	}
	return nil
}
