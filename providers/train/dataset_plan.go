package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// sourceKey is where private state keeps what the records were made from.
const sourceKey = "source"

// source remembers which files had which hash, so that a plan reads them again
// only when they look different.
type source struct {
	Fingerprint string `json:"fingerprint"`
	Hash        string `json:"hash"`
}

type privateGetter interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

func readSource(ctx context.Context, p privateGetter) source {
	var s source
	if data, diags := p.GetKey(ctx, sourceKey); !diags.HasError() {
		_ = json.Unmarshal(data, &s) // unreadable: the files are read again
	}
	return s
}

type privateSetter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func writeSource(ctx context.Context, p privateSetter, s source) diag.Diagnostics {
	data, err := json.Marshal(s)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Record of the source is unwritable", err.Error())}
	}
	return p.SetKey(ctx, sourceKey, data)
}

func (r *datasetResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config datasetModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if !resp.Diagnostics.HasError() {
		_, _, diags := config.origin()
		resp.Diagnostics.Append(diags...)
	}
}

// ModifyPlan looks at the data: what it would be stored as is known while
// planning, and so is that it cannot be.
func (r *datasetResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.settings == nil || r.settings.unknown {
		return
	}
	var plan, prior datasetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	from, known, diags := plan.origin()
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	if !known {
		if exists { // the records may be others
			plan.forget()
			resp.RequiresReplace.Append(path.Root("hash"))
			resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		}
		return
	}
	var m manifest
	before := source{}
	if exists {
		before = readSource(ctx, req.Private)
	}
	now, m, diags := r.look(ctx, from, before, exists)
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	if exists && now.Hash == prior.Hash.ValueString() {
		plan.keep(&prior)
		resp.Diagnostics.Append(writeSource(ctx, resp.Private, now)...)
	} else {
		if exists {
			resp.RequiresReplace.Append(path.Root("hash"))
		}
		plan.ID = types.StringUnknown()
		plan.DatasetsDir = types.StringValue(string(r.settings.datasets))
		plan.describe(r.settings.datasets, m)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// look says what the origin's records are now. They are read only if they look
// different from before; m is set only then.
func (r *datasetResource) look(ctx context.Context, from spec.Origin, before source, exists bool) (source, manifest, diag.Diagnostics) {
	at := path.Root("path")
	if from.Path == "" {
		at = path.Root("format")
	}
	print, err := fingerprintOf(from)
	switch {
	case err != nil && exists && errors.Is(err, fs.ErrNotExist):
		// What was made from it is ours and whole: Read has looked.
		return before, manifest{}, diag.Diagnostics{diag.NewAttributeWarningDiagnostic(at, "Source of the dataset is gone",
			fmt.Sprintf("%s is no longer there. The prepared dataset stays in use; it cannot be made again.", from.Path))}
	case err != nil:
		return source{}, manifest{}, diag.Diagnostics{diag.NewAttributeErrorDiagnostic(at, "Dataset cannot be read", describeError(from, err))}
	case exists && before.Fingerprint == print && before.Hash != "":
		return before, manifest{}, nil
	}
	m, diags := r.inspect(ctx, from, print, at)
	return source{print, m.Hash}, m, diags
}

// inspect asks the trainer, once per phase.
func (r *datasetResource) inspect(ctx context.Context, from spec.Origin, print string, at path.Path) (manifest, diag.Diagnostics) {
	r.settings.mu.Lock()
	m, ok := r.settings.inspected[print]
	r.settings.mu.Unlock()
	if ok {
		return m, nil
	}
	t, missing := r.settings.trainer()
	if missing != nil {
		return manifest{}, diag.Diagnostics{missing}
	}
	m, err := t.inspect(ctx, from)
	if err != nil {
		return manifest{}, diag.Diagnostics{unusable(from, at, err)}
	}
	r.settings.mu.Lock()
	r.settings.inspected[print] = m
	r.settings.mu.Unlock()
	return m, nil
}

// inspectedAs returns the manifest of records that this phase has inspected, or
// an empty one.
func (s *settings) inspectedAs(hash string) manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.inspected {
		if m.Hash == hash {
			return m
		}
	}
	return manifest{}
}

// checkRecords checks that the records are pictures, where the experiment
// changes pictures, and that they are as many as it takes for a block. An empty
// manifest passes.
func (d *draft) checkRecords(is manifest) (diags diag.Diagnostics) {
	if err := d.spec.Augmentation.Check(is.Train.Type.String(), is.Train.Shape); err != nil && is.Train.Shape != nil {
		name := "random_crop"
		if d.spec.Augmentation.Crop == 0 {
			name = "random_flip"
		}
		diags.AddAttributeError(path.Root(hyper).AtName(name), "Records cannot be changed like that",
			fmt.Sprintf("%s changes pictures. Leave it out, or take another dataset: of this one, %s.", name, err))
	}
	if records := is.Train.Records; records > 0 && int64(d.spec.ShuffleBlock) > records {
		diags.AddAttributeError(pathOf("shuffle_block"), "Value out of range",
			fmt.Sprintf("shuffle_block must be between 0 and the number of training records, %d; it is %d.", records, d.spec.ShuffleBlock))
	}
	return diags
}

// unusable is what people read about data that cannot be used.
func unusable(from spec.Origin, at path.Path, err error) diag.Diagnostic {
	var failure api.Failure
	if !errors.As(err, &failure) {
		return diag.NewAttributeErrorDiagnostic(at, "Dataset cannot be used", describeError(from, err))
	}
	detail := failure.Detail
	if failure.File != "" {
		detail += "\n\nFile: " + failure.File
	}
	return diag.NewAttributeErrorDiagnostic(at, failure.Summary, detail)
}

func describeError(from spec.Origin, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("There is nothing at %s. Correct the path, or put the files there.", from.Path)
	}
	return fmt.Sprintf("%s: %s.", from.Format, err)
}

// describe sets what follows from the records.
func (m *datasetModel) describe(in store, is manifest) {
	m.Hash = types.StringValue(is.Hash)
	m.URI = types.StringValue(uri(in.folder(is.Hash)))
	m.TrainCount, m.TestCount = wholeNumber(is.Train.Records), wholeNumber(is.Test.Records)
	m.Classes = wholeNumber(int64(is.Train.Classes))
	m.Shape = dimensions(is.Train.Shape)
}

// keep takes everything computed from the prior value.
func (m *datasetModel) keep(prior *datasetModel) {
	m.ID, m.DatasetsDir = prior.ID, prior.DatasetsDir
	m.Hash, m.URI = prior.Hash, prior.URI
	m.TrainCount, m.TestCount = prior.TrainCount, prior.TestCount
	m.Classes, m.Shape = prior.Classes, prior.Shape
}

// forget makes everything computed unknown.
func (m *datasetModel) forget() {
	m.ID, m.DatasetsDir = types.StringUnknown(), types.StringUnknown()
	m.Hash, m.URI = types.StringUnknown(), types.StringUnknown()
	m.TrainCount, m.TestCount = types.NumberUnknown(), types.NumberUnknown()
	m.Classes, m.Shape = types.NumberUnknown(), types.ListUnknown(types.NumberType)
}
