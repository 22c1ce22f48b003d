package train

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/graph"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

func (r *experimentResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state experimentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if call := providers.CallFrom(ctx); call.Settling {
		r.settle(ctx, call.Operation, &state, resp)
		return
	}
	phase := spec.Phase(state.Status.ValueString())
	over := phase == spec.Succeeded
	run := r.settings.run(&state)
	s, err := run.Status(ctx, run.id)
	switch {
	case errors.Is(err, launch.ErrNoRun) && over:
		// The record outlives the files: their absence is no reason to train again.
		resp.Diagnostics.AddWarning("Files of a finished run are gone",
			fmt.Sprintf("%s is no longer there. The record of the run stays; its logs and its model are lost.", state.RunDir.ValueString()))
		return
	case errors.Is(err, launch.ErrNoRun):
		resp.State.RemoveResource(ctx)
		return
	case errors.Is(err, launch.ErrForeign):
		resp.Diagnostics.AddWarning("Run cannot be read", fmt.Sprintf("%s. The recorded values stay.", err))
		return
	case over || phase == spec.Failed:
		return
	case err != nil:
		resp.Diagnostics.AddWarning("State of the experiment is unreadable", fmt.Sprintf("%s. The recorded values stay.", err))
		return
	}
	if !state.Cluster.IsNull() { // the supervisor of a run on this machine helps itself
		resp.Diagnostics.Append(troubles(run.id, s)...)
	}
	if state.Model.IsNull() && state.ModelGraph.IsNull() && !state.hasProgram() { // imported: only where it lies is known
		of, err := run.Spec(ctx, run.id)
		if err != nil {
			resp.Diagnostics.AddError("Run cannot be imported", fmt.Sprintf("%s.", err))
			return
		}
		state.adopt(ctx, of)
	}
	if s.Hash != state.SpecHash.ValueString() {
		resp.Diagnostics.AddWarning("Run is not the recorded one", fmt.Sprintf("%s holds a run of %s. The recorded values stay.", run.location().Run, printable(s.Hash)))
		return
	}
	if s.Phase == phase && state.Wait.ValueBool() && !s.Phase.Final() {
		return // its numbers move all the time: that is no drift, and the next apply waits for the last ones
	}
	state.record(s.Status)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// troubles returns warnings for an unfinished run that cannot continue, or
// continues with fewer roles than planned.
func troubles(id string, s launch.State) (diags diag.Diagnostics) {
	if s.CannotContinue != "" {
		diags.AddWarning("The experiment does not go on", fmt.Sprintf("%s: %s", id, sentence(s.CannotContinue)))
	}
	if len(s.Warnings) > 0 {
		diags.AddWarning("The experiment is at risk", fmt.Sprintf("%s: %s", id, sentence(strings.Join(s.Warnings, ". "))))
	}
	if waiting := s.Waiting(); len(waiting) > 0 && !s.Phase.Final() {
		text := strings.Join(waiting[:min(len(waiting), maxWaiting)], "\n")
		if more := len(waiting) - maxWaiting; more > 0 {
			text += fmt.Sprintf("\nand %d more", more)
		}
		diags.AddWarning("Not all of the experiment runs", fmt.Sprintf("Of %s, these do not run:\n%s", id, printable(text)))
	}
	return diags
}

// maxWaiting is how many roles a warning names.
const maxWaiting = 8

// settle answers whether an interrupted create happened. A run that was never
// let go is removed: it has trained nothing, and its supervisor ends by itself.
func (r *experimentResource) settle(ctx context.Context, operation string, state *experimentModel, resp *resource.ReadResponse) {
	l := r.settings.launcher(state)
	id, err := l.Settle(ctx, operation)
	if errors.Is(err, launch.ErrNoRun) {
		resp.State.RemoveResource(ctx)
		return
	}
	var of spec.Spec
	if err == nil {
		of, err = l.Spec(ctx, id)
	}
	var s launch.State
	if err == nil {
		s, err = l.Status(ctx, id)
	}
	if err != nil {
		resp.Diagnostics.AddError("Interrupted launch cannot be settled", fmt.Sprintf("%s.", err))
		return
	}
	d := &draft{spec: of}
	state.fill(ctx, d)
	state.identify(trainingRun{l, id}, &of)
	r.settings.identifyCluster(ctx, state)
	state.record(s.Status)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// ImportState takes a run's id, or its folder.
func (r *experimentResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	run, err := r.settings.locate(req.ID)
	var of spec.Spec
	if err == nil {
		of, err = run.Spec(ctx, run.id)
	}
	if err != nil {
		resp.Diagnostics.AddError("There is no such run", fmt.Sprintf("Give the id of a run in %s, or the path of a run's folder: %s.", r.settings.runs, err))
		return
	}
	at := run.location()
	hash := of.Hash()
	for name, v := range map[string]string{
		"id": run.id, "runs_dir": at.Place, "run_dir": at.Run, "logs_dir": at.Logs, "metrics_file": at.Metrics,
		"spec_hash": hash, "dataset_hash": of.Dataset.Hash, "code_hash": of.Program.Code, "init_hash": of.InitFrom.Hash,
	} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), optionalText(v))...)
	}
}

// null is the null of a type.
func null(ctx context.Context, ty attr.Type) attr.Value {
	v, err := ty.ValueFromTerraform(ctx, tftypes.NewValue(ty.TerraformType(ctx), nil))
	if err != nil {
		panic(fmt.Sprintf("train: no null of %s: %v", ty, err)) // every type has one
	}
	return v
}

// adopt takes the arguments from a spec, as if somebody had written all of
// them.
func (m *experimentModel) adopt(ctx context.Context, of spec.Spec) {
	if of.Dataset.Path != "" {
		m.Dataset = types.StringValue(uri(of.Dataset.Path))
	}
	m.adoptInitFrom(of.InitFrom)
	if of.Deadline != 0 {
		text, _ := of.Deadline.MarshalText() // never fails
		m.Deadline = types.StringValue(string(text))
	}
	blocks := []string{"worker", "evaluation", "checkpoint"}
	if of.HasProgram() {
		blocks = []string{"worker", programBlock}
	}
	if of.ParameterServer.Replicas > 0 {
		blocks = append(blocks, "parameter_server")
	}
	for _, in := range blocks {
		o, values := m.object(in), make(map[string]attr.Value)
		for name, ty := range o.AttributeTypes(ctx) {
			values[name] = null(ctx, ty)
		}
		*o = types.ObjectValueMust(o.AttributeTypes(ctx), values)
	}
	m.ModelSummary = summaryNull
	if d, err := model.Describe([]byte(of.Graph)); err == nil {
		m.ModelGraph = graph.Value(d)
	}
	m.fill(ctx, &draft{spec: of})
}
