package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

func (r *experimentResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config experimentModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if resp.Diagnostics.Append(config.checkSource()...); resp.Diagnostics.HasError() {
		return
	}
	if resp.Diagnostics.Append(config.checkProgram()...); resp.Diagnostics.HasError() {
		return
	}
	d, diags := config.draft()
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(d.check()...)
	resp.Diagnostics.Append(config.checkPlacement(ctx)...)
	if !config.Cluster.IsNull() && !config.InitFrom.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("init_from"), "init_from works on this machine only",
			"Pods do not see its file. Leave init_from out, or train without cluster.")
	}
	if v, ok := config.Worker.Attributes()["priority"].(types.String); ok && !v.IsNull() && !v.IsUnknown() &&
		!slices.Contains([]string{"low", "normal", "high"}, v.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("worker").AtName("priority"), "Unknown value",
			fmt.Sprintf("priority must be one of low, normal, high; it is %q.", v.ValueString()))
	}
}

// ModifyPlan computes the cost of a change from the table in runtime/spec and
// the current status of the run.
func (r *experimentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.settings == nil {
		return
	}
	if req.Plan.Raw.IsNull() {
		r.planDestroy(ctx, req, resp)
		return
	}
	call := providers.CallFrom(ctx)
	r.settings.asking.forget(call.Address)
	var plan, prior experimentModel
	// The plan follows from the configuration only: the proposed state would
	// keep a value that was removed from it.
	resp.Diagnostics.Append(req.Config.Get(ctx, &plan)...)
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	d, diags := plan.draft()
	if exists && plan.keepStrategy(d, &prior) {
		d, diags = plan.draft()
	}
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	plan.fill(ctx, d)
	resp.Diagnostics.Append(plan.place(r.settings)...)
	if resp.Diagnostics.HasError() {
		return
	}
	p := &planning{settings: r.settings, plan: &plan, draft: d, resp: resp, call: call}
	p.dataset(&prior, exists)
	p.initFrom(ctx, &prior, exists)
	p.code(ctx)
	p.model()
	if resp.Diagnostics.HasError() {
		return
	}
	if exists {
		p.list(ctx, req.Private, &prior)
	}
	if exists {
		p.change(ctx, &prior)
	} else {
		p.create(ctx)
	}
	if resp.Private != nil {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, renewKey, strconv.AppendBool(nil, p.renews))...)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// renewKey is what a plan says to the apply: whether the run is to be renewed. An
// apply that finds a reason for it which the plan did not have leaves the run alone.
const renewKey = "renew"

func renewPlanned(ctx context.Context, p privateGetter) bool {
	said, diags := p.GetKey(ctx, renewKey)
	return !diags.HasError() && string(said) == "true"
}

// planDestroy notes the running work that a destroy interrupts and the data
// that it deletes.
func (r *experimentResource) planDestroy(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior experimentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if what := r.settings.loss(ctx, &prior); what != "" {
		note(ctx, resp, path.Empty(), providers.NoteDisruption, what)
	}
}

// loss describes the data that a removal of the recorded run deletes.
func (s *settings) loss(ctx context.Context, m *experimentModel) string {
	phase := spec.Phase(m.Status.ValueString())
	if phase == spec.Succeeded {
		return ""
	}
	r, err := s.remaining(ctx, m)
	if err != nil {
		// As it was recorded.
		r = remains{launch.State{Status: spec.Status{Phase: phase, Started: time.Unix(1, 0)}, Saved: -1, Program: m.hasProgram()}}
	}
	return r.loss()
}

// remaining asks what is left of the recorded run.
func (s *settings) remaining(ctx context.Context, m *experimentModel) (remains, error) {
	run := s.run(m)
	is, err := run.Status(ctx, run.id)
	return remains{is}, err
}

