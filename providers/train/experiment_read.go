package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch/local"
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
	f, err := state.place().Find(state.ID.ValueString())
	switch {
	case errors.Is(err, fs.ErrNotExist) && over:
		// The record outlives the files: their absence is no reason to train again.
		resp.Diagnostics.AddWarning("Files of a finished run are gone",
			fmt.Sprintf("%s is no longer there. The record of the run stays; its logs and its model are lost.", state.RunDir.ValueString()))
		return
	case errors.Is(err, fs.ErrNotExist):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		resp.Diagnostics.AddWarning("Run cannot be looked at", fmt.Sprintf("%s. It is taken to be as it was.", err))
		return
	case over || phase == spec.Failed:
		return
	}
	s, err := standing(f)
	if err != nil {
		resp.Diagnostics.AddWarning("State of the experiment is unreadable", fmt.Sprintf("%s. It is taken to be as it was.", err))
		return
	}
	if state.Model.IsNull() { // imported: only where it lies is known
		of, err := f.ReadSpec()
		if err != nil {
			resp.Diagnostics.AddError("Run cannot be imported", fmt.Sprintf("%s.", err))
			return
		}
		state.adopt(ctx, of)
	}
	if s.Hash != state.SpecHash.ValueString() {
		resp.Diagnostics.AddWarning("Run is not the recorded one", fmt.Sprintf("%s holds a run of %s. It is taken to be as it was.", f, printable(s.Hash)))
		return
	}
	if s.Phase == phase && state.Wait.ValueBool() && !s.Phase.Final() {
		return // its numbers move all the time: that is no drift, and the next apply waits for the last ones
	}
	state.record(s)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// settle answers whether an interrupted create happened. A run that was never
// let go is removed: it has trained nothing, and its supervisor ends by itself.
func (r *experimentResource) settle(ctx context.Context, operation string, state *experimentModel, resp *resource.ReadResponse) {
	place := r.settings.runs
	if dir := state.RunsDir.ValueString(); dir != "" {
		place = local.Place(dir)
	}
	if operation == "" {
		resp.State.RemoveResource(ctx)
		return
	}
	id := local.ID(operation)
	f, err := place.Settle(ctx, id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, local.ErrNotOurs) {
		resp.State.RemoveResource(ctx)
		return
	}
	var of spec.Spec
	if err == nil {
		of, err = f.ReadSpec()
	}
	var s spec.Status
	if err == nil {
		s, err = standing(f)
	}
	if err != nil {
		resp.Diagnostics.AddError("Interrupted launch cannot be settled", fmt.Sprintf("%s. Look at %s, or remove it.", err, place.Folder(id)))
		return
	}
	d := &draft{spec: of}
	state.fill(ctx, d)
	state.identify(place, id, &of)
	state.record(s)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// ImportState takes a run's id, or its folder.
func (r *experimentResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	place, id := r.settings.runs, req.ID
	if !local.ValidID(id) {
		full, err := expandHome(req.ID)
		if err == nil {
			full, err = filepath.Abs(full)
		}
		if err != nil {
			resp.Diagnostics.AddError("There is no such run", fmt.Sprintf("%s.", err))
			return
		}
		place, id = local.Place(filepath.Dir(full)), filepath.Base(full)
	}
	f, err := place.Find(id)
	if err != nil {
		resp.Diagnostics.AddError("There is no such run", fmt.Sprintf("Give the id of a run in %s, or the path of a run's folder: %s.", r.settings.runs, err))
		return
	}
	of, err := f.ReadSpec()
	if err != nil {
		resp.Diagnostics.AddError("Run cannot be imported", fmt.Sprintf("%s.", err))
		return
	}
	hash := of.Hash()
	for name, v := range map[string]string{
		"id": id, "runs_dir": string(place), "run_dir": string(f), "logs_dir": f.Logs(), "metrics_file": f.Metrics(),
		"spec_hash": hash, "dataset_hash": of.Dataset.Hash,
	} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), types.StringValue(v))...)
	}
}

// adopt takes the arguments from a spec, as if somebody had written all of
// them.
func (m *experimentModel) adopt(ctx context.Context, of spec.Spec) {
	m.Dataset = types.StringValue(uri(of.Dataset.Path))
	if of.Deadline != 0 {
		text, _ := of.Deadline.MarshalText() // never fails
		m.Deadline = types.StringValue(string(text))
	}
	for _, in := range []string{"parameter_server", "worker", "evaluation", "checkpoint"} {
		o, values := m.object(in), make(map[string]attr.Value)
		for name, ty := range o.AttributeTypes(ctx) {
			values[name] = types.NumberNull()
			if ty == types.StringType {
				values[name] = types.StringNull()
			}
		}
		*o = types.ObjectValueMust(o.AttributeTypes(ctx), values)
	}
	m.fill(ctx, &draft{spec: of})
}
