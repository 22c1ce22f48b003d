package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/graph"
	"github.com/stokehq/stoke/providers/train/program"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/spec"
)

// checkSource reports an experiment that has not exactly one of model, model_graph,
// model_file and program.
func (m *experimentModel) checkSource() (diags diag.Diagnostics) {
	var given []string
	for _, source := range []struct {
		name  string
		value attr.Value
	}{{"model", m.Model}, {graph.Name, m.ModelGraph}, {graph.File, m.ModelFile}, {programBlock, m.Program}} {
		switch {
		case source.value.IsUnknown():
			return nil // it may be null
		case !source.value.IsNull():
			given = append(given, source.name)
		}
	}
	switch {
	case len(given) == 0:
		diags.AddAttributeError(path.Root("model"), "Neither a model nor a program",
			"Name a built-in model with model, for example mnist-cnn, describe one with model_graph or model_file, "+
				"or give a block program.")
	case len(given) > 1:
		diags.AddAttributeError(path.Root(given[0]), "More than one model or program",
			fmt.Sprintf("Give one of model, model_graph, model_file and a block program; this experiment has %s.",
				strings.Join(given, " and ")))
	}
	return diags
}

// describe reads the model of model_graph or model_file.
func (d *draft) describe(m *experimentModel) (diags diag.Diagnostics) {
	var err error
	switch {
	case m.ModelGraph.IsNull() && m.ModelFile.IsNull():
		return nil
	case m.ModelFile.IsUnknown(), m.ModelFile.IsNull() && !isKnown(m.ModelGraph):
		d.unknown["graph"] = true
		return nil
	case m.ModelGraph.IsNull() || m.ModelGraph.IsUnknown():
		var file string
		if file, err = localPath(m.ModelFile.ValueString()); err == nil {
			d.model, err = graph.Read(file)
		}
		if err != nil {
			detail := endSentence(m.ModelFile.ValueString() + ": " + err.Error())
			if errors.Is(err, fs.ErrNotExist) {
				detail += " A relative path begins at the folder of the root module; in a module, begin it with ${path.module}."
			}
			diags.AddAttributeError(path.Root(graph.File), "Model cannot be used", detail)
			d.unknown["model"] = true // one error is enough
			return diags
		}
	default:
		var text spec.JSON
		if text, err = program.JSONOf(m.ModelGraph); err == nil {
			d.model, err = model.Describe([]byte(text))
		}
		if err != nil {
			at, err := graph.Problem(err)
			diags.AddAttributeError(at, "Model cannot be used", endSentence(capital(err)))
			d.unknown["model"] = true
			return diags
		}
	}
	d.spec.Graph, err = spec.JSONOf(d.model)
	if err != nil {
		diags.AddError("Model cannot be stored", capital(err)+".")
	}
	return diags
}

// endSentence ends a sentence with a full stop where it is not a question.
func endSentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// The values of a summary without lines.
var (
	summaryNull    = types.ListNull(types.StringType)    // of a built-in model or a program
	summaryUnknown = types.ListUnknown(types.StringType) // of a model whose records are not known yet
)

// model checks the model with the records, and shows its layers.
func (p *planning) model() {
	d := p.draft
	p.plan.ModelSummary = summaryNull
	if !p.plan.ModelFile.IsNull() {
		p.plan.ModelGraph = graph.Value(d.model)
	}
	switch {
	case d.unknown["graph"] && !p.plan.ModelFile.IsNull():
		p.plan.ModelGraph, p.plan.ModelSummary = types.ObjectUnknown(p.plan.ModelGraph.AttributeTypes(context.Background())), summaryUnknown
		return
	case d.unknown["graph"]:
		p.plan.ModelSummary = summaryUnknown
		return
	case d.model == nil:
		return
	}
	shape, known := p.settings.describe(d.spec.Dataset)
	if !known {
		p.plan.ModelSummary = summaryUnknown
		return
	}
	lines, parameters, diag := d.summarize(p.plan, shape)
	if diag != nil {
		p.resp.Diagnostics.Append(diag)
		return
	}
	p.plan.ModelSummary, p.parameters = lines, parameters
}

// summarize returns a line for each layer, and the number of parameters.
func (d *draft) summarize(m *experimentModel, of split) (types.List, int, diag.Diagnostic) {
	is := d.model.Model(of.data())
	is.Name = "" // for errors
	lines, parameters, err := is.Summary()
	if err == nil {
		return program.Texts(lines).(types.List), parameters, nil
	}
	const summary = "Model does not fit the data"
	if !m.ModelFile.IsNull() {
		detail := endSentence(m.ModelFile.ValueString() + ": " + err.Error())
		return summaryNull, 0, diag.NewAttributeErrorDiagnostic(path.Root(graph.File), summary, detail)
	}
	at, err := graph.Problem(err)
	return summaryNull, 0, diag.NewAttributeErrorDiagnostic(at, summary, endSentence(capital(err)))
}

// summarized fills in model and summary where a plan could not know them: the file and
// the records are known now.
func (d *draft) summarized(m *experimentModel) diag.Diagnostic {
	if m.ModelGraph.IsUnknown() {
		m.ModelGraph = graph.Value(d.model)
	}
	if !m.ModelSummary.IsUnknown() {
		return nil
	}
	of, err := readManifest(d.spec.Dataset.Path)
	if err != nil {
		return diag.NewAttributeErrorDiagnostic(path.Root("dataset"), "Dataset cannot be used", capital(err)+".")
	}
	lines, _, problem := d.summarize(m, of.Train)
	m.ModelSummary = lines
	return problem
}

// describe returns what the training records of a dataset are. A dataset that an apply
// is yet to prepare is known where this plan has inspected its origin.
func (s *settings) describe(of spec.Dataset) (split, bool) {
	if m, err := readManifest(of.Path); err == nil {
		return m.Train, true
	}
	is := s.inspectedAs(of.Hash)
	return is.Train, is.Train.Shape != nil
}

// data returns the data that a model for these records is made for.
func (s split) data() model.Data {
	return model.Data{Input: model.Features{Type: s.Type, Shape: s.Shape}, Classes: s.Classes, Target: s.Target}
}

// countParameters returns the number of parameters of the model, where it is known.
func (p *planning) countParameters() int {
	s := &p.draft.spec
	if p.parameters > 0 || s.Model == "" {
		return p.parameters
	}
	of, known := p.settings.describe(s.Dataset)
	layers, err := zoo.Layers(s.Model)
	if !known || err != nil || layers != s.Layers {
		return 0
	}
	m, err := zoo.Model(s.Model, of.data())
	if err != nil {
		p.resp.Diagnostics.AddAttributeError(path.Root("model"), "Model does not fit the data", endSentence(capital(err)))
		return 0
	}
	_, parameters, err := m.Summary()
	if err != nil {
		return 0
	}
	return parameters
}

// checkOperations reports operations of the model that the trainer does not have.
func (p *planning) checkOperations(can abilities) error {
	if p.draft.model == nil {
		return nil
	}
	for _, l := range p.draft.model.Layers {
		if !slices.Contains(can.Operations, string(l.Op)) {
			return errors.New("the trainer does not know the type " + string(l.Op) + " of the layer " + l.Name)
		}
	}
	return nil
}
