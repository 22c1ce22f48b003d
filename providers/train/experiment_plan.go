package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/spec"
)

func (r *experimentResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config experimentModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	d, diags := config.draft()
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(d.check()...)
	if !config.Cluster.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("cluster"), "Clusters come with a later version",
			"This version trains on the machine that it runs on. Leave cluster out to do that.")
	}
	if v, ok := config.Worker.Attributes()["priority"].(types.String); ok && !v.IsNull() && !v.IsUnknown() &&
		!slices.Contains([]string{"low", "normal", "high"}, v.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("worker").AtName("priority"), "Unknown value",
			fmt.Sprintf("priority must be one of low, normal, high; it is %q.", v.ValueString()))
	}
}

// ModifyPlan says what a change costs the run: the table in runtime/spec
// decides, and how the run stands now.
func (r *experimentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.settings == nil {
		return
	}
	if req.Plan.Raw.IsNull() {
		planDestroy(ctx, req, resp)
		return
	}
	var plan, prior experimentModel
	// What is planned follows from the configuration alone: the proposed state
	// would keep a value that somebody has taken out of it.
	resp.Diagnostics.Append(req.Config.Get(ctx, &plan)...)
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	d, diags := plan.draft()
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	plan.fill(ctx, d)
	p := &planning{settings: r.settings, plan: &plan, draft: d, resp: resp, call: providers.CallFrom(ctx)}
	p.dataset(&prior, exists)
	if resp.Diagnostics.HasError() {
		return
	}
	if exists {
		p.change(ctx, &prior)
	} else {
		p.create(ctx)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planDestroy says what a destroy interrupts.
func planDestroy(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior experimentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if s := spec.Phase(prior.Status.ValueString()); s == spec.Running || s == spec.Pending {
		note(ctx, resp, path.Empty(), providers.NoteDisruption, "stops the run that is training now; what it has learned so far is lost")
	}
}

// planning is one call of ModifyPlan.
type planning struct {
	settings *settings
	plan     *experimentModel
	draft    *draft
	resp     *resource.ModifyPlanResponse
	call     *providers.Call
	records  int64 // of the training set, where known
}

// dataset finds out which records the dataset is. A folder that train_dataset
// is yet to make is named by their hash.
func (p *planning) dataset(prior *experimentModel, exists bool) {
	d := p.draft
	p.plan.DatasetHash = types.StringUnknown()
	if d.unknown["dataset.path"] {
		return
	}
	m, err := readManifest(d.spec.Dataset.Path)
	switch {
	case err == nil:
		d.spec.Dataset.Hash, p.records = m.Hash, m.Train.Records
	case !errors.Is(err, fs.ErrNotExist):
		p.resp.Diagnostics.AddAttributeError(path.Root("dataset"), "Dataset cannot be used",
			fmt.Sprintf("The folder %s does not hold a prepared dataset: %s.", d.spec.Dataset.Path, err))
		return
	case exists && prior.Dataset.Equal(p.plan.Dataset):
		d.spec.Dataset.Hash = prior.DatasetHash.ValueString() // the record outlives the data
	default:
		hash := "sha256:" + filepath.Base(d.spec.Dataset.Path)
		if hashDigits(hash) == "" {
			p.resp.Diagnostics.AddAttributeError(path.Root("dataset"), "There is no such dataset",
				fmt.Sprintf("Nothing is prepared at %s. Declare a train_dataset and give its uri.", d.spec.Dataset.Path))
			return
		}
		d.spec.Dataset.Hash = hash
	}
	p.plan.DatasetHash = types.StringValue(d.spec.Dataset.Hash)
}

func (p *planning) create(ctx context.Context) {
	p.plan.forget()
	if p.settings.unknown {
		p.plan.RunsDir = types.StringUnknown()
	} else {
		p.plan.RunsDir = types.StringValue(string(p.settings.runs))
		p.capable(ctx)
	}
	if p.draft.runKnown() {
		p.plan.SpecHash = types.StringValue(p.draft.spec.Hash())
		p.forecast()
	}
}

// capable makes sure that there is a trainer, and that it can use what is
// asked for.
func (p *planning) capable(ctx context.Context) {
	t, missing := p.settings.trainer()
	if missing != nil {
		p.resp.Diagnostics.Append(missing)
		return
	}
	can, err := t.abilities(ctx)
	if err != nil {
		p.resp.Diagnostics.AddError("The trainer cannot be asked", fmt.Sprintf("%s: %s.", t, err))
		return
	}
	if s := &p.draft.spec; !p.draft.unknown["model"] && !slices.Contains(can.Models, s.Model) {
		p.resp.Diagnostics.AddAttributeError(path.Root("model"), "There is no such model",
			fmt.Sprintf("The trainer has %s; model is %q.", strings.Join(can.Models, ", "), s.Model))
	}
	if p.draft.spec.Worker.GPUs > 0 && !slices.Contains(can.Engines, spec.EngineXLA) {
		p.resp.Diagnostics.AddAttributeError(path.Root("worker").AtName("gpus"), "This trainer has no GPU engine",
			fmt.Sprintf("%s was built with: %s. Set gpus = 0 to train on the CPU, or install a trainer with the %s engine.",
				t, strings.Join(can.Engines, ", "), spec.EngineXLA))
	}
}

// forecast says how much work the run is.
func (p *planning) forecast() {
	s := &p.draft.spec
	if p.records == 0 {
		return
	}
	batch := int64(s.GlobalBatch(s.Worker.Replicas))
	updates := int64(s.Epochs) * ((p.records + batch - 1) / batch)
	if s.MaxSteps > 0 {
		updates = min(updates, int64(s.MaxSteps))
	}
	p.call.AddNote(providers.Note{Kind: providers.NoteForecast, Number: float64(updates), Text: fmt.Sprintf(
		"trains %d × %s records: %s updates of %s", s.Epochs, thousands(p.records), thousands(updates), thousands(batch))})
}

// change plans for a run that exists.
func (p *planning) change(ctx context.Context, prior *experimentModel) {
	if p.draft.spec.Worker.GPUs > 0 && !p.settings.unknown {
		// Not even as a record: it would say that GPUs did what the CPU has done.
		if p.capable(ctx); p.resp.Diagnostics.HasError() {
			return
		}
	}
	before, diags := prior.draft()
	p.resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	changes := p.changes(before)
	phase := spec.Phase(prior.Status.ValueString())
	replace := p.newRun(ctx, changes)
	if phase == spec.Failed {
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: the last one failed")
	}
	idle := p.idle(prior, phase)
	if idle && !resumable(prior) {
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: the last one did not reach its end and left no checkpoint")
	}
	if len(replace) > 0 {
		p.resp.RequiresReplace.Append(replace...)
		p.create(ctx)
		return
	}
	p.plan.keep(prior)
	if phase == spec.Succeeded {
		for _, c := range changes {
			note(ctx, p.resp, pathOf(c.Field), providers.NoteChange, "only recorded: the run has ended")
		}
		return
	}
	p.unfinished(ctx, changes, idle)
}

// unfinished plans for a run that is not over and stays the same run.
func (p *planning) unfinished(ctx context.Context, changes []spec.Change, idle bool) {
	for _, c := range changes {
		switch {
		case c.Cost == spec.Resume && !idle:
			p.resp.Diagnostics.AddAttributeError(pathOf(c.Field), "A running experiment cannot change this",
				fmt.Sprintf("%s needs the run to stop at a checkpoint and go on, which comes with a later version. "+
					"Wait for the run to end, or start over with -replace.", c.Field))
		case idle:
			note(ctx, p.resp, pathOf(c.Field), providers.NoteChange, "resume: goes on from its checkpoint with the new value")
		default:
			note(ctx, p.resp, pathOf(c.Field), providers.NoteChange, live(c))
		}
	}
	switch {
	case idle:
		p.capable(ctx)
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "resume: nobody runs it any more; it goes on from its newest checkpoint")
	case p.plan.Wait.ValueBool() || p.plan.Wait.IsUnknown():
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "live: attaches to the run and waits for its end")
	default:
		return // the run goes on by itself; nobody asked to wait
	}
	p.plan.Status, p.plan.Metrics = types.StringUnknown(), types.MapUnknown(types.NumberType)
	p.plan.StartedAt, p.plan.FinishedAt = types.StringUnknown(), types.StringUnknown()
}

