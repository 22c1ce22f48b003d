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
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
)

func (r *gpuDriverResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan gpuDriverModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.raw = req.Plan.Raw
	id := providers.CallFrom(ctx).Operation
	if id == "" {
		id = rand.Text()
	}
	r.bring(ctx, id, &plan, &resp.State, &resp.Diagnostics)
	resp.Diagnostics.Append(declare(ctx, resp.Private, req.Plan.Raw)...)
}

func (r *gpuDriverResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan gpuDriverModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.raw = req.Plan.Raw
	r.bring(ctx, plan.ID.ValueString(), &plan, &resp.State, &resp.Diagnostics)
	resp.Diagnostics.Append(declare(ctx, resp.Private, req.Plan.Raw)...)
}

// bring brings the driver about on a machine that nobody else works on.
func (r *gpuDriverResource) bring(ctx context.Context, id string, plan *gpuDriverModel, state *tfsdk.State, diags *diag.Diagnostics) {
	step(ctx, "connecting to %s", addressOf(ctx, plan.Host))
	m, err := r.settings.machine(ctx, plan.Host)
	if err == nil {
		err = r.settings.locked(ctx, m, func(ctx context.Context, m host.Machine) error {
			return r.carryOut(ctx, m, id, plan, state, diags)
		})
	}
	var taken *takenError
	var locked *host.LockedError
	switch {
	case err == nil:
	case errors.As(err, &taken):
		complain(diags, path.Root("host"), "Driver is managed already", taken.by(ctx, wayOf(ctx, plan.Host)))
	case errors.As(err, &locked):
		complain(diags, path.Root("host"), "Somebody else changes the machine", err)
	default:
		summary, detail := unreachable(addressOf(ctx, plan.Host), err)
		diags.AddAttributeError(path.Root("host"), summary, detail)
	}
}

// carryOut is bring on a machine that is locked. An error says that nothing was
// begun. A step that fails does not taint: the next apply goes on from what it
// finds.
func (r *gpuDriverResource) carryOut(ctx context.Context, m host.Machine, id string, plan *gpuDriverModel, state *tfsdk.State, diags *diag.Diagnostics) error {
	have, err := nvidia.Observe(ctx, m, nvidia.Spec{})
	if err != nil {
		return err
	}
	plan.resolve(have)
	l, err := r.settings.look(ctx, m, plan.spec())
	if err != nil {
		return err
	}
	if err := refused(m, nvidia.Check(plan.spec(), l.have, l.managed)); err != nil { // before there is anything of ours
		complain(diags, path.Root("host"), "Driver cannot be installed", err)
		return nil
	}
	rec, err := own(ctx, m, gpuDriverRecord, id)
	if err != nil {
		return err
	}
	if err := inscribe(ctx, rec, gpuDriverSchema(), plan.raw); err != nil {
		return err
	}
	providers.CallFrom(ctx).KeepOnError()
	plan.ID = types.StringValue(id)
	if err := r.work(ctx, m, rec, plan, l); err != nil {
		complain(diags, path.Empty(), "Driver is not finished", err)
	}
	is := *plan // what is there is what is stored, as far as it can be seen
	if err := r.observe(context.WithoutCancel(ctx), m, &is); err != nil {
		is.Installed, is.GPUs = types.StringValue(l.have.Installed()), types.ListNull(plan.GPUs.ElementType(ctx))
		if !diags.HasError() {
			complain(diags, path.Empty(), "Driver cannot be examined", err)
		}
	}
	diags.Append(state.Set(ctx, &is)...)
	return nil
}

