package metal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
)

// firewallRecord is the kind of metal_firewall's record on the machine.
const firewallRecord = "firewall"

func (r *firewallResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan firewallModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.raw = req.Plan.Raw
	id := providers.CallFrom(ctx).Operation
	if id == "" {
		id = rand.Text()
	}
	r.apply(ctx, id, &plan, &plan, &resp.State, &resp.Diagnostics)
}

func (r *firewallResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state firewallModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.raw = req.Plan.Raw
	r.apply(ctx, plan.ID.ValueString(), &plan, &state, &resp.State, &resp.Diagnostics)
}

// apply makes the firewall what is planned. Where that failed, what is stored is
// otherwise, with the rules as they are then: a change that was rolled back has
// not happened.
func (r *firewallResource) apply(ctx context.Context, id string, plan, otherwise *firewallModel, state *tfsdk.State, diags *diag.Diagnostics) {
	want, known := plan.spec(ctx, diags)
	if !known {
		if !diags.HasError() {
			diags.AddError("Firewall is not known", "Something that its rules depend on is still unknown.")
		}
		return
	}
	m, err := r.machine(ctx, plan.Host)
	if err != nil {
		summary, detail := unreachable(addressOf(ctx, plan.Host), err)
		diags.AddAttributeError(path.Root("host"), summary, detail)
		return
	}
	lock, err := r.settings.shared.locks.Lock(ctx, m)
	if err != nil {
		firewallError(diags, m.Name(), err)
		return
	}
	// The work goes on without the lock's context: while rules are tried that cut
	// us off, nobody can renew it, and the machine takes them back by itself.
	defer lock.Unlock()
	step(ctx, "looking at the firewall of %s", m.Name())
	have, err := firewall.Observe(ctx, m, want)
	var rec *host.Record
	if err == nil {
		rec, err = ownFirewall(ctx, m, id, have)
	}
	if err == nil {
		err = inscribe(ctx, rec, firewallSchema(), plan.raw)
	}
	if taken := (*takenError)(nil); errors.As(err, &taken) {
		taken.by(ctx, wayOf(ctx, plan.Host))
	}
	if err != nil {
		firewallError(diags, m.Name(), err)
		return
	}
	providers.CallFrom(ctx).KeepOnError()
	plan.ID = types.StringValue(id)
	otherwise.ID = plan.ID
	if err := firewall.Apply(ctx, m, rec, want, have); err != nil {
		firewallError(diags, m.Name(), err)
		plan = otherwise
		want, _ = plan.spec(ctx, new(diag.Diagnostics))
	}
	have, err = firewall.Observe(context.WithoutCancel(ctx), m, want)
	if err != nil { // what it is now is not known, so that the next plan looks
		have = firewall.Have{}
		if !diags.HasError() {
			firewallError(diags, m.Name(), err)
		}
	}
	plan.setLines(ctx, have.Backend, have.Lines, diags)
	plan.Persistent = types.BoolValue(have.Persistent)
	diags.Append(state.Set(ctx, plan)...)
}

// ownFirewall opens the machine's record.
func ownFirewall(ctx context.Context, m host.Machine, id string, have firewall.Have) (*host.Record, error) {
	if err := foreign(ctx, m, id, have.Exists()); err != nil {
		return nil, err
	}
	return own(ctx, m, firewallRecord, id)
}

// foreign says that a table is there without a record: it is somebody else's,
// whatever its name is, unless it was imported.
func foreign(ctx context.Context, m host.Machine, id string, exists bool) error {
	if !exists || id == imported {
		return nil
	}
	if _, err := host.OpenRecord(ctx, m, firewallRecord); !errors.Is(err, host.ErrNoRecord) {
		return nil
	}
	return &firewall.UnfitError{Host: m.Name(), Err: errors.New("there is a table inet stoke, or rules of ufw marked as stoke's, " +
		"that no record knows of. Remove them (nft delete table inet stoke), or import the firewall")}
}

func firewallError(diags *diag.Diagnostics, machine string, err error) {
	var taken *takenError
	var rolledBack *firewall.RolledBackError
	var unfit *firewall.UnfitError
	var locked *host.LockedError
	switch {
	case errors.As(err, &locked):
		complain(diags, path.Root("host"), "Somebody else changes the machine", err)
	case errors.As(err, &unfit):
		complain(diags, path.Root("host"), "Firewall cannot be managed", err)
	case errors.As(err, &taken):
		complain(diags, path.Root("host"), "Firewall is managed already", err)
	case errors.As(err, &rolledBack):
		diags.AddAttributeError(path.Root("ssh_from"), "Firewall rules were rolled back", rolledBack.Error())
	case lost(err):
		summary, detail := unreachable(machine, err)
		diags.AddAttributeError(path.Root("host"), summary, detail)
	default:
		complain(diags, path.Root("host"), "Firewall is not finished", err)
	}
}

func (r *firewallResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state firewallModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	m, err := r.machine(ctx, state.Host)
	var rec *host.Record
	if err == nil {
		step(ctx, "connecting to %s", m.Name())
		var lock *host.Lock
		if lock, err = r.settings.shared.locks.Lock(ctx, m); err == nil {
			defer lock.Unlock()
			rec, err = host.OpenRecord(ctx, m, firewallRecord)
		}
	}
	var locked *host.LockedError
	switch {
	case errors.As(err, &locked):
		firewallError(&resp.Diagnostics, m.Name(), err)
		return
	case errors.Is(err, host.ErrNoRecord):
		return // nothing was ever changed, or all is restored
	case err != nil:
		summary, detail := unreachable(addressOf(ctx, state.Host), err)
		resp.Diagnostics.AddError(summary, detail+" Destroying removes stoke's rules there. Give up a machine that is gone for good with: stoke state rm.")
		return
	case rec.ID() != state.ID.ValueString():
		resp.Diagnostics.AddWarning("Firewall is managed by another", fmt.Sprintf("That of %s belongs to %s by now; nothing was changed there.", m.Name(), rec.By()))
		return
	}
	outcomes, err := firewall.Restore(ctx, m, rec)
	tell(ctx, &resp.Diagnostics, outcomes)
	if err == nil {
		err = rec.Delete(ctx)
	}
	if err != nil {
		firewallError(&resp.Diagnostics, m.Name(), err)
	}
}