// live words a change that the running processes take on.
func live(c spec.Change) string {
	if c.Field == "worker.replicas" {
		return fmt.Sprintf("live: rescales the running experiment from %v to %v workers", c.Old, c.New)
	}
	return "live: reaches the running experiment"
}

// changes compares with the prior spec. A value that is not known yet counts
// as changed.
func (p *planning) changes(before *draft) []spec.Change {
	changes := slices.DeleteFunc(spec.Compare(before.spec, p.draft.spec), func(c spec.Change) bool {
		return p.draft.unknown[c.Field]
	})
	for _, field := range spec.Fields() {
		if p.draft.unknown[field] {
			changes = append(changes, spec.Change{Field: field, Cost: spec.CostOf(field), Old: "a known value", New: "one known after apply"})
		}
	}
	return changes
}

// newRun lists where changes stand that mean a new run.
func (p *planning) newRun(ctx context.Context, changes []spec.Change) path.Paths {
	var at path.Paths
	for _, c := range changes {
		if c.Cost != spec.NewRun {
			continue
		}
		where := pathOf(c.Field)
		if c.Field == "dataset.hash" && !p.draft.unknown[c.Field] {
			where = path.Root("dataset_hash") // the URI may well be the same
		}
		at.Append(where)
		note(ctx, p.resp, where, providers.NoteChange, "new run: what was trained is no longer what is asked for")
	}
	return at
}

// idle reports whether the run is unfinished and nobody runs it: it was lost,
// or somebody stopped it, as a machine does that shuts down in good order.
func (p *planning) idle(prior *experimentModel, phase spec.Phase) bool {
	switch phase {
	case spec.Lost, spec.Stopped:
		return true
	case spec.Running, spec.Pending:
		f, err := prior.place().Find(prior.ID.ValueString())
		if err != nil {
			return false
		}
		s, err := standing(f)
		return err == nil && idle(s.Phase)
	}
	return false
}
