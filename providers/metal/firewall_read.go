package metal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/firewall"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Read puts the rules that the machine has into rules. A machine that cannot be
// asked is as the state says, with a warning.
func (r *firewallResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state firewallModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	m, err := r.machine(ctx, state.Host)
	if errors.Is(err, connect.ErrUnknown) {
		return // of the provider block; apply knows
	}
	call := providers.CallFrom(ctx)
	if call.Settling || state.ID.ValueString() == imported {
		var rec *host.Record
		if err == nil {
			rec, err = host.OpenRecord(ctx, m, firewallRecord)
		}
		switch {
		case call.Settling && (errors.Is(err, host.ErrNoRecord) || err == nil && (call.Operation == "" || rec.ID() != call.Operation)):
			resp.State.RemoveResource(ctx)
			return
		case call.Settling && err != nil:
			resp.Diagnostics.AddError("Machine cannot be asked",
				fmt.Sprintf("Whether an apply that was cut off has changed the firewall of %s is not known: %s.", addressOf(ctx, state.Host), err))
			return
		case errors.Is(err, host.ErrNoRecord):
			err = nil
		case err == nil:
			var was firewallModel
			if _, ok := recall(ctx, rec, firewallSchema(), &was); ok && state.ID.ValueString() == imported {
				was.Host = recalledHost(ctx, was.Host, state.Host)
				state = was
			}
			state.ID = types.StringValue(rec.ID())
		}
	}
	if err == nil {
		err = state.observe(ctx, m, &resp.Diagnostics)
	}
	if err != nil {
		summary, detail := unreachable(addressOf(ctx, state.Host), err)
		var unfit *firewall.UnfitError
		if errors.As(err, &unfit) || !lost(err) {
			summary, detail = "Firewall cannot be examined", fmt.Sprintf("%s. What the state says is taken for what it has.", err)
		}
		resp.Diagnostics.AddWarning(summary, detail)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// observe reads what the machine has. Arguments that are not valid, as those of
// an import are, are no reason not to look.
func (m *firewallModel) observe(ctx context.Context, on host.Machine, diags *diag.Diagnostics) error {
	var quiet diag.Diagnostics
	want, _ := m.spec(ctx, &quiet)
	have, err := firewall.Observe(ctx, on, want)
	if err != nil {
		return err
	}
	m.setLines(ctx, have.Backend, have.Lines, diags)
	m.Persistent = types.BoolValue(have.Persistent)
	return nil
}

// ImportState takes a machine's firewall over by "ADDRESS KEY", as metal_host is.
func (r *firewallResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	way, err := importedWay(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import identifier", fmt.Sprintf("%s. Give the address and the host key, such as \"ops@10.0.0.1:22 ssh-ed25519 AAAA…\".", err))
		return
	}
	o, diags := way.Object(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), imported)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("host"), o)...)
}