// planning is one call of ModifyPlan.
type planning struct {
	settings   *settings
	plan       *experimentModel
	draft      *draft
	resp       *resource.ModifyPlanResponse
	call       *providers.Call
	records    int64  // of the training set, where known
	parameters int    // of a model as data, where known
	checked    bool   // that the trainer is capable
	renews     bool   // the run is stopped at a checkpoint and goes on, for launch.State.Renew
	partial    bool   // a cluster has taken on a part of an earlier change
	files      string // of the code that have changed, for people
}

// dataset finds out which records the dataset is. A folder that train_dataset
// is yet to make is named by their hash.
func (p *planning) dataset(prior *experimentModel, exists bool) {
	d := p.draft
	p.plan.DatasetHash = types.StringUnknown()
	if d.unknown["dataset.path"] {
		return
	}
	if d.spec.Dataset.Path == "" { // of a program
		p.plan.DatasetHash = types.StringNull()
		return
	}
	m, err := readManifest(d.spec.Dataset.Path)
	switch {
	case err == nil:
		d.spec.Dataset.Hash, p.records = m.Hash, m.Train.Records
		p.resp.Diagnostics.Append(d.checkRecords(m)...)
	case d.spec.HasProgram() && isFolder(d.spec.Dataset.Path): // of the user's own
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
		m = p.settings.inspectedAs(hash)
		p.records = m.Train.Records
		p.resp.Diagnostics.Append(d.checkRecords(m)...)
	}
	p.plan.DatasetHash = optionalText(d.spec.Dataset.Hash)
}

func (p *planning) create(ctx context.Context) {
	p.plan.forget()
	p.planGPUs()
	p.plan.ClusterID = types.StringNull()
	if !p.plan.Cluster.IsNull() {
		p.plan.ClusterID = types.StringUnknown()
	}
	p.room()
	if p.settings.unknown || p.plan.Namespace.IsUnknown() {
		p.plan.RunsDir = types.StringUnknown()
		if !p.settings.unknown {
			p.capable(ctx)
		}
	} else {
		p.plan.RunsDir = types.StringValue(p.settings.launcher(p.plan).Location("").Place)
		p.capable(ctx)
		p.planFit(ctx)
	}
	if p.draft.runKnown() && !p.settings.unknown {
		p.plan.SpecHash = types.StringValue(p.draft.spec.Hash())
		p.forecast()
	}
}

// forecast says how much work the run is.
func (p *planning) forecast() {
	s := &p.draft.spec
	if s.EvaluatesOnly() {
		p.call.AddNote(providers.Note{Kind: providers.NoteForecast, Text: "evaluates only: no update"})
		return
	}
	if p.records == 0 || s.HasProgram() {
		return
	}
	updates, batch := s.Updates(p.records), s.GlobalBatch(s.Worker.Replicas)
	text := fmt.Sprintf("trains %d × %s records: %s updates of %s",
		s.Epochs, thousands(p.records), thousands(updates), thousands(int64(batch)))
	if n := p.countParameters(); n > 0 {
		text += fmt.Sprintf("; the model has %s parameters", thousands(int64(n)))
	}
	p.call.AddNote(providers.Note{Kind: providers.NoteForecast, Number: float64(updates), Text: text})
}

