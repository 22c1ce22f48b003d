package metal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

func (r *hostResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	plan.config, plan.raw = &config, req.Plan.Raw
	if resp.Diagnostics.HasError() {
		return
	}
	id := providers.CallFrom(ctx).Operation
	if id == "" {
		id = rand.Text()
	}
	r.apply(ctx, id, &plan, &resp.State, &resp.Diagnostics)
	resp.Diagnostics.Append(declare(ctx, resp.Private, req.Plan.Raw)...)
}

func (r *hostResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, config, prior hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	plan.config, plan.prior, plan.raw = &config, &prior, req.Plan.Raw
	if resp.Diagnostics.HasError() {
		return
	}
	r.apply(ctx, plan.ID.ValueString(), &plan, &resp.State, &resp.Diagnostics)
	resp.Diagnostics.Append(declare(ctx, resp.Private, req.Plan.Raw)...)
}

// apply makes the machine what is planned. A step that fails does not taint:
// what is done is done, and the next apply goes on from what it finds.
func (r *hostResource) apply(ctx context.Context, id string, plan *hostModel, state *tfsdk.State, diags *diag.Diagnostics) {
	way, _ := plan.way()
	m, err := r.settings.reach(way, nil)
	if err == nil {
		step(ctx, "connecting to %s", way.Address)
		err = r.settings.locked(ctx, m, func(ctx context.Context, m host.Machine) error {
			return r.carryOut(ctx, m, id, plan, state, diags)
		})
	}
	var taken *takenError
	var locked *host.LockedError
	switch {
	case err == nil:
	case errors.As(err, &taken):
		complain(diags, path.Root("address"), "Machine is managed already", taken.by(ctx, way))
	case errors.As(err, &locked):
		complain(diags, path.Root("address"), "Somebody else changes the machine", err)
	default:
		summary, detail := unreachable(way.Address, err)
		diags.AddAttributeError(path.Root("address"), summary, detail)
	}
}

// carryOut is apply on a machine that is locked. An error says that nothing was
// begun; what goes wrong later is in diags.
func (r *hostResource) carryOut(ctx context.Context, m host.Machine, id string, plan *hostModel, state *tfsdk.State, diags *diag.Diagnostics) error {
	rec, err := own(ctx, m, hostRecord, id)
	if err != nil {
		return err
	}
	if err := inscribe(ctx, rec, hostSchema(), plan.raw); err != nil {
		return err
	}
	way, _ := plan.way()
	providers.CallFrom(ctx).KeepOnError()
	plan.ID = types.StringValue(id)
	plan.derive(ctx, way, diags)
	plan.CordonedBy = types.StringNull()
	have := *plan
	err = r.settings.disrupt(ctx, m, func(ctx context.Context) ([]host.Change, error) {
		var changes []host.Change
		for _, s := range sections(r.settings) {
			changes = append(changes, s.changes(ctx, m, plan, diags)...)
		}
		if diags.HasError() {
			return nil, errRefused
		}
		return changes, nil
	}, plan.policy(), func(ctx context.Context) error {
		for _, s := range sections(r.settings) {
			if err := s.apply(ctx, m, rec, plan); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		if !errors.Is(err, errRefused) {
			complain(diags, path.Empty(), "Machine is not finished", err)
		}
		// What is there is what is stored, as far as it can be seen.
		after := context.WithoutCancel(ctx)
		if observeAll(after, r.settings, m, plan, &have) == nil {
			have.CordonedBy = r.settings.cordonedBy(after, m)
			plan = &have
		}
	}
	if plan.Facts.IsUnknown() { // not even looked at
		plan.Facts = types.ObjectNull(factsTypes())
	}
	if !wholly(ctx, plan.Digests) {
		plan.Digests = types.MapNull(types.StringType)
	}
	if !wholly(ctx, plan.State, plan.Archives) {
		plan.State, plan.Archives = types.ObjectNull(runtimeStateTypes()), types.MapNull(types.StringType)
	}
	diags.Append(state.Set(ctx, plan)...)
	return nil
}

// errRefused stands for diagnostics that say why.
var errRefused = errors.New("refused")

func (r *hostResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state hostModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	way, _ := state.way()
	m, err := r.settings.reach(way, nil)
	if err == nil {
		step(ctx, "connecting to %s", way.Address)
		err = r.settings.locked(ctx, m, func(ctx context.Context, m host.Machine) error {
			return r.undo(ctx, m, &state, &resp.Diagnostics)
		})
	}
	cannotRestore(&resp.Diagnostics, way.Address, err)
}

// undo restores a machine that is locked. An error says that nothing was begun;
// what goes wrong later is in diags.
func (r *hostResource) undo(ctx context.Context, m host.Machine, state *hostModel, diags *diag.Diagnostics) error {
	rec, err := host.OpenRecord(ctx, m, hostRecord)
	switch {
	case errors.Is(err, host.ErrNoRecord):
		return nil // nothing was ever changed, or all is restored
	case err != nil:
		return err
	case rec.ID() != state.ID.ValueString():
		diags.AddWarning("Machine is managed by another", fmt.Sprintf("%s belongs to %s by now; nothing was changed there.", m.Name(), rec.By()))
		return nil
	}
	var outcomes []host.Outcome
	err = r.settings.leave(ctx, m, state.policy(), func(ctx context.Context) error {
		for _, s := range slices.Backward(sections(r.settings)) {
			did, err := s.restore(ctx, m, rec)
			outcomes = append(outcomes, did...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	tell(ctx, diags, outcomes)
	if err != nil {
		complain(diags, path.Empty(), "Machine is not restored", err)
		return nil
	}
	if err := rec.Delete(ctx); err != nil {
		complain(diags, path.Empty(), "Record cannot be removed", err)
	}
	return nil
}
