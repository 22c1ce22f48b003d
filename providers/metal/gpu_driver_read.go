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
	"github.com/stokehq/stoke/providers/metal/nvidia"
)

// Read puts what the machine has into what is declared. A machine that cannot
// be asked is as the state says, with a warning.
func (r *gpuDriverResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state gpuDriverModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	call := providers.CallFrom(ctx)
	var noted gpuDriverModel
	known, err := declared(ctx, req.Private, gpuDriverSchema(), &noted)
	if err != nil {
		resp.Diagnostics.AddError("State of the driver is damaged", fmt.Sprintf("%s.", err))
		return
	}
	m, err := r.settings.machine(ctx, state.Host)
	if errors.Is(err, connect.ErrUnknown) {
		return // of the provider block; apply knows
	}
	if err == nil && (call.Settling || state.ID.ValueString() == imported) {
		var rec *host.Record
		rec, err = host.OpenRecord(ctx, m, gpuDriverRecord)
		switch {
		case call.Settling && (errors.Is(err, host.ErrNoRecord) || err == nil && (call.Operation == "" || rec.ID() != call.Operation)):
			resp.State.RemoveResource(ctx) // it was never begun
			return
		case call.Settling && err != nil:
			resp.Diagnostics.AddError("Machine cannot be asked", fmt.Sprintf("Whether an apply that was cut off has changed %s is not known: %s.", m.Name(), err))
			return
		case err == nil:
			var was gpuDriverModel
			if raw, ok := recall(ctx, rec, gpuDriverSchema(), &was); ok && state.ID.ValueString() == imported && !was.Source.IsNull() {
				resp.Diagnostics.Append(declare(ctx, resp.Private, raw)...)
				noted, known = was, true
				state.Host = recalledHost(ctx, was.Host, state.Host)
			}
			state.ID = types.StringValue(rec.ID())
		case errors.Is(err, host.ErrNoRecord):
			err = nil
		}
	}
	if err == nil {
		if known && !call.Settling {
			was := state
			state = noted
			state.ID, state.Host = was.ID, was.Host
			if noted.Source.IsUnknown() {
				state.Source = was.Source
			}
		}
		err = r.observe(ctx, m, &state)
	}
	if errors.Is(err, errNoDriver) {
		resp.Diagnostics.AddError("There is no driver to import", fmt.Sprintf("%s has no NVIDIA driver that its packages know of. Remove the import: apply installs one.", m.Name()))
		return
	}
	if err != nil {
		address := "the machine"
		if m != nil {
			address = m.Name()
		}
		summary, detail := unreachable(address, err)
		if !lost(err) {
			summary, detail = "Driver cannot be examined", fmt.Sprintf("%s. What the state says is taken for what the machine has.", err)
		}
		resp.Diagnostics.AddWarning(summary, detail)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

var errNoDriver = errors.New("no driver is installed")

// observe sets the model, which holds what is declared, to what the machine has.
func (r *gpuDriverResource) observe(ctx context.Context, m host.Machine, model *gpuDriverModel) error {
	if model.Branch.IsNull() { // imported: whatever is there is what is declared
		have, err := nvidia.Observe(ctx, m, nvidia.Spec{})
		if err != nil {
			return err
		}
		if have.Installed() == "" {
			return errNoDriver
		}
		model.adopt(have)
	}
	want := model.spec()
	l, err := r.settings.look(ctx, m, want)
	if err != nil {
		return err
	}
	changes := l.changes(want)
	if by := r.settings.cordonedBy(ctx, m); !by.IsNull() {
		changes = append(changes, host.Change{Fact: "node", Have: "cordoned by " + by.ValueString()})
	}
	return failed(model.observed(ctx, l.have, changes))
}

// adopt declares what is there, and leaves the rest at its defaults.
func (m *gpuDriverModel) adopt(have nvidia.State) {
	is := have.Declared()
	m.Branch, m.Modules, m.Source = types.StringValue(is.Branch), types.StringValue(is.Modules), types.StringValue(is.Source)
	m.Server, m.FabricManager = types.BoolValue(is.Server), types.StringValue(is.FabricManager)
	m.Toolkit, m.Persistence, m.NoNouveau = types.StringValue(is.Toolkit), types.BoolValue(is.Persistence), types.BoolValue(is.NoNouveau)
	m.Reboot = types.StringValue(is.Reboot)
}

// ImportState takes a driver over by its machine: "[USER@]ADDRESS[:PORT] KEY".
func (r *gpuDriverResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	way, err := importedWay(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import identifier", fmt.Sprintf("%s. Give the machine's address and host key, such as \"ops@10.0.0.1:22 ssh-ed25519 AAAA…\".", err))
		return
	}
	at, diags := way.Object(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), imported)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("host"), at)...)
}