// change plans for a run that exists.
func (p *planning) change(ctx context.Context, prior *experimentModel) {
	before, diags := prior.draft()
	p.resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	changes := append(p.changes(before), p.layers(ctx, before, prior)...)
	if usesGPUs(&p.draft.spec) && !p.settings.unknown && slices.ContainsFunc(changes, needsGPUs) {
		// Not even as a record: it would say that GPUs did what the CPU has done.
		if p.capable(ctx); p.resp.Diagnostics.HasError() {
			return
		}
	}
	changes = append(changes, moves(p.plan, prior)...)
	phase := spec.Phase(prior.Status.ValueString())
	replace := append(p.newRun(ctx, changes), p.otherPlace(ctx, prior)...)
	left, err := p.settings.remaining(ctx, prior)
	unfinished := phase != spec.Succeeded && phase != spec.Failed
	idle := unfinished && err == nil && launch.Idle(left.Phase)
	if unfinished && err == nil && !idle {
		changes = append(changes, p.findPartial(ctx, prior, changes)...)
	}
	switch {
	case phase == spec.Failed:
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: the last one failed")
	case idle && left.unusable(p.settings.version):
		replace = append(replace, path.Root("status"))
		why := "new run: none of its checkpoints can be used: " + printable(left.Message)
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, why)
	case err == nil && p.perishes(prior, changes, left):
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: the old one's checkpoints go with its coordinator's pod; coordinator.storage or checkpoint.place would keep them")
	case unfinished && p.strays(prior):
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: what the old one has saved stays where it is, and a run would not find it in another place")
	case idle && !left.resumable() && left.CheckpointsLost && left.CannotContinue != "":
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: it starts over, for "+printable(left.CannotContinue)+"; checkpoint.place would have kept what it had saved")
	case idle && !left.resumable() && left.CheckpointsLost:
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: it starts over, for what the old one had saved went with its coordinator's pod; coordinator.storage or checkpoint.place would have kept it")
	case idle && !left.resumable():
		replace = append(replace, path.Root("status"))
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "new run: the last one did not reach its end and left no checkpoint")
	}
	if len(replace) > 0 {
		if what := p.settings.loss(ctx, prior); what != "" {
			note(ctx, p.resp, path.Empty(), providers.NoteDisruption, what)
		}
		p.resp.RequiresReplace.Append(replace...)
		p.create(ctx)
		return
	}
	p.plan.keep(prior)
	if phase == spec.Succeeded {
		for _, c := range changes {
			p.noteChange(ctx, c, "only recorded: the run has ended")
		}
		return
	}
	p.unfinished(ctx, changes, idle, left)
}

// findPartial returns changes to a run on a cluster that took on a part of another
// change, which the configuration no longer has.
func (p *planning) findPartial(ctx context.Context, prior *experimentModel, changes []spec.Change) (more []spec.Change) {
	if prior.Cluster.IsNull() { // a supervisor on this machine takes on all of a change, or nothing
		return nil
	}
	run := p.settings.run(prior)
	is, err := run.Spec(ctx, run.id)
	if err != nil {
		return nil
	}
	for _, c := range liveChanges(is, p.draft.spec) {
		known := func(other spec.Change) bool { return other.Field == c.Field }
		if !p.draft.unknown[c.Field] && !slices.ContainsFunc(changes, known) {
			more = append(more, c)
		}
	}
	p.partial = len(more) > 0
	return more
}

// liveChanges returns the changes that reach the processes of a run.
func liveChanges(is, want spec.Spec) []spec.Change {
	return slices.DeleteFunc(spec.Compare(is, want), func(c spec.Change) bool { return c.Cost != spec.Live })
}

// unfinished plans for a run that is not over and stays the same run.
func (p *planning) unfinished(ctx context.Context, changes []spec.Change, idle bool, left remains) {
	if idle || len(changes) > 0 {
		p.room()
	}
	resumes := idle || left.RestartReason != ""
	for _, c := range changes {
		switch {
		case idle:
			p.noteChange(ctx, c, "resume: continues from its checkpoint with the new value")
		case c.Cost == spec.Resume:
			resumes = true
			p.noteChange(ctx, c, "resume: stops at a checkpoint and continues with the new value")
		default:
			p.noteChange(ctx, c, takenOn(c))
		}
		if spec.CostOf(c.Field) == spec.NewRun { // which on_change makes a resume
			p.plan.SpecHash = types.StringUnknown()
		}
	}
	if resumes {
		p.capable(ctx)
		p.startsOver(ctx, idle, left)
	}
	switch {
	case idle && left.overrun(p.draft.spec.Deadline):
		note(ctx, p.resp, path.Root("deadline"), providers.NoteChange, fmt.Sprintf("resume: it has run for %s, which is all of its deadline; raise it to continue", durationText(left.Ran)))
	case idle:
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "resume: "+idleness(left)+"; "+left.resumePoint())
	case left.RestartReason != "":
		p.renews = true
		note(ctx, p.resp, path.Root("status"), providers.NoteChange,
			"resume: "+printable(left.RestartReason)+"; stops at a checkpoint and continues")
	case len(left.HeldRoles) > 0:
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, fmt.Sprintf("live: lets go of %s, whose place a node that does not answer holds", strings.Join(left.HeldRoles, ", ")))
	case p.plan.Wait.ValueBool() || p.plan.Wait.IsUnknown():
		note(ctx, p.resp, path.Root("status"), providers.NoteChange, "live: attaches to the run and waits for its end")
	case resumes, p.partial:
	default:
		return // the run goes on by itself; nobody asked to wait
	}
	p.plan.Status, p.plan.Metrics = types.StringUnknown(), types.MapUnknown(types.NumberType)
	p.plan.StartedAt, p.plan.FinishedAt = types.StringUnknown(), types.StringUnknown()
	p.planGPUs()
}

