package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
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
	d, diags := plan.knownDraft(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	t, missing := r.settings.trainerFor(d)
	if missing != nil {
		resp.Diagnostics.Append(missing)
		return
	}
	if resp.Diagnostics.Append(d.checkInitFrom(ctx, t)...); resp.Diagnostics.HasError() {
		return
	}
	if !d.spec.HasProgram() {
		can, err := t.abilities(ctx)
		if err != nil {
			resp.Diagnostics.AddError("The trainer cannot be asked", fmt.Sprintf("%s: %s.", t, err))
			return
		}
		if problem := d.capableOfGPUs(t, can); problem != nil {
			resp.Diagnostics.Append(problem)
			return
		}
		d.spec.Layers = can.Layers[d.spec.Model]
		if problem := d.summarized(&plan); problem != nil {
			resp.Diagnostics.Append(problem)
			return
		}
	}
	if d.spec.InitFrom.Path != "" {
		if resp.Diagnostics.Append(misfit(t.checkFit(ctx, d.spec))...); resp.Diagnostics.HasError() {
			return
		}
	}
	if planned := plan.SpecHash; !planned.IsUnknown() && planned.ValueString() != d.spec.Hash() {
		resp.Diagnostics.AddError("The trainer is not the planned one", fmt.Sprintf("The model %s of %s has other layers than were planned. Plan again.", d.spec.Model, t))
		return
	}
	run, diags := r.launch(ctx, r.settings.launcher(&plan), d, &plan)
	resp.Diagnostics.Append(diags...)
	if run.id == "" {
		return
	}
	resp.Diagnostics.Append(writeList(ctx, resp.Private, d.code.Snapshot)...)
	if !diags.HasError() {
		resp.Diagnostics.Append(r.settings.attend(ctx, run, &plan, limit, true)...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// launch starts the run and records which it is. One that failed and could not
// be removed is recorded, too: stored as tainted, it is removed before the next
// apply makes another.
func (r *experimentResource) launch(ctx context.Context, l launch.Launcher, d *draft, plan *experimentModel) (run trainingRun, diags diag.Diagnostics) {
	call := providers.CallFrom(ctx)
	call.Report(providers.Progress{Step: "launching", Percent: -1})
	id, err := l.Start(ctx, call.Operation, d.spec, d.code)
	left := new(launch.LeftError)
	switch {
	case errors.As(err, &left):
		diags.AddError("Experiment could not be launched", fmt.Sprintf("%s. The next apply removes the rest and launches it again; destroy removes it, too.", err))
		plan.record(spec.Status{Phase: spec.Lost})
	case err != nil:
		diags.AddError("Experiment could not be launched", fmt.Sprintf("Nothing is running and nothing is left of it: %s.", err))
		return trainingRun{}, diags
	}
	run = trainingRun{l, id}
	plan.identify(run, &d.spec)
	r.settings.identifyCluster(ctx, plan)
	return run, diags
}

// knownDraft reads a plan without unknown values, and checks that dataset and code are
// the planned ones.
func (m *experimentModel) knownDraft(ctx context.Context) (*draft, diag.Diagnostics) {
	diags := m.checkProgram()
	d, wrong := m.draft()
	if diags.Append(wrong...); diags.HasError() {
		return nil, diags
	}
	m.fill(ctx, d)
	if diags.Append(d.checkDataset()...); diags.HasError() {
		return nil, diags
	}
	if diags.Append(d.check()...); !diags.HasError() {
		diags.Append(d.prepare(ctx)...)
	}
	return d, diags
}

// checkDataset finds the dataset, which is what was planned.
func (d *draft) checkDataset() (diags diag.Diagnostics) {
	if d.spec.Dataset.Path == "" { // of a program
		return nil
	}
	at := path.Root("dataset")
	is, err := readManifest(d.spec.Dataset.Path)
	switch {
	case err != nil && d.spec.HasProgram() && d.spec.Dataset.Hash == "" && isFolder(d.spec.Dataset.Path): // of the user's own
	case errors.Is(err, fs.ErrNotExist):
		diags.AddAttributeError(at, "There is no such dataset", fmt.Sprintf("Nothing is prepared at %s. Plan again.", d.spec.Dataset.Path))
		return diags
	case err != nil:
		diags.AddAttributeError(at, "Dataset cannot be used", fmt.Sprintf("The folder %s does not hold a prepared dataset: %s.", d.spec.Dataset.Path, err))
		return diags
	case d.spec.Dataset.Hash != "" && d.spec.Dataset.Hash != is.Hash:
		diags.AddAttributeError(at, "Dataset is not the planned one", fmt.Sprintf("%s holds %s, but %s was planned. Plan again.", d.spec.Dataset.Path, is.Hash, d.spec.Dataset.Hash))
		return diags
	}
	d.spec.Dataset.Hash = is.Hash
	return d.checkRecords(is)
}

// attend follows the run for as long as the configuration asks, records its
// status in m, and reports failures. fresh: the run was created by this call.
func (s *settings) attend(ctx context.Context, r trainingRun, m *experimentModel, limit time.Duration, fresh bool) (diags diag.Diagnostics) {
	call := providers.CallFrom(ctx)
	at := func(is launch.State) string { return strings.TrimPrefix(step(is), "running, ") }
	if !m.Wait.ValueBool() {
		is, err := r.Status(ctx, r.id)
		if err != nil {
			return unreadable(m, err)
		}
		m.record(is.Status)
		return append(s.otherTrainer(m, is), verdict(call, is, r.location().Logs)...)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	is, end, err := follow(ctx, call, r)
	if err != nil {
		call.KeepOnError()
		return unreadable(m, err)
	}
	m.record(is.Status)
	diags.Append(s.otherTrainer(m, is)...)
	switch end {
	case detached:
		diags.AddWarning("The experiment goes on training",
			fmt.Sprintf("%s was left running at %s. The next apply attaches to it again and waits for its end; destroy stops it.", r.id, at(is)))
	case overdue:
		call.KeepOnError()
		name := "update"
		if fresh {
			name = "create"
		}
		stands := fmt.Sprintf("It is still running after %s, at %s, and continues", limit, at(is))
		if is.Phase == spec.Pending {
			stands = fmt.Sprintf("It has not begun after %s and still waits, %s", limit, strings.TrimRight(step(is), "."))
		}
		diags.AddAttributeError(path.Root("timeouts").AtName(name), "The experiment is not done yet",
			fmt.Sprintf("%s. The next apply attaches to it again; a longer timeouts.%s waits longer, and deadline limits the run itself.", stands, name))
	default:
		diags.Append(verdict(call, is, r.location().Logs)...)
	}
	return diags
}

// otherTrainer names an image whose trainer is of another version than stoke.
func (s *settings) otherTrainer(m *experimentModel, is launch.State) (diags diag.Diagnostics) {
	if !m.Cluster.IsNull() && is.Version != "" && is.Version != undated && is.Version != s.version {
		diags.AddAttributeWarning(path.Root("image"), "The image has another version of the trainer",
			fmt.Sprintf("Its pods run stoke-trainer %s, and this is stoke %s. They may not understand each other in everything: build the image again with train_image.", printable(is.Version), s.version))
	}
	return diags
}

// verdict reports a failed, lost or stopped run; nothing for a run that
// succeeded or is still running.
func verdict(call *providers.Call, s launch.State, logs string) (diags diag.Diagnostics) {
	switch s.Phase {
	case spec.Failed:
		diags.AddError("The experiment failed", reason(s.Status, logs))
	case spec.Stopped:
		call.KeepOnError()
		diags.AddError("The experiment was stopped before its end", fmt.Sprintf("%s%s %s%s%s",
			sentence(s.Message), itIs(s), goesOn(s), excerpt(s.Log), whereLogs(logs)))
	case spec.Lost:
		call.KeepOnError()
		diags.AddError("The experiment was lost", fmt.Sprintf("%s%s The next apply resumes it from its newest checkpoint, or replaces it if it has none.%s",
			cmp.Or(sentence(s.Message), "Its supervisor is gone without a result."), itIs(s), whereLogs(logs)))
	}
	return diags
}

// itIs is a sentence with the step of the run.
func itIs(s launch.State) string {
	if at := atStep(s); at != "" {
		return " It is" + at + "."
	}
	return ""
}

// goesOn says what the next apply does with a stopped run.
func goesOn(s launch.State) string {
	next := "The next apply resumes it from its newest checkpoint."
	if s.Program && s.Saved < 0 {
		next = "The next apply starts the program again."
	}
	switch s.Cause {
	case spec.CauseDeadline:
		return "Raise deadline, or leave it out; the next apply then resumes it from its newest checkpoint."
	case spec.CauseDisk:
		return "Make room on the disk of " + s.Run + ". " + next
	case spec.CauseTrainer:
		return "Give it what it was trained with: trainer in the provider block or, on a cluster, image and dataset_path. " + next
	case spec.CauseData:
		return "Make its data readable, or prepare them again. " + next
	case spec.CauseCheckpoints:
		return "The next plan says what to replace."
	case spec.CauseGPU:
		return "Reset or replace the GPU, or leave gpu_health out. " + next
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

// unreadable records a run whose status could not be read.
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
	if resp.Diagnostics.Append(d.check()...); resp.Diagnostics.HasError() { // of values that the plan did not know
		return
	}
	if !plan.CodeHash.Equal(prior.CodeHash) {
		if resp.Diagnostics.Append(d.readCode(ctx)...); resp.Diagnostics.HasError() {
			return
		}
		plan.CodeHash = optionalText(d.spec.Program.Code)
	}
	if spec.Phase(prior.Status.ValueString()) == spec.Succeeded {
		resp.Diagnostics.Append(writeList(ctx, resp.Private, d.code.Snapshot)...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...) // only recorded
		return
	}
	run := r.settings.run(&plan) // what is planned says where resumed pods go
	is, err := run.Spec(ctx, run.id)
	if err != nil {
		resp.Diagnostics.AddError("The run is gone", fmt.Sprintf("%s. Plan again: "+
			"stoke creates a run again if nothing of it is left.", err))
		return
	}
	if !prior.Cluster.IsNull() {
		d.partly = liveChanges(is, d.spec)
	}
	resp.Diagnostics.Append(r.adjust(ctx, run, d, &plan, &prior, renewPlanned(ctx, req.Private))...)
	if resp.Diagnostics.HasError() {
		return // the prior state stays: the next plan does it again
	}
	if plan.SpecHash.IsUnknown() { // a run that has ended since the plan stays as it was
		if is, err = run.Spec(ctx, run.id); err != nil {
			is = d.spec
		}
		plan.SpecHash = types.StringValue(is.Hash())
	}
	resp.Diagnostics.Append(writeList(ctx, resp.Private, d.code.Snapshot)...)
	if plan.Status.IsUnknown() || plan.Metrics.IsUnknown() {
		resp.Diagnostics.Append(r.settings.attend(ctx, run, &plan, limit, false)...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// adjust brings the run's processes to what is planned: an idle run is started
// again, a running one takes on what it can. renew says that the plan has it
// renewed where it is at risk.
func (r *experimentResource) adjust(ctx context.Context, run trainingRun, d *draft, plan, prior *experimentModel, renew bool) (diags diag.Diagnostics) {
	if l, ok := run.Launcher.(launch.Releaser); ok {
		if err := l.Release(ctx, run.id); err != nil {
			diags.AddWarning("A lost node holds a place", fmt.Sprintf("%s. A new pod can start once an administrator deletes the Node, or the node answers again.", err))
		}
	}
	s, err := run.Status(ctx, run.id)
	if err != nil {
		diags.AddError("State of the experiment is unreadable", err.Error()+".")
		return diags
	}
	switch {
	case launch.Idle(s.Phase) && !(remains{s}).resumable():
		diags.AddError("The run cannot continue", fmt.Sprintf("%s Its checkpoints were lost after the plan was made. Run stoke plan: it shows whether the run resumes or starts again.", sentence(cmp.Or(s.CannotContinue, s.Message))))
		return diags
	case launch.Idle(s.Phase):
		return append(diags, r.resume(ctx, run, d, s)...)
	case s.Phase.Final():
		return diags // it ended since the plan
	case s.RestartReason != "" && renew:
		return append(diags, r.interrupt(ctx, run, d)...)
	}
	before, wrong := prior.draft()
	diags.Append(wrong...)
	changes := append(d.compare(before.spec), moves(plan, prior)...)
	changes = append(changes, d.partly...)
	if s.RestartReason != "" {
		diags.AddWarning("The experiment is at risk", fmt.Sprintf("%s: %s. The plan did not know of it; plan again to have the run stopped at a checkpoint and go on.", run.id, printable(s.RestartReason)))
	}
	switch {
	case len(changes) == 0:
		return diags
	case spec.Costliest(changes) == spec.Resume && s.DiesWithCoordinator:
		diags.AddError("Stopping the run would lose its checkpoints", fmt.Sprintf("%s It continues unchanged. Run stoke plan: it shows whether the run resumes or starts again.", sentence(strings.Join(s.Warnings, ". "))))
		return diags
	case spec.Costliest(changes) == spec.Resume:
		return append(diags, r.interrupt(ctx, run, d)...)
	}
	if err := run.Change(ctx, run.id, d.spec); err != nil {
		if s, err := run.Status(ctx, run.id); err == nil && s.Phase.Final() {
			return diags // it ended meanwhile: there is nothing to change
		}
		diags.AddError("Running experiment did not take the change", fmt.Sprintf("%s. It continues unchanged; apply again.", err))
	}
	return diags
}

// savingTime is how long a run that is interrupted may take to save itself.
const savingTime = 2 * time.Minute

// interrupt stops a running run at a checkpoint and lets it go on with what is
// planned.
func (r *experimentResource) interrupt(ctx context.Context, run trainingRun, d *draft) (diags diag.Diagnostics) {
	if diags.Append(d.prepare(ctx)...); diags.HasError() {
		return diags
	}
	providers.CallFrom(ctx).Report(providers.Progress{Step: "stopping " + run.id + " at a checkpoint", Percent: -1})
	// Whoever does not want to wait does not want the run to be killed either.
	stopped := make(chan error, 1)
	go func() {
		stopped <- run.Stop(context.WithoutCancel(ctx), run.id, savingTime+time.Duration(d.spec.Program.StopGrace))
	}()
	var s launch.State
	var err error
	select {
	case err = <-stopped:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		s, err = run.Status(ctx, run.id)
	}
	switch {
	case err != nil:
		diags.AddError("Running experiment could not be stopped", fmt.Sprintf("%s. Apply again.", err))
	case launch.Idle(s.Phase) && s.Step > 0 && s.Saved < 0 && !d.spec.HasProgram():
		diags.AddError("The run could not save a checkpoint", fmt.Sprintf("%s It is stopped at step %s. Run stoke plan: it shows whether the run resumes or starts again.%s",
			sentence(s.Message), thousands(s.Step), whereLogs(run.location().Logs)))
	case launch.Idle(s.Phase):
		if s.Saved < 0 && d.spec.HasProgram() {
			diags.AddWarning("The program starts over",
				fmt.Sprintf("It had saved no complete checkpoint when it was stopped%s.", atStep(s)))
		}
		return append(diags, r.resume(ctx, run, d, s)...)
	}
	return diags // it may have reached its end first
}

// resume starts an idle run again, with what is planned.
func (r *experimentResource) resume(ctx context.Context, run trainingRun, d *draft, s launch.State) (diags diag.Diagnostics) {
	if _, missing := r.settings.trainerFor(d); missing != nil {
		return diag.Diagnostics{missing}
	}
	if diags.Append(d.prepare(ctx)...); diags.HasError() {
		return diags
	}
	if (remains{s}).overrun(d.spec.Deadline) {
		diags.AddAttributeError(path.Root("deadline"), "The deadline has been used up",
			fmt.Sprintf("The run has run for %s. Raise deadline above that, or leave it out, and apply again.", durationText(s.Ran)))
		return diags
	}
	providers.CallFrom(ctx).Report(providers.Progress{Step: "resuming " + run.id, Percent: -1})
	if err := run.Resume(ctx, run.id, d.spec, d.code); err != nil {
		diags.AddError("Experiment could not be resumed", fmt.Sprintf("%s. Its checkpoints are unharmed: apply again.", err))
	}
	return diags
}

func (r *experimentResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state experimentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	grace := state.grace()
	limit, diags := state.Timeouts.Delete(ctx, state.removingTime()+grace)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp.Diagnostics.Append(remove(ctx, r.settings.run(&state), stoppingTime+grace)...)
}

// remove ends a run and removes what there is of it, or says what is left.
func remove(ctx context.Context, run trainingRun, patience time.Duration) (diags diag.Diagnostics) {
	providers.CallFrom(ctx).Report(providers.Progress{Step: "stopping " + run.id, Percent: -1})
	err := run.Stop(ctx, run.id, patience)
	left := new(launch.LeftError)
	switch {
	case errors.As(err, &left):
		diags.AddError("The experiment could not be stopped", fmt.Sprintf("%s. Destroy again; a longer timeouts.delete waits longer.", err))
		return diags
	case errors.Is(err, launch.ErrForeign):
		diags.AddError("The run's folder is not ours", fmt.Sprintf("%s. Nothing was removed. Move it away, then destroy again.", err))
		return diags
	case err != nil:
		diags.AddError("The experiment could not be stopped", fmt.Sprintf("%s. Nothing was removed; destroy again.", err))
		return diags
	}
	if err := run.Remove(ctx, run.id); err != nil {
		diags.AddError("The run could not be removed", fmt.Sprintf("%s. Destroy again.", err))
	}
	return diags
}

// removingTime is how long a destroy may take where nothing else is said. On a
// cluster that is more than the pods of a lost node are waited for.
func (m *experimentModel) removingTime() time.Duration {
	if m.Cluster.IsNull() {
		return time.Minute
	}
	return 3 * time.Minute
}

// stoppingTime is how long a run that is destroyed may take to end by itself.
const stoppingTime = 20 * time.Second
