package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

func initAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"init_from": option("Model whose parameters the run begins with, on this machine: a safetensors file, " +
			"the run_dir of another experiment, or the folder of a checkpoint. Default: values drawn by the seed."),
		"init_skip": schema.ListAttribute{Optional: true, ElementType: types.StringType,
			Description: "Patterns of variables that init_from does not set, such as [\"output/*\"]; " +
				"* is anything but a slash. Default: none."},
		"init_hash": result("Hash of the model that init_from names."),
	}
}

// weights are the parameters at a path, as the trainer describes them.
type weights struct {
	Hash string `json:"hash"`
}

// refusedWeights is an error of the trainer about parameters, not about its start.
type refusedWeights string

func (e refusedWeights) Error() string { return string(e) }

// describe reads the hash of the parameters at a path.
func (t trainer) describe(ctx context.Context, path string) (weights, error) {
	return t.describeWith(ctx, path)
}

// checkFit reports why the model that a run begins from is not its own; nil: it is.
func (t trainer) checkFit(ctx context.Context, s spec.Spec) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "stoke-fits-*.json") // as an argument it may be too long
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = t.describeWith(ctx, s.InitFrom.Path, "--fits", file.Name())
	return err
}

func (t trainer) describeWith(ctx context.Context, args ...string) (w weights, err error) {
	out, err := t.run(ctx, nil, append([]string{"model", "describe"}, args...)...)
	if err != nil {
		if told := new(api.Failure); errors.As(err, told) {
			err = refusedWeights(told.Detail)
		}
		return w, err
	}
	if err := json.Unmarshal(out, &w); err != nil {
		return w, fmt.Errorf("read the trainer's answer: %w", err)
	}
	if hashDigits(w.Hash) == "" {
		return w, fmt.Errorf("the trainer gives no hash: %.80q", w.Hash)
	}
	return w, nil
}

// initFrom finds out which model the run begins from. A run that has not finished yet
// may do so in this apply.
func (p *planning) initFrom(ctx context.Context, prior *experimentModel, exists bool) {
	d := p.draft
	from := &d.spec.InitFrom
	switch {
	case d.unknown["init_from.path"] || from.Path != "" && p.settings.unknown:
		d.unknown["init_from.hash"], p.plan.InitHash = true, types.StringUnknown()
		return
	case from.Path == "":
		p.plan.InitHash = types.StringNull()
		return
	}
	var w weights
	t, err := findTrainer(p.settings.given)
	if err == nil {
		w, err = t.describe(ctx, from.Path)
	}
	switch {
	case err == nil:
		from.Hash = w.Hash
	case exists && prior.InitFrom.Equal(p.plan.InitFrom) && prior.InitHash.ValueString() != "":
		from.Hash = prior.InitHash.ValueString() // the record outlives the file
	case isUnfinished(run.Folder(from.Path)):
		d.unknown["init_from.hash"], p.plan.InitHash = true, types.StringUnknown()
		return
	default:
		p.resp.Diagnostics.AddAttributeError(path.Root("init_from"), "Model of init_from cannot be used", capital(err)+".")
		return
	}
	p.plan.InitHash = types.StringValue(from.Hash)
}

// planFit reports a model that does not fit, where model and dataset are known.
func (p *planning) planFit(ctx context.Context) {
	s := &p.draft.spec
	if s.InitFrom.Hash == "" || p.records == 0 || p.draft.unknown["model"] || p.draft.unknown["init_from.skip"] {
		return
	}
	if t, err := findTrainer(p.settings.given); err == nil {
		p.resp.Diagnostics.Append(misfit(t.checkFit(ctx, *s))...)
	}
}

// isUnfinished reports whether a folder has a run without a finished model.
func isUnfinished(f run.Folder) bool {
	_, err := os.Stat(f.Spec())
	finals, ferr := f.Finals()
	return err == nil && ferr == nil && len(finals) == 0
}

// checkInitFrom finds the model that the run begins from, which is the planned one.
func (d *draft) checkInitFrom(ctx context.Context, t trainer) (diags diag.Diagnostics) {
	from := &d.spec.InitFrom
	if from.Path == "" {
		return nil
	}
	w, err := t.describe(ctx, from.Path)
	switch {
	case err != nil:
		diags.AddAttributeError(path.Root("init_from"), "Model of init_from cannot be used", capital(err)+".")
	case from.Hash != "" && from.Hash != w.Hash:
		diags.AddAttributeError(path.Root("init_from"), "Model is not the planned one",
			fmt.Sprintf("%s has %s, but %s was planned. Plan again.", from.Path, w.Hash, from.Hash))
	}
	from.Hash = w.Hash
	return diags
}

// misfit is the error about a model that does not fit; nil stays nothing.
func misfit(err error) (diags diag.Diagnostics) {
	switch {
	case err == nil:
	case errors.As(err, new(refusedWeights)):
		diags.AddAttributeError(path.Root("init_from"), "Model of init_from does not fit",
			capital(err)+". init_skip excepts variables.")
	default:
		diags.AddAttributeError(path.Root("init_from"), "Model of init_from cannot be checked", capital(err)+".")
	}
	return diags
}

// adoptInitFrom takes the arguments from the spec of an imported run.
func (m *experimentModel) adoptInitFrom(from spec.InitFrom) {
	m.InitFrom, m.InitSkip = optionalText(from.Path), types.ListNull(types.StringType)
	patterns, _ := from.Patterns() // Validate reports others
	if patterns == nil {
		return
	}
	var values []attr.Value
	for _, p := range patterns {
		values = append(values, types.StringValue(p))
	}
	m.InitSkip = types.ListValueMust(types.StringType, values)
}

// gpuAttributes are the attributes of an experiment about the health of its GPUs.
func gpuAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"gpu_health": option("With worker.gpus: \"required\" starts no worker on GPUs that are unfit, or that stoke-gpu cannot check; " +
			"\"reported\" only reports them. Default: \"reported\"."),
		"gpu_health_worst": result("Worst health of the GPUs so far: fit, or warning or unfit with the reason. " +
			"Null where no GPU was watched."),
	}
}
