package train

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/spec"
)

// draft is a spec as far as it is known: fields that are not have their
// default and are listed.
type draft struct {
	spec    spec.Spec
	unknown map[string]bool // by field
	partly  []spec.Change   // to a run that has a part of another change
}

// draft reads a configuration, a plan or a state. Values that no field can
// hold are diagnosed; whether they make sense together is check's affair.
func (m *experimentModel) draft() (*draft, diag.Diagnostics) {
	d := &draft{spec: spec.Default(), unknown: make(map[string]bool)}
	var diags diag.Diagnostics
	for _, a := range arguments() {
		v := m.value(&a)
		switch {
		case v == nil || v.IsNull():
		case v.IsUnknown():
			d.unknown[a.field] = true
		default:
			if err := a.set(&d.spec, v); err != nil {
				diags.AddAttributeError(a.path(), "Value out of range", fmt.Sprintf("%s: %s.", a.name, err))
				d.unknown[a.field] = true // one error is enough
			}
		}
	}
	// The name defaults to the model's.
	if m.Name.IsNull() {
		d.spec.Name = d.spec.Model
		d.unknown["name"] = d.unknown["model"]
	}
	if m.Dataset.IsUnknown() {
		d.unknown["dataset.path"], d.unknown["dataset.hash"] = true, true
	} else if folder, err := datasetFolder(m.Dataset.ValueString()); err != nil {
		diags.AddAttributeError(path.Root("dataset"), "Dataset is not a folder", fmt.Sprintf("Give a train_dataset's uri: %s.", err))
	} else {
		d.spec.Dataset.Path = folder
	}
	if !m.DatasetHash.IsNull() && !m.DatasetHash.IsUnknown() {
		d.spec.Dataset.Hash = m.DatasetHash.ValueString()
	}
	return d, diags
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
var restOn = map[string][]string{
	"micro_batch":           {"batch_size"},
	"learning_rate_scaling": {"batch_per"},
	"worker.min_replicas":   {"worker.replicas"},
	"optimizer.nesterov":    {"optimizer.momentum"},
	"deterministic":         {"asynchronous"},
	"engine":                {"worker.gpus"},
}

// check says what is wrong with what is known. While the dataset is only a
// name nothing is said about it.
func (d *draft) check() diag.Diagnostics {
	var diags diag.Diagnostics
	for _, p := range d.spec.Validate() {
		open := d.unknown[p.Field]
		for _, other := range restOn[p.Field] {
			open = open || d.unknown[other]
		}
		if open || p.Field == "dataset.hash" || p.Field == "dataset.path" {
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
	hyper := make(map[string]attr.Value)
	for _, a := range arguments() {
		if a.get == nil {
			continue
		}
		v := m.value(&a)
		if v == nil || v.IsNull() {
			v = d.show(&a)
		}
		switch {
		case a.in == "":
			m.setTop(a.name, v)
		case a.in == "hyperparameters":
			hyper[a.name] = v
		default:
			if o := m.object(a.in); !o.IsNull() && !o.IsUnknown() {
				*o = with(ctx, *o, a.name, v)
			}
		}
	}
	if !m.Hyperparameters.IsUnknown() {
		m.Hyperparameters = types.ObjectValueMust(hyperparameterTypes(), hyper)
	}
	if m.Wait.IsNull() {
		m.Wait = types.BoolValue(true)
	}
}

// show gives a default as a value; unknown where it follows from something
// that is.
func (d *draft) show(a *argument) attr.Value {
	v := a.get(&d.spec)
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

// with gives the object with one attribute changed.
func with(ctx context.Context, o types.Object, name string, v attr.Value) types.Object {
	attributes := o.Attributes() // a copy
	attributes[name] = v
	return types.ObjectValueMust(o.AttributeTypes(ctx), attributes)
}

func hyperparameterTypes() map[string]attr.Type {
	ty := make(map[string]attr.Type)
	for _, a := range arguments() {
		if a.in == "hyperparameters" {
			ty[a.name] = types.NumberType
		}
	}
	ty["nesterov"] = types.BoolType
	return ty
}