// refused joins all problems that stand in the way.
func refused(m host.Machine, problems []nvidia.Problem) error {
	var all []string
	for _, p := range problems {
		if !p.Warning {
			all = append(all, fmt.Sprintf("%s: %s", p.Summary, strings.TrimSuffix(p.Detail, ".")))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", m.Name(), strings.Join(all, "\n"))
}

// work changes the machine, with pods out of the way where that is needed.
func (r *gpuDriverResource) work(ctx context.Context, m host.Machine, rec *host.Record, plan *gpuDriverModel, l driverLook) error {
	want := plan.spec()
	install := func(ctx context.Context, w nvidia.Wanted) error { return r.install(ctx, m, rec, want, w) }
	changes := func(ctx context.Context) ([]host.Change, error) {
		all, _, err := l.foresee(ctx, m, want)
		return all, err
	}
	// What Apply finds out on its way: the driver does not go without one.
	drains := func(ctx context.Context) error {
		return drain.Escalate(ctx, []host.Change{{Fact: "driver in the kernel", Disruption: host.Drains}})
	}
	return r.settings.disrupt(ctx, m, changes, plan.policy(), func(ctx context.Context) error {
		if len(nvidia.Diff(want, l.have)) > 0 {
			_, err := nvidia.Apply(ctx, m, rec, want, l.have, nvidia.Hooks{Install: install, Drain: drains, Reboot: reboot(m)})
			return err
		}
		w, err := want.Want(l.have)
		if err != nil {
			return err
		}
		return install(ctx, w)
	})
}

// install brings packages about that differ.
func (r *gpuDriverResource) install(ctx context.Context, m host.Machine, rec *host.Record, want nvidia.Spec, w nvidia.Wanted) error {
	have, err := nvidia.Observe(ctx, m, want)
	if err != nil {
		return err
	}
	spec := r.settings.install(w, have)
	spec.Limit = bound(ctx)
	is, err := packages.Observe(ctx, m, spec)
	if err != nil || len(packages.Diff(spec, is)) == 0 {
		return err
	}
	return packages.Apply(ctx, m, rec, spec, is)
}

// reboot restarts the machine and waits for another boot.
func reboot(m host.Machine) func(context.Context) error {
	return func(ctx context.Context) error {
		step(ctx, "rebooting %s", m.Name())
		_, err := host.Reboot(ctx, m, host.RebootLimits{})
		return err
	}
}

func (r *gpuDriverResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state gpuDriverModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	step(ctx, "connecting to %s", addressOf(ctx, state.Host))
	m, err := r.settings.machine(ctx, state.Host)
	if err == nil {
		err = r.settings.locked(ctx, m, func(ctx context.Context, m host.Machine) error {
			return r.undo(ctx, m, &state, &resp.Diagnostics)
		})
	}
	cannotRestore(&resp.Diagnostics, addressOf(ctx, state.Host), err)
}

// undo restores a machine that is locked, with pods out of the way. An error
// says that nothing was begun.
func (r *gpuDriverResource) undo(ctx context.Context, m host.Machine, state *gpuDriverModel, diags *diag.Diagnostics) error {
	rec, err := host.OpenRecord(ctx, m, gpuDriverRecord)
	switch {
	case errors.Is(err, host.ErrNoRecord):
		return nil // nothing was ever changed, or all is restored
	case err != nil:
		return err
	case rec.ID() != state.ID.ValueString():
		diags.AddWarning("Driver is managed by another", fmt.Sprintf("%s belongs to %s by now; nothing was changed there.", m.Name(), rec.By()))
		return nil
	}
	changes := func(context.Context) ([]host.Change, error) {
		return []host.Change{{Fact: "driver", Disruption: host.Drains}}, nil
	}
	err = r.settings.disrupt(ctx, m, changes, state.policy(), func(ctx context.Context) error {
		step(ctx, "removing the driver")
		outcomes, err := nvidia.Restore(ctx, m, rec, func(ctx context.Context) ([]host.Outcome, error) {
			return packages.Restore(ctx, m, rec)
		})
		tell(ctx, diags, outcomes)
		if err != nil {
			return err
		}
		return rec.Delete(ctx)
	})
	if err != nil {
		complain(diags, path.Empty(), "Driver is not removed", err)
	}
	return nil
}
