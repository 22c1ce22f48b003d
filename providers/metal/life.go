package metal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// kind is what tells one kind of resource from another.
type kind struct {
	name   string    // behind metal_
	record string    // the kind of its record on the machine
	what   string    // in messages: Machine, Firewall, Driver
	at     path.Path // the argument that leads to the machine
	schema func() schema.Schema
	// noted: the state stores observed values, so the declared ones are kept in
	// private data.
	noted bool
	// unleased: work continues if the lock cannot be renewed.
	unleased bool
}

// model is the value of a resource on a machine.
type model[M any] interface {
	*M
	kind() kind
	id() *types.String
	// leads is the way to the machine, connect.ErrUnknown while it is unknown.
	leads(ctx context.Context) (connect.SSH, error)
	// importValues are the attributes that say which machine is imported.
	importValues(ctx context.Context, way connect.SSH) (map[string]any, diag.Diagnostics)
	// adopt completes the model, which has the record's declaration, with the
	// arguments of an import; false if they do not fit.
	adopt(ctx context.Context, by M) bool
	// observe sets the model to the observed values of declared facts.
	observe(ctx context.Context, s *settings, m host.Machine, declared M, diags *diag.Diagnostics) error
	// work makes the machine what the model says and returns what is stored. It
	// calls begin before it changes anything.
	work(ctx context.Context, j job[M]) (*M, error)
	// restore undoes all that the record knows of.
	restore(ctx context.Context, s *settings, m host.Machine, rec *host.Record) ([]host.Outcome, error)
	// undoing is what restore interrupts.
	undoing(ctx context.Context, s *settings, m host.Machine, rec *host.Record, diags *diag.Diagnostics) []host.Change
}

// onMachine is the part of a model that says which machine it is on, where that is
// the argument host. A model embeds it.
type onMachine struct {
	ID   types.String `tfsdk:"id"`
	Host types.Object `tfsdk:"host"`
}

func (m *onMachine) id() *types.String { return &m.ID }

func (m *onMachine) leads(ctx context.Context) (connect.SSH, error) { return wayOf(ctx, m.Host) }

func (*onMachine) importValues(ctx context.Context, way connect.SSH) (map[string]any, diag.Diagnostics) {
	o, diags := way.Object(ctx)
	return map[string]any{"host": o}, diags
}

type job[M any] struct {
	settings *settings
	machine  host.Machine // locked
	prior    *M           // what is stored; nil where the resource is new
	config   *M           // only it has write-only values
	begin    func() (*host.Record, error)
	diags    *diag.Diagnostics
}

// errRefused: the diagnostics have the reasons.
var errRefused = errors.New("refused")

// life is what resources on machines have in common, from the schema to the end:
// lock, own, work, store; read, settle, import, destroy. P is a pointer to M.
type life[M any, P model[M]] struct{ settings *settings }

func (l *life[M, P]) kind() kind { return P(new(M)).kind() }

// Metadata names the type.
func (l *life[M, P]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + l.kind().name
}

// Configure takes the settings; there are none while validating.
func (l *life[M, P]) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if s, ok := req.ProviderData.(*settings); ok {
		l.settings = s
	}
}

// Schema is the kind's.
func (l *life[M, P]) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = l.kind().schema()
}

func (l *life[M, P]) machine(ctx context.Context, of P) (*host.Remote, connect.SSH, error) {
	if l.settings == nil {
		return nil, connect.SSH{}, connect.ErrUnknown
	}
	way, err := of.leads(ctx)
	if err != nil {
		return nil, way, err
	}
	m, err := l.settings.reach(way, nil)
	return m, way, err
}

// locked calls work with the lock of a resource's machine.
func (l *life[M, P]) locked(ctx context.Context, of P, work func(context.Context, host.Machine) error) (connect.SSH, error) {
	m, way, err := l.machine(ctx, of)
	if err != nil {
		return way, err
	}
	host.Step(ctx, "connecting to %s", way.Address)
	return way, l.settings.locked(ctx, m, of.kind().unleased, work)
}

// planned decodes the planned and the stored values, nil if absent. For a plan
// to destroy, ok is false and it only adds disruption notes. It rejects
// nothing: pods may have changed before the destroy, and apply checks again. If
// the machine cannot be reached, Read has reported it.
func (l *life[M, P]) planned(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) (plan P, prior *M, ok bool) {
	if !req.State.Raw.IsNull() {
		prior = new(M)
		resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	}
	if !req.Plan.Raw.IsNull() {
		plan = new(M)
		resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
		return plan, prior, !resp.Diagnostics.HasError()
	}
	if m, _, err := l.machine(ctx, P(prior)); err == nil {
		if rec := recordOf(ctx, m, l.kind().record, P(prior).id().ValueString()); rec != nil {
			noteChanges(ctx, &resp.Diagnostics, P(prior).undoing(ctx, l.settings, m, rec, &resp.Diagnostics))
		}
	}
	return nil, nil, false
}

