package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/spec"
)

// noLimit stands for a timeout that was not given.
const noLimit = 100 * 365 * 24 * time.Hour

func (r *datasetResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan datasetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.Timeouts.Create(ctx, noLimit)
	resp.Diagnostics.Append(diags...)
	from, _, diags := plan.origin()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// Taken before the records are: a change in between is seen next time.
	print, err := fingerprintOf(from)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("path"), "Dataset cannot be read", describeError(from, err))
		return
	}
	hash := plan.Hash.ValueString()
	if hash == "" { // an engine that does not plan again once all is known
		m, diags := r.inspect(ctx, from, print, path.Root("path"))
		resp.Diagnostics.Append(diags...)
		if diags.HasError() {
			return
		}
		hash = m.Hash
	}
	operation := providers.CallFrom(ctx).Operation
	id := datasetID(operation)
	m, failed := r.obtain(ctx, id, operation, hash, from)
	if failed != nil {
		resp.Diagnostics.Append(failed)
		return
	}
	plan.ID = types.StringValue(id)
	plan.DatasetsDir = types.StringValue(string(r.settings.datasets))
	plan.describe(r.settings.datasets, m)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(writeSource(ctx, resp.Private, source{print, m.Hash})...)
}

// obtain makes id an owner of the dataset, preparing it unless it is there.
func (r *datasetResource) obtain(ctx context.Context, id, operation, hash string, from spec.Origin) (manifest, diag.Diagnostic) {
	call := providers.CallFrom(ctx)
	s := r.settings.datasets
	m, err := s.share(ctx, id, operation, hash)
	if err == nil {
		call.Report(providers.Progress{Step: "already prepared", Percent: 100})
		return m, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
		return manifest{}, diag.NewErrorDiagnostic("Dataset cannot be stored", err.Error()+".")
	}
	t, missing := r.settings.trainer()
	if missing != nil {
		return manifest{}, missing
	}
	call.Report(providers.Progress{Step: "preparing " + from.Format, Percent: -1})
	m, err = s.add(ctx, id, operation, hash, func(folder string) (manifest, error) {
		return t.prepare(ctx, from, folder, func(done, total int64) {
			p := providers.Progress{Step: fmt.Sprintf("preparing %s, %s of %s records", from.Format, thousands(done), thousands(total)), Percent: -1}
			if total > 0 {
				p.Percent = min(100, 100*float64(done)/float64(total))
			}
			call.Report(p)
		})
	})
	switch {
	case errors.Is(err, errChanged):
		return manifest{}, diag.NewAttributeErrorDiagnostic(path.Root("path"), "Dataset changed since the plan", "The files have changed since the plan. Plan again.")
	case errors.Is(err, context.DeadlineExceeded):
		return manifest{}, diag.NewErrorDiagnostic("Preparing the dataset took too long", "It was given up after timeouts.create; nothing is left of it.")
	case errors.Is(err, context.Canceled):
		return manifest{}, diag.NewErrorDiagnostic("Preparing the dataset was interrupted", "Nothing is left of it. Apply again.")
	case err != nil:
		return manifest{}, unusable(from, path.Root("path"), err)
	}
	return m, nil
}

func (r *datasetResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state datasetModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if call := providers.CallFrom(ctx); call.Settling {
		r.settle(ctx, call.Operation, &state, resp)
		return
	}
	s := store(state.DatasetsDir.ValueString())
	if _, there := s.hasDataset(state.ID.ValueString(), state.Hash.ValueString()); !there {
		resp.State.RemoveResource(ctx)
		return
	}
	r.rehash(ctx, &state, req, resp)
}

// rehash notes that files which look different still hold the same records, so
// that they are not read again at every plan.
func (r *datasetResource) rehash(ctx context.Context, state *datasetModel, req resource.ReadRequest, resp *resource.ReadResponse) {
	from, known, diags := state.origin()
	if !known || diags.HasError() || r.settings == nil || req.Private == nil {
		return
	}
	before := readSource(ctx, req.Private)
	print, err := fingerprintOf(from)
	if err != nil || before.Fingerprint == print {
		return
	}
	m, diags := r.inspect(ctx, from, print, path.Root("path"))
	if diags.HasError() || m.Hash != state.Hash.ValueString() {
		return // the plan says so, with the configuration's line
	}
	resp.Diagnostics.Append(writeSource(ctx, resp.Private, source{print, m.Hash})...)
}

// settle answers whether an interrupted create happened.
func (r *datasetResource) settle(ctx context.Context, operation string, state *datasetModel, resp *resource.ReadResponse) {
	s := r.settings.datasets
	if dir := state.DatasetsDir.ValueString(); dir != "" {
		s = store(dir)
	}
	id := datasetID(operation)
	hash, err := s.find(id)
	if errors.Is(err, fs.ErrNotExist) || operation == "" {
		resp.State.RemoveResource(ctx)
		return
	}
	m, there := s.hasDataset(id, hash)
	if err != nil || !there {
		resp.Diagnostics.AddError("Dataset cannot be looked for", fmt.Sprintf("%s: %v.", s, err))
		return
	}
	state.ID, state.DatasetsDir = types.StringValue(id), types.StringValue(string(s))
	state.describe(s, m)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// Update only records: whatever changes the records is a new dataset.
func (r *datasetResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (r *datasetResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state datasetModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, time.Minute)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := store(state.DatasetsDir.ValueString()).remove(ctx, state.ID.ValueString(), state.Hash.ValueString())
	if err != nil && !os.IsNotExist(err) {
		resp.Diagnostics.AddError("Dataset cannot be removed", fmt.Sprintf("%s.", err))
	}
}
