package metal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
)

// hostRecord is the kind of metal_host's record on the machine.
const hostRecord = "host"

// imported is the id of a machine that was taken over, until it is read or made
// ours.
const imported = "imported"

// Read puts what the machine has into what is declared. A machine that cannot
// be asked is as the state says, with a warning.
func (r *hostResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state hostModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	way, known := state.way()
	if !known {
		return
	}
	if call := providers.CallFrom(ctx); call.Settling {
		r.settle(ctx, way, call.Operation, &state, resp)
		return
	}
	want := state
	var noted hostModel
	if ok, err := declared(ctx, req.Private, hostSchema(), &noted); err != nil {
		resp.Diagnostics.AddError("State of the machine is damaged", fmt.Sprintf("%s.", err))
		return
	} else if ok {
		want = noted
	}
	m, err := r.settings.reach(way, nil)
	if err == nil && state.ID.ValueString() == imported {
		var rec *host.Record
		if rec, err = host.OpenRecord(ctx, m, hostRecord); err == nil {
			state.ID = types.StringValue(rec.ID())
			var was hostModel
			if raw, ok := recall(ctx, rec, hostSchema(), &was); ok {
				was.recalled(state)
				if to, known := was.way(); known {
					resp.Diagnostics.Append(declare(ctx, resp.Private, raw)...)
					want, state, way = was, was, to
				}
			}
		} else if errors.Is(err, host.ErrNoRecord) {
			err = nil
		}
	}
	if err == nil {
		err = observeAll(ctx, r.settings, m, &want, &state)
		state.CordonedBy = r.settings.cordonedBy(ctx, m)
	}
	if errors.Is(err, connect.ErrUnknown) {
		return // of the provider block; apply knows
	}
	if err != nil {
		summary, detail := unreachable(way.Address, err)
		if !lost(err) {
			summary, detail = "Machine cannot be examined", fmt.Sprintf("%s. What the state says is taken for what it has.", err)
		}
		resp.Diagnostics.AddWarning(summary, detail)
		return
	}
	state.derive(ctx, way, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// settle answers whether an interrupted create has begun: then the machine has
// a record with the operation's mark, and the next plan finishes it.
func (r *hostResource) settle(ctx context.Context, way connect.SSH, operation string, state *hostModel, resp *resource.ReadResponse) {
	m, err := r.settings.reach(way, nil)
	var rec *host.Record
	if err == nil {
		rec, err = host.OpenRecord(ctx, m, hostRecord)
	}
	switch {
	case errors.Is(err, host.ErrNoRecord) || err == nil && (operation == "" || rec.ID() != operation):
		resp.State.RemoveResource(ctx)
		return
	case err == nil:
		state.ID = types.StringValue(operation)
		err = observeAll(ctx, r.settings, m, state, state)
		state.CordonedBy = r.settings.cordonedBy(ctx, m)
	}
	if err != nil {
		resp.Diagnostics.AddError("Machine cannot be asked", fmt.Sprintf("Whether an apply that was cut off has changed %s is not known: %s.", way.Address, err))
		return
	}
	state.derive(ctx, way, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// ImportState takes a machine over by "ADDRESS KEY", such as
// "10.0.0.1 ssh-ed25519 AAAA…"; user and port as in USER@ADDRESS:PORT.
func (r *hostResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	way, err := importedWay(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import identifier", fmt.Sprintf("%s. Give the address and the host key, such as \"ops@10.0.0.1:22 ssh-ed25519 AAAA…\".", err))
		return
	}
	set := func(name string, v any) {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), v)...)
	}
	set("id", imported)
	set("address", way.Address)
	set("host_key", way.HostKey)
	if way.Port != 0 {
		set("port", int64(way.Port))
	}
	if way.User != "" {
		set("user", way.User)
	}
}