// Create makes the machine what is planned. It is known there by the operation.
func (l *life[M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	id := providers.CallFrom(ctx).Operation
	if id == "" {
		id = rand.Text()
	}
	l.apply(ctx, id, nil, req.Plan, req.Config, &resp.State, resp.Private, &resp.Diagnostics)
}

// Update makes the machine what is planned.
func (l *life[M, P]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	prior := new(M)
	if resp.Diagnostics.Append(req.State.Get(ctx, prior)...); !resp.Diagnostics.HasError() {
		l.apply(ctx, "", prior, req.Plan, req.Config, &resp.State, resp.Private, &resp.Diagnostics)
	}
}

// apply makes the machine what is planned. A failed step does not taint: the
// next apply continues from the observed state of the machine. The old
// declaration stays in the record until then: the next plan needs it to find
// what must still be restored. id is the id of a new resource.
func (l *life[M, P]) apply(ctx context.Context, id string, prior *M, planned tfsdk.Plan, configured tfsdk.Config, state *tfsdk.State, private privateSetter, diags *diag.Diagnostics) {
	plan, config := P(new(M)), new(M)
	diags.Append(planned.Get(ctx, plan)...)
	diags.Append(configured.Get(ctx, config)...)
	if diags.HasError() {
		return
	}
	if id == "" {
		id = plan.id().ValueString()
	}
	ctx = withoutNotes(ctx)
	k := plan.kind()
	done, failed := false, true
	way, err := l.locked(ctx, plan, func(ctx context.Context, m host.Machine) error {
		begun := false
		j := job[M]{settings: l.settings, machine: m, prior: prior, config: config, diags: diags, begin: func() (*host.Record, error) {
			rec, err := openRecord(ctx, m, k.record, id)
			if err == nil {
				err = saveDeclaredOnHost(ctx, rec, k.schema(), planned.Raw)
			}
			if err == nil {
				begun = true
				providers.CallFrom(ctx).KeepOnError()
				*plan.id() = types.StringValue(id)
			}
			return rec, err
		}}
		stored, err := plan.work(ctx, j)
		if !begun {
			return err
		}
		done, failed = err == nil || prior == nil, err != nil
		if err != nil && !errors.Is(err, errRefused) {
			addError(diags, path.Empty(), k.what+" is not finished", err)
		}
		diags.Append(store(ctx, state, stored)...)
		return nil
	})
	k.refuse(ctx, diags, k.at, way, err, k.what+" is not finished")
	if k.noted && done {
		diags.Append(saveDeclaredInState(ctx, private, planned.Raw)...)
	}
	diags.Append(saveUnfinished(ctx, private, failed)...)
	promise{}.keep(ctx, private, diags) // it was for this apply
}

// store stores a model. Unknown values become null.
func store(ctx context.Context, state *tfsdk.State, stored any) diag.Diagnostics {
	diags := state.Set(ctx, stored)
	raw, err := tftypes.Transform(state.Raw, func(_ *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if !v.IsKnown() {
			return tftypes.NewValue(v.Type(), nil), nil
		}
		return v, nil
	})
	if err != nil {
		diags.AddError("State cannot be stored", err.Error())
		return diags
	}
	state.Raw = raw
	return diags
}

// refuse reports why work on a machine has not begun; a nil error says nothing.
func (k kind) refuse(ctx context.Context, diags *diag.Diagnostics, at path.Path, way connect.SSH, err error, otherwise string) {
	var taken *takenError
	var locked *host.LockedError
	switch {
	case err == nil, errors.Is(err, errRefused):
	case errors.As(err, &taken):
		addError(diags, at, k.what+" is managed already", taken.withHolder(ctx, way))
	case errors.As(err, &locked):
		addError(diags, at, "Another process changes the machine", err)
	case isUnreachable(err) || ssh.IsPermanent(err):
		summary, detail := unreachable(way.Address, err)
		addError(diags, at, summary, errors.New(detail))
	default:
		addError(diags, at, otherwise, err)
	}
}

// Delete restores the machine.
func (l *life[M, P]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state := P(new(M))
	if resp.Diagnostics.Append(req.State.Get(ctx, state)...); resp.Diagnostics.HasError() {
		return
	}
	k := state.kind()
	way, err := l.locked(ctx, state, func(ctx context.Context, m host.Machine) error {
		return l.undo(ctx, m, state, &resp.Diagnostics)
	})
	if err != nil && (isUnreachable(err) || ssh.IsPermanent(err)) && !errors.As(err, new(*host.LockedError)) {
		summary, detail := unreachable(way.Address, err)
		resp.Diagnostics.AddError(summary, detail+" Destroying restores the values that stoke changed there. Give up a machine that is gone for good with: stoke state rm.")
		return
	}
	k.refuse(ctx, &resp.Diagnostics, path.Empty(), way, err, k.what+" is not restored")
}

// undo restores a machine that is locked. An error says that nothing was begun;
// later errors are in diags.
func (l *life[M, P]) undo(ctx context.Context, m host.Machine, state P, diags *diag.Diagnostics) error {
	k := state.kind()
	rec, err := host.OpenRecord(ctx, m, k.record)
	switch {
	case errors.Is(err, host.ErrNoRecord):
		return nil // nothing was ever changed, or all is restored
	case err != nil:
		return err
	case rec.ID() != state.id().ValueString():
		diags.AddWarning(k.what+" is managed by another", fmt.Sprintf("The record of %s now belongs to %s; nothing was changed there.", m.Name(), rec.Owner()))
		return nil
	}
	outcomes, err := state.restore(ctx, l.settings, m, rec)
	reportOutcomes(ctx, diags, outcomes)
	if err == nil {
		err = rec.Delete(ctx)
	}
	if err != nil {
		addError(diags, path.Empty(), k.what+" is not restored", err)
	}
	return nil
}

// Read puts what the machine has into what is declared. A machine that cannot be
// reached keeps its stored values, with a warning.
func (l *life[M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state M
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	k, settling := l.kind(), providers.CallFrom(ctx).Settling
	want := state
	if k.noted && !settling {
		var noted M
		if ok, err := loadDeclaredFromState(ctx, req.Private, k.schema(), &noted); err != nil {
			resp.Diagnostics.AddError("State of the "+strings.ToLower(k.what)+" is damaged", fmt.Sprintf("%s.", err))
			return
		} else if ok {
			want = noted
		}
	}
	id := P(&state).id().ValueString()
	m, way, err := l.machine(ctx, P(&state))
	if errors.Is(err, connect.ErrUnknown) && id != importing {
		return // of the provider block; apply knows
	}
	if err == nil && (settling || id == importing || id == imported) {
		var there bool
		if there, err = l.find(ctx, m, &state, &want, req.State.Raw, resp.Private, &resp.Diagnostics); settling && !there && err == nil {
			resp.State.RemoveResource(ctx) // it was never begun
			return
		}
	}
	if err == nil {
		err = P(&state).observe(ctx, l.settings, m, want, &resp.Diagnostics)
	}
	if is := P(&state).id(); is.ValueString() == importing {
		*is = types.StringValue(imported)
	}
	switch {
	case err == nil:
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	case errors.Is(err, errRefused):
	case id == importing: // nothing is taken over that was not looked at
		if isUnreachable(err) || ssh.IsPermanent(err) {
			err = fmt.Errorf("%w. %s", err, importHint)
		}
		addError(&resp.Diagnostics, path.Empty(), k.what+" cannot be imported", fmt.Errorf("%s: %w", way.Address, err))
	case settling:
		resp.Diagnostics.AddError("Machine cannot be asked", fmt.Sprintf("Whether an apply that was cut off has changed %s is not known: %s.", way.Address, err))
	case isUnreachable(err) || ssh.IsPermanent(err):
		resp.Diagnostics.AddWarning(unreachable(way.Address, err))
	default:
		resp.Diagnostics.AddWarning(k.what+" cannot be examined", fmt.Sprintf("%s. Stoke uses the recorded values.", err))
	}
}

// find looks for the record of an interrupted create, which has the operation's
// mark, or of an imported object, which is declared as the record says. For a
// create the planned values are noted as declared, because the state will hold
// observed values, with descriptions for people among them.
func (l *life[M, P]) find(ctx context.Context, m host.Machine, state, want *M, planned tftypes.Value, private privateSetter, diags *diag.Diagnostics) (bool, error) {
	k, call := l.kind(), providers.CallFrom(ctx)
	rec, err := host.OpenRecord(ctx, m, k.record)
	switch {
	case errors.Is(err, host.ErrNoRecord) || err == nil && call.Settling && (call.Operation == "" || rec.ID() != call.Operation):
		return false, nil
	case err != nil:
		return false, err
	}
	if !call.Settling {
		var was M
		if raw, ok := loadDeclaredFromHost(ctx, rec, k.schema(), &was); ok && P(&was).adopt(ctx, *state) {
			*state, *want = was, was
			if k.noted {
				diags.Append(saveDeclaredInState(ctx, private, raw)...)
			}
		}
	} else if k.noted {
		diags.Append(saveDeclaredInState(ctx, private, planned)...)
	}
	*P(state).id() = types.StringValue(rec.ID())
	return true, nil
}

// ImportState takes over what is there by what importedWay reads.
func (l *life[M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	way, err := importedWay(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import identifier", fmt.Sprintf("%s. Give the address and the host key, such as \"ops@10.0.0.1:22 ssh-ed25519 AAAA…\". %s.", err, importHint))
		return
	}
	named, diags := P(new(M)).importValues(ctx, way)
	resp.Diagnostics.Append(diags...)
	named["id"] = importing
	for name, v := range named {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), v)...)
	}
}
