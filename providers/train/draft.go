package train

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/providers/train/program"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// draft is a spec as far as it is known: fields that are not have their
// default and are listed.
type draft struct {
	spec    spec.Spec
	unknown map[string]bool // by field
	partly  []spec.Change   // to a run that has a part of another change
	resumes bool            // on_change of a program
	inPods  bool            // not on this machine
	code    launch.Code     // of a program; its snapshot is nil until it is read
	model   *model.Description
}

// draft reads a configuration, a plan or a state. Values that no field can
// hold are diagnosed; whether they make sense together is check's affair.
func (m *experimentModel) draft() (*draft, diag.Diagnostics) {
	d := &draft{spec: spec.Default(), unknown: make(map[string]bool), inPods: !m.Cluster.IsNull()}
	if m.hasProgram() {
		d.spec = spec.DefaultProgram()
		if !m.ParameterServer.IsNull() {
			d.spec.ParameterServer.Replicas = 1
		}
	}
	var diags diag.Diagnostics
	for _, a := range arguments() {
		v := m.value(&a)
		switch {
		case v == nil || v.IsNull() || !a.isFor(m.hasProgram()):
		case !isKnown(v):
			d.unknown[a.field] = true
		default:
			if err := a.set(&d.spec, v); err != nil {
				diags.AddAttributeError(a.path(), "Value out of range", fmt.Sprintf("%s: %s.", a.name, err))
				d.unknown[a.field] = true // one error is enough
			}
		}
	}
	d.chooseStrategy(m)
	if d.spec.Strategy == spec.StrategyAllReduce && m.ParameterServer.IsNull() {
		d.spec.ParameterServer.Replicas = 0
	}
	d.chooseRate(m)
	diags.Append(d.describe(m)...)
	// The name defaults to the model's.
	switch {
	case !m.Name.IsNull():
	case m.hasProgram():
		d.spec.Name = programBlock
	case m.Model.IsNull():
		d.spec.Name = "model"
	default:
		d.spec.Name = d.spec.Model
		d.unknown["name"] = d.unknown["model"]
	}
	diags.Append(d.place(m)...)
	d.unknown["init_from.hash"] = d.unknown["init_from.path"]
	if d.spec.InitFrom.Path != "" {
		d.spec.InitFrom.Hash = m.InitHash.ValueString()
	}
	if !m.DatasetHash.IsNull() && !m.DatasetHash.IsUnknown() {
		d.spec.Dataset.Hash = m.DatasetHash.ValueString()
	}
	if m.hasProgram() {
		diags.Append(d.program(m)...)
	}
	return d, diags
}

// chooseStrategy sets a strategy that is left out: where workers have GPUs, they hold the
// parameters themselves, and the updates of a single one stay on its GPU.
func (d *draft) chooseStrategy(m *experimentModel) {
	if m.hasProgram() || !m.Strategy.IsNull() || !m.ParameterServer.IsNull() || d.spec.Asynchronous {
		return
	}
	if d.spec.Worker.GPUs > 0 {
		d.spec.Strategy = spec.StrategyAllReduce
	}
	if d.unknown["worker.gpus"] || d.unknown["asynchronous"] {
		d.unknown["strategy"], d.unknown["parameter_server.replicas"] = true, true
	}
}

// keepStrategy sets a strategy that the configuration leaves out to that of the run, so
// that a change of the default changes no run. It reports whether it did.
func (m *experimentModel) keepStrategy(d *draft, prior *experimentModel) bool {
	isGiven := !m.Strategy.IsNull() || !m.ParameterServer.IsNull()
	isAsynchronous := d.spec.Asynchronous || d.unknown["asynchronous"]
	if isGiven || isAsynchronous || m.hasProgram() || prior.hasProgram() || prior.Strategy.ValueString() == "" {
		return false
	}
	m.Strategy = prior.Strategy
	return true
}

// chooseRate sets a learning rate that is left out: it follows from the optimizer.
func (d *draft) chooseRate(m *experimentModel) {
	rate := m.value(&argument{in: hyper, name: "learning_rate"})
	if m.hasProgram() || rate != nil && !rate.IsNull() {
		return
	}
	d.spec.LearningRate = d.spec.Optimizer.DefaultRate()
	d.unknown["learning_rate"] = d.unknown["optimizer.name"]
}

// place reads where the dataset is. A program may have any folder, or none.
func (d *draft) place(m *experimentModel) (diags diag.Diagnostics) {
	if m.Dataset.IsUnknown() {
		d.unknown["dataset.path"], d.unknown["dataset.hash"] = true, true
		return nil
	}
	given, err := m.Dataset.ValueString(), error(nil)
	if m.hasProgram() && !strings.HasPrefix(given, "file:") {
		d.spec.Dataset.Path, err = localPath(given)
	} else {
		d.spec.Dataset.Path, err = datasetFolder(given)
	}
	if err != nil {
		diags.AddAttributeError(path.Root("dataset"), "Dataset is not a folder", fmt.Sprintf("Give a train_dataset's uri: %s.", err))
	}
	return diags
}

