package metal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
)

// ModifyPlan looks at the machine: all obstacles to the driver, the changes of
// an apply, and their disruptions.
func (r *gpuDriverResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	plan, state, ok := r.planned(ctx, req, resp)
	if !ok {
		return
	}
	if state != nil {
		if otherMachine(ctx, state.Host, plan.Host) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("host"))
		}
		if len(state.Drift.Elements()) == 0 && resp.Plan.Raw.Equal(req.State.Raw) && !unfinished(ctx, req.Private) {
			return // Read has found no difference
		}
	}
	plan.Drift = types.MapValueMust(types.StringType, map[string]attr.Value{})
	plan.Installed = types.StringUnknown()
	plan.GPUs = types.ListUnknown(plan.GPUs.ElementType(ctx))
	plan.GPUCount = types.Int64Unknown()
	r.examine(ctx, plan, &resp.Diagnostics).keep(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// otherMachine reports whether a machine is another one, and did not only move,
// which keeps its key.
func otherMachine(ctx context.Context, was, is types.Object) bool {
	a, known := connect.MachineFromObject(ctx, was)
	b, also := connect.MachineFromObject(ctx, is)
	return known && also && a.HostKey != b.HostKey && !sameKey(a.HostKey, b.HostKey)
}

func (r *gpuDriverResource) examine(ctx context.Context, plan *gpuDriverModel, diags *diag.Diagnostics) promise {
	if r.settings == nil || plan.Branch.IsUnknown() || plan.Version.IsUnknown() || plan.Toolkit.IsUnknown() {
		return promise{}
	}
	m, way, err := r.machine(ctx, plan)
	var l driverLook
	if err == nil {
		want := plan.spec()
		if want.Source == "" { // the operating system says
			var have nvidia.State
			if have, err = nvidia.Observe(ctx, m, nvidia.Spec{}); err == nil {
				plan.resolve(have)
				want = plan.spec()
			}
		}
		if err == nil {
			l, err = r.settings.look(ctx, m, want)
		}
	}
	switch {
	case err == nil:
		return r.reportPlan(ctx, m, way, plan, l, diags)
	case errors.Is(err, connect.ErrUnknown):
	case ssh.IsPermanent(err):
		summary, detail := unreachable(way.Address, err)
		diags.AddAttributeError(path.Root("host"), summary, detail)
	case isUnreachable(err):
		notLooked(diags, path.Root("host"), way.Address, err)
	default:
		addError(diags, path.Root("host"), "Machine cannot be examined", err)
	}
	return promise{}
}

func (r *gpuDriverResource) reportPlan(ctx context.Context, m host.Machine, way connect.SSH, plan *gpuDriverModel, l driverLook, diags *diag.Diagnostics) promise {
	want := plan.spec()
	r.settings.warnUnfit(m, l.have, false, diags)
	plan.GPUCount = types.Int64Value(int64(len(l.have.Devices)))
	for _, p := range nvidia.Check(want, l.have, l.managed) {
		if p.Warning {
			diags.AddAttributeWarning(path.Root("host"), p.Summary, p.Detail)
		} else {
			diags.AddAttributeError(path.Root("host"), p.Summary, m.Name()+": "+p.Detail)
		}
	}
	plan.ID = claim(ctx, m, gpuDriverRecord, "Driver is managed already", path.Root("host"), way, plan.ID, diags)
	changes, forecast, err := l.foresee(ctx, m, want)
	if replaced(ctx, m, gpuDriverRecord) != nil {
		changes = append(changes, host.Change{Fact: "the driver is removed before it is installed again", Disruption: host.Drains})
	}
	if err != nil {
		diags.AddWarning("The forecast of apt is not known", fmt.Sprintf("%s.", err))
	}
	for _, why := range forecast.Refusals {
		diags.AddAttributeError(path.Root("host"), "Package change refused", fmt.Sprintf("%s: %s.", m.Name(), why))
	}
	for _, u := range forecast.Missing {
		diags.AddAttributeError(path.Root("host"), "Package cannot be had", fmt.Sprintf("%s: %s.", m.Name(), u.Why))
	}
	for _, u := range forecast.Doubtful {
		forecast.Notes = append(forecast.Notes, u.Why)
	}
	noteFacts(ctx, diags, "host", slices.Concat(actionLines(forecast.Actions), forecast.Notes, l.have.Waiting()))
	r.settings.reportPlan(ctx, diags, m, changes, plan.policy())
	p := promising(changes)
	if nvidia.MayReboot(want, l.have) && p.Most < host.Reboots {
		p.Most = host.Reboots
		note(ctx, diags, providers.NoteDisruption, []string{"reboot"}, "reboots the machine if the driver cannot be loaded otherwise")
	}
	return p
}
