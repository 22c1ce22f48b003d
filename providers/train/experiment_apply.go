package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

func (r *experimentResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan experimentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.Timeouts.Create(ctx, noLimit)
	resp.Diagnostics.Append(diags...)
	d, diags := plan.whole(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	t, missing := r.settings.trainer()
	if missing != nil {
		resp.Diagnostics.Append(missing)
		return
	}
	can, err := t.abilities(ctx)
	if err != nil {
		resp.Diagnostics.AddError("The trainer cannot be asked", fmt.Sprintf("%s: %s.", t, err))
		return
	}
	d.spec.Layers = can.Layers[d.spec.Model]
	if planned := plan.SpecHash; !planned.IsUnknown() && planned.ValueString() != d.spec.Hash() {
		resp.Diagnostics.AddError("The trainer is not the planned one", fmt.Sprintf("The model %s of %s has other layers than were planned. Plan again.", d.spec.Model, t))
		return
	}
	call, place := providers.CallFrom(ctx), r.settings.runs
	id := local.ID(call.Operation)
	call.Report(providers.Progress{Step: "launching " + id, Percent: -1})
	f, err := launch(ctx, t, place, id, call.Operation, d.spec)
	if err != nil {
		resp.Diagnostics.AddError("Experiment could not be launched", fmt.Sprintf("Nothing is running and nothing is left of it: %s.", err))
		return
	}
	plan.identify(place, id, &d.spec)
	plan.RunsDir = types.StringValue(string(place))
	resp.Diagnostics.Append(attend(ctx, f, &plan, limit, true)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// launch makes the run's folder and starts its supervisor, or leaves nothing.
func launch(ctx context.Context, t trainer, place local.Place, id, operation string, s spec.Spec) (run.Folder, error) {
	f, err := place.Create(id, operation, s)
	if err != nil {
		return "", err
	}
	if _, err := local.Launch(ctx, string(t), f); err != nil {
		return "", errors.Join(err, place.Remove(id))
	}
	return f, nil
}

// whole reads a plan of which nothing is open any more, and checks that the
// dataset is what was planned.
func (m *experimentModel) whole(ctx context.Context) (*draft, diag.Diagnostics) {
	d, diags := m.draft()
	if diags.HasError() {
		return nil, diags
	}
	m.fill(ctx, d)
	at := path.Root("dataset")
	is, err := readManifest(d.spec.Dataset.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		diags.AddAttributeError(at, "There is no such dataset", fmt.Sprintf("Nothing is prepared at %s. Plan again.", d.spec.Dataset.Path))
		return nil, diags
	case err != nil:
		diags.AddAttributeError(at, "Dataset cannot be used", fmt.Sprintf("The folder %s does not hold a prepared dataset: %s.", d.spec.Dataset.Path, err))
		return nil, diags
	case d.spec.Dataset.Hash != "" && d.spec.Dataset.Hash != is.Hash:
		diags.AddAttributeError(at, "Dataset is not the planned one", fmt.Sprintf("%s holds %s, but %s was planned. Plan again.", d.spec.Dataset.Path, is.Hash, d.spec.Dataset.Hash))
		return nil, diags
	}
	d.spec.Dataset.Hash = is.Hash
	diags.Append(d.check()...)
	return d, diags
}

// attend follows the run as far as it is asked to, records how it stands in m,
// and says what went wrong. fresh tells a run that was created by this call.
func attend(ctx context.Context, f run.Folder, m *experimentModel, limit time.Duration, fresh bool) (diags diag.Diagnostics) {
	call := providers.CallFrom(ctx)
	if !m.Wait.ValueBool() {
		s, err := standing(f)
		if err != nil {
			return unreadable(m, err)
		}
		m.record(s)
		return verdict(call, s, f)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, end, err := follow(ctx, call, f)
	if err != nil {
		call.KeepOnError()
		return unreadable(m, err)
	}
	m.record(s)
	switch end {
	case detached:
		diags.AddWarning("The experiment goes on training",
			fmt.Sprintf("%s was left running at %s. The next apply attaches to it again and waits for its end; destroy stops it.", f.Name(), step(s)))
	case overdue:
		call.KeepOnError()
		name := "update"
		if fresh {
			name = "create"
		}
		diags.AddAttributeError(path.Root("timeouts").AtName(name), "The experiment is not done yet",
			fmt.Sprintf("It is still running after %s, at %s, and goes on. The next apply attaches to it again; a longer timeouts.%s waits longer, and deadline limits the run itself.", limit, step(s), name))
	default:
		diags.Append(verdict(call, s, f)...)
	}
	return diags
}

// verdict says what is wrong with how the run stands; nothing where it ended
// well or goes on.
func verdict(call *providers.Call, s spec.Status, f run.Folder) (diags diag.Diagnostics) {
	switch s.Phase {
	case spec.Failed:
		diags.AddError("The experiment failed", reason(s, f))
	case spec.Stopped:
		call.KeepOnError()
		diags.AddError("The experiment was stopped before its end", fmt.Sprintf("%s It is at step %s. %s%s\n\nIts logs are in %s.",
			sentence(s.Message), thousands(s.Step), goesOn(s), excerpt(s.Log), f.Logs()))
	case spec.Lost:
		call.KeepOnError()
		diags.AddError("The experiment was lost", fmt.Sprintf("Its supervisor is gone without a result, at step %s. "+
			"The next apply resumes it from its newest checkpoint, or replaces it if there is none.\n\nIts logs are in %s.", thousands(s.Step), f.Logs()))
	}
	return diags
}

// goesOn says what the next apply does with a stopped run.
func goesOn(s spec.Status) string {
	next := "The next apply goes on from its newest checkpoint."
	switch s.Cause {
	case spec.CauseDeadline:
		return "Raise deadline, or leave it out; the next apply then goes on from its newest checkpoint."
	case spec.CauseDisk:
		return "Make room on the disk of " + s.Run + ". " + next
	case spec.CauseTrainer:
		return "Name the stoke-trainer that it was trained with as trainer in the provider block. " + next
	case spec.CauseRestarts:
		return "Look into the logs for the reason. " + next
	}
	return next
}

func sentence(s string) string {
	if s = printable(s); s == "" {
		return ""
	}
	return s + "."
}

// unreadable records a run of which nothing can be told.
func unreadable(m *experimentModel, err error) (diags diag.Diagnostics) {
	m.record(spec.Status{Phase: spec.Running})
	diags.AddError("State of the experiment is unreadable", fmt.Sprintf("%s. It may still be running; destroy stops it.", err))
	return diags
}

func (r *experimentResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, prior experimentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.Timeouts.Update(ctx, noLimit)
	resp.Diagnostics.Append(diags...)
	d, diags := plan.draft()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if d.spec.Dataset.Hash == "" {
		d.spec.Dataset.Hash = prior.DatasetHash.ValueString()
	}
	if spec.Phase(prior.Status.ValueString()) == spec.Succeeded {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...) // only recorded
		return
	}
	f, err := prior.place().Find(prior.ID.ValueString())
	if err != nil {
		resp.Diagnostics.AddError("The run's folder is gone", fmt.Sprintf("%s. Plan again: a run that nothing is left of is made anew.", err))
		return
	}
	resp.Diagnostics.Append(r.adjust(ctx, f, d, &prior)...)
	if resp.Diagnostics.HasError() {
		return // the prior state stays: the next plan does it again
	}
	if plan.Status.IsUnknown() || plan.Metrics.IsUnknown() {
		resp.Diagnostics.Append(attend(ctx, f, &plan, limit, false)...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// adjust brings the run's processes to what is planned: an idle run is started
// again, a running one takes on what it can.
func (r *experimentResource) adjust(ctx context.Context, f run.Folder, d *draft, prior *experimentModel) (diags diag.Diagnostics) {
	s, err := standing(f)
	if err != nil {
		diags.AddError("State of the experiment is unreadable", err.Error()+".")
		return diags
	}
	switch {
	case idle(s.Phase):
		return r.resume(ctx, f, d, s)
	case s.Phase.Final():
		return nil // it ended since the plan
	}
	before, diags := prior.draft()
	changes := spec.Compare(before.spec, d.spec)
	switch {
	case len(changes) == 0:
		return diags
	case spec.Costliest(changes) == spec.Resume:
		return r.interrupt(ctx, f, d)
	}
	if err := change(ctx, f, d.spec); err != nil {
		if s, err := standing(f); err == nil && s.Phase.Final() {
			return diags // it ended meanwhile: there is nothing to change
		}
		diags.AddError("Running experiment did not take the change", fmt.Sprintf("%s. It goes on as it was; apply again.", err))
	}
	return diags
}

// interrupt stops a running run at a checkpoint and lets it go on with what is
// planned.
func (r *experimentResource) interrupt(ctx context.Context, f run.Folder, d *draft) (diags diag.Diagnostics) {
	providers.CallFrom(ctx).Report(providers.Progress{Step: "stopping " + f.Name() + " at a checkpoint", Percent: -1})
	client, err := f.Client()
	if err == nil {
		defer client.Close()
		err = client.Stop(ctx)
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for err == nil {
		var s spec.Status
		saved := int64(-1)
		if s, err = standing(f); err == nil && idle(s.Phase) {
			saved, err = newest(f)
		}
		switch {
		case err != nil:
			continue
		case idle(s.Phase) && s.Step > 0 && saved < 0:
			diags.AddError("The run could not save a checkpoint", fmt.Sprintf("%s It is stopped at step %s. Apply again: the plan says what becomes of it.\n\nIts logs are in %s.",
				sentence(s.Message), thousands(s.Step), f.Logs()))
			return diags
		case idle(s.Phase):
			return r.resume(ctx, f, d, s)
		case s.Phase.Final():
			return nil // it reached its end first
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	diags.AddError("Running experiment could not be stopped", fmt.Sprintf("%s. Apply again.", err))
	return diags
}

// resume starts an idle run again, with what is planned.
func (r *experimentResource) resume(ctx context.Context, f run.Folder, d *draft, s spec.Status) (diags diag.Diagnostics) {
	t, missing := r.settings.trainer()
	if missing != nil {
		return diag.Diagnostics{missing}
	}
	if (remains{status: s}).overrun(d.spec.Deadline) {
		diags.AddAttributeError(path.Root("deadline"), "The deadline has been used up",
			fmt.Sprintf("The run has run for %s. Raise deadline above that, or leave it out, and apply again.", lasting(s.Ran)))
		return diags
	}
	providers.CallFrom(ctx).Report(providers.Progress{Step: "resuming " + f.Name(), Percent: -1})
	// Nobody else writes to an idle run. Its status must not look like an end
	// until the new supervisor writes one.
	s.Phase, s.Cause, s.Message = spec.Pending, "", ""
	is, err := f.ReadSpec()
	if err == nil {
		d.spec.Layers = is.Layers // it stays the same run
		err = f.WriteSpec(d.spec)
	}
	if err == nil {
		err = run.WriteJSON(f.StatusFile(), s)
	}
	if err == nil {
		_, err = local.Launch(ctx, string(t), f)
	}
	if err != nil {
		diags.AddError("Experiment could not be resumed", fmt.Sprintf("%s. What it has saved is unharmed: apply again.", err))
	}
	return diags
}

// change sends what is new of the spec's live part to the running run.
func change(ctx context.Context, f run.Folder, s spec.Spec) error {
	is, err := f.ReadSpec()
	if err != nil {
		return err
	}
	client, err := f.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return client.Change(ctx, spec.LiveBetween(is, s))
}

func (r *experimentResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state experimentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, time.Minute)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	place, id := state.place(), state.ID.ValueString()
	f, err := place.Find(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // gone already
	case err != nil:
		resp.Diagnostics.AddError("The run's folder is not ours", fmt.Sprintf("%s. Nothing was removed. Move it away, then destroy again.", err))
		return
	}
	providers.CallFrom(ctx).Report(providers.Progress{Step: "stopping " + id, Percent: -1})
	if err := local.Stop(ctx, f); err != nil {
		resp.Diagnostics.AddError("The experiment could not be stopped", fmt.Sprintf("%s. Nothing was removed; destroy again.", err))
		return
	}
	if err := place.Remove(id); err != nil {
		resp.Diagnostics.AddError("The run's folder could not be removed", fmt.Sprintf("%s. Destroy again.", err))
	}
}