// idleness says why a run does not go on by itself.
func idleness(left remains) string {
	if left.CannotContinue != "" {
		return printable(left.CannotContinue)
	}
	return "no process runs it"
}

// durationText words a number of seconds.
func durationText(seconds float64) string {
	return time.Duration(min(seconds, 1e9) * float64(time.Second)).Round(time.Second).String()
}

// takenOn words a change that the running processes take on.
func takenOn(c spec.Change) string {
	if c.Field == "worker.replicas" {
		return fmt.Sprintf("live: rescales the running experiment from %v to %v workers", c.Old, c.New)
	}
	return "live: reaches the running experiment"
}

// changes compares with the prior spec. A value that is not known yet counts
// as changed.
func (p *planning) changes(before *draft) []spec.Change {
	changes := slices.DeleteFunc(p.draft.compare(before.spec), func(c spec.Change) bool {
		implied := c.Field == "compute_type" && before.spec.ComputeType == p.draft.spec.ComputeType // by worker.gpus
		return p.draft.unknown[c.Field] || implied || c.Field == "layers"                           // which nobody writes: see layers
	})
	for _, field := range spec.Fields() {
		if p.draft.unknown[field] {
			changes = append(changes, spec.Change{Field: field, Cost: p.draft.costOf(field), Old: "a known value", New: "one known after apply"})
		}
	}
	return changes
}

// layers reports whether the model is another one by now under the same name.
// The recorded hash tells: it covers the layers, but for runs of the first
// version.
func (p *planning) layers(ctx context.Context, before *draft, prior *experimentModel) []spec.Change {
	was, is := before.spec, before.spec
	was.Layers = ""
	recorded := prior.SpecHash.ValueString()
	if p.settings.unknown || before.spec.HasProgram() || recorded == "" || recorded == was.Hash() {
		return nil
	}
	t, missing := p.settings.trainerFor(p.draft)
	if missing != nil {
		return nil // whoever needs it says so
	}
	can, err := t.abilities(ctx)
	if is.Layers = can.Layers[is.Model]; err != nil || is.Layers == "" || is.Hash() == recorded {
		return nil
	}
	return []spec.Change{{Field: "layers", Cost: spec.NewRun, Old: "other layers", New: is.Layers}}
}

// newRun lists where changes stand that mean a new run.
func (p *planning) newRun(ctx context.Context, changes []spec.Change) path.Paths {
	var at path.Paths
	for _, c := range changes {
		if c.Cost != spec.NewRun {
			continue
		}
		where := pathOf(c.Field)
		why := "new run: this changes the result of the training"
		switch c.Field {
		case "dataset.hash":
			if !p.draft.unknown[c.Field] {
				where = path.Root("dataset_hash") // the URI may well be the same
			}
		case "init_from.hash":
			if !p.draft.unknown[c.Field] {
				where = path.Root("init_hash") // the path may well be the same
			}
		case "layers":
			why = "new run: this trainer's model of that name has other layers"
		case "program.code":
			at.Append(path.Root("code_hash")) // the folder may well be the same
			p.noteChange(ctx, c, "new run: the code has changed")
			continue
		}
		at.Append(where)
		note(ctx, p.resp, where, providers.NoteChange, why)
	}
	return at
}