// isKnown reports whether a value is known with all its elements.
func isKnown(v attr.Value) bool {
	raw, err := v.ToTerraformValue(context.Background())
	return err == nil && raw.IsFullyKnown()
}

// runKnown reports whether all that the spec's hash covers is known.
func (d *draft) runKnown() bool {
	for field, open := range d.unknown {
		if open && spec.CostOf(field) == spec.NewRun {
			return false
		}
	}
	return true
}

// restOn lists the fields that a check of another one looks at too.
var restOn = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"model":                 {"graph"},
		"micro_batch":           {"batch_size"},
		"learning_rate_scaling": {"batch_per"},
		"worker.min_replicas":   {"worker.replicas", "program.evaluator"},
		"optimizer.momentum":    {"optimizer.name"},
		"optimizer.nesterov":    {"optimizer.name", "optimizer.momentum"},
		"optimizer.beta1":       {"optimizer.name"},
		"optimizer.beta2":       {"optimizer.name"},
		"optimizer.epsilon":     {"optimizer.name"},
		"clip_norm":             {"deterministic", "parameter_server.replicas"},
		"compute_type":          {"worker.gpus", "deterministic"},
		"deterministic":         {"asynchronous"},
		"asynchronous":          {"strategy"},
		"epochs":                {"init_from.path"},
		"init_from.skip":        {"init_from.path"},
		"engine":                {"worker.gpus"},
		"gpu_health":            {"worker.gpus"},

		"schedule.name":                  {"schedule.decay_epochs", "schedule.decay_every"},
		"schedule.warmup_epochs":         {"epochs"},
		"schedule.decay_epochs":          {"schedule.name"},
		"schedule.decay_every":           {"schedule.name", "schedule.decay_epochs"},
		"schedule.decay_factor":          {"schedule.name"},
		"schedule.minimum_learning_rate": {"schedule.name", "learning_rate"},

		"program.processes":         {"worker.gpus", "program.framework"},
		"program.framework":         {"program.chief", "program.evaluator"},
		"parameter_server.replicas": {"program.framework", "strategy"},
	}
})

// check validates the known values. While only the dataset's name is known, it
// reports nothing about the dataset.
func (d *draft) check() diag.Diagnostics {
	var diags diag.Diagnostics
	problems := d.spec.Validate()
	if d.spec.HasProgram() {
		problems = append(problems, program.Check(&d.spec, d.unknown)...)
	}
	for _, p := range problems {
		open := d.unknown[p.Field]
		for _, other := range restOn()[p.Field] {
			open = open || d.unknown[other]
		}
		if open || p.Field == "dataset.hash" || p.Field == "dataset.path" || p.Field == "init_from.hash" {
			continue
		}
		at := pathOf(p.Field)
		diags.AddAttributeError(at, p.Summary, p.Detail)
	}
	return diags
}

// fill shows the defaults: what people left out gets the value that it has. A
// block that was left out stays out.
func (m *experimentModel) fill(ctx context.Context, d *draft) {
	values := make(map[string]attr.Value)
	for _, a := range arguments() {
		if a.get == nil {
			continue
		}
		v := m.value(&a)
		if v == nil || v.IsNull() {
			v = d.show(ctx, &a)
		}
		switch {
		case a.in == "":
			m.setTop(a.name, v)
		case a.in == hyper:
			values[a.name] = v
		default:
			if o := m.object(a.in); !o.IsNull() && !o.IsUnknown() {
				*o = withAttribute(ctx, *o, a.name, v)
			}
		}
	}
	if m.hasProgram() {
		m.Hyperparameters = types.ObjectNull(hyperparameterTypes())
		m.fillProgram(ctx)
	} else if !m.Hyperparameters.IsUnknown() {
		m.Hyperparameters = types.ObjectValueMust(hyperparameterTypes(), values)
	}
	if m.Wait.IsNull() {
		m.Wait = types.BoolValue(true)
	}
}

// show gives a default as a value; unknown where it follows from something
// that is; null where the argument has no meaning.
func (d *draft) show(ctx context.Context, a *argument) attr.Value {
	v := a.get(&d.spec)
	if !a.isFor(d.spec.HasProgram()) {
		return null(ctx, v.Type(ctx))
	}
	open := d.unknown[a.field] || a.field == "micro_batch" && d.unknown["batch_size"]
	if !open {
		return v
	}
	switch v.(type) {
	case types.Number:
		return types.NumberUnknown()
	case types.Bool:
		return types.BoolUnknown()
	}
	return types.StringUnknown()
}

// withAttribute gives the object with one attribute changed.
func withAttribute(ctx context.Context, o types.Object, name string, v attr.Value) types.Object {
	attributes := o.Attributes() // a copy
	attributes[name] = v
	return types.ObjectValueMust(o.AttributeTypes(ctx), attributes)
}
