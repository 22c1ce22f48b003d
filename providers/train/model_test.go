package train

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/train/graph"
	"github.com/stokehq/stoke/runtime/model"
)

// writeModel writes a model_file of a network with a hidden layer.
func (b *bench) writeModel(units int) string {
	b.t.Helper()
	name := filepath.Join(b.t.TempDir(), "model.json")
	text := fmt.Sprintf(`{
  "layers": [
    {"name": "flat", "type": "flatten"},
    {"name": "hidden", "type": "dense", "units": %d},
    {"name": "act", "type": "tanh"},
    {"name": "out", "type": "dense", "units": 10}
  ]
}`, units)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// layersOf returns a value of model_graph, with null for each member that a layer lacks.
func layersOf(layers ...values) cty.Value {
	list := make([]cty.Value, len(layers))
	for i, l := range layers {
		all := values{"name": cty.NullVal(cty.String), "type": cty.NullVal(cty.String), "inputs": cty.NullVal(cty.List(cty.String))}
		for _, member := range model.Members() {
			ty := map[reflect.Kind]cty.Type{reflect.Bool: cty.Bool, reflect.String: cty.String}[model.MemberType(member).Kind()]
			if ty == cty.NilType {
				ty = cty.Number
			}
			all[member] = cty.NullVal(ty)
		}
		maps.Copy(all, l)
		list[i] = cty.ObjectVal(all)
	}
	return cty.ObjectVal(values{
		"layers": cty.ListVal(list), "loss": cty.NullVal(cty.String), "metrics": cty.NullVal(cty.List(cty.String)),
		"label_smoothing": cty.NullVal(cty.Number),
	})
}

// withLoss returns a model with another loss; "": without layers.
func withLoss(loss string, graph cty.Value) cty.Value {
	all := graph.AsValueMap()
	if loss == "" {
		all["layers"] = cty.ListValEmpty(graph.GetAttr("layers").Type().ElementType())
		return cty.ObjectVal(all)
	}
	all["loss"] = cty.StringVal(loss)
	return cty.ObjectVal(all)
}

func TestModelGraph(t *testing.T) {
	b := newBench(t)
	b.behave(behaviour{Save: true})
	data := b.make("train_dataset", "op-data", b.digits(nil))
	text := cty.StringVal
	inHCL := b.experiment(data, values{"model": cty.NullVal(cty.String), "model_graph": layersOf(
		values{"name": text("flat"), "type": text("flatten")},
		values{"name": text("hidden"), "type": text("dense"), "units": cty.NumberIntVal(16)},
		values{"name": text("act"), "type": text("tanh")},
		values{"name": text("out"), "type": text("dense"), "units": cty.NumberIntVal(10), "inputs": texts("act")},
	)})
	th := b.make(experiment, "op-graph", inHCL)
	s, err := b.folder(th).ReadSpec()
	if err != nil {
		t.Fatal(err)
	}
	d, err := model.Describe([]byte(s.Graph))
	if err != nil || len(d.Layers) != 4 || d.Layers[1].Units != 16 || s.Model != "" || s.Layers != "" {
		t.Errorf("spec %+v, %v", s, err)
	}
	summary := th.state.GetAttr("model_summary")
	if summary.LengthInt() != 4 || summary.Index(cty.NumberIntVal(1)).AsString() != "hidden: dense, 16, 12560 parameters" {
		t.Errorf("summary %s", show(summary))
	}
	b.unchanged(th, inHCL)

	// An import has the model, too.
	resp := b.p.Import(t.Context(), importRequest(th.state.GetAttr("id").AsString()))
	noErrors(t, resp.Diagnostics)
	imported := &thing{typ: experiment, state: resp.Objects[0].State, private: resp.Objects[0].Private}
	noErrors(t, b.read(imported))
	if got, want := imported.state.GetAttr("model_graph"), th.state.GetAttr("model_graph"); !got.RawEquals(want) {
		t.Errorf("imported as %s, want %s", show(got), show(want))
	}
	if p := b.plan(imported, inHCL); len(p.Replace) > 0 {
		t.Errorf("an imported run is replaced: %#v", p.Replace)
	}

	// The file's model is the same as the configuration's.
	name := b.writeModel(16)
	inFile := b.experiment(data, values{"model": cty.NullVal(cty.String), "model_file": text(name)})
	other := b.make(experiment, "op-file", inFile)
	b.unchanged(other, inFile)
	if got := other.state.GetAttr("model_graph").GetAttr("layers"); got.LengthInt() != 4 {
		t.Errorf("the state has the model %s", show(got))
	}
	// A plan is carried out as it was made, whatever becomes of the file.
	third := b.new(experiment)
	p := b.plan(third, inFile)
	noErrors(t, p.Diagnostics)
	if err := os.WriteFile(name, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.Planned.GetAttr("model_graph").IsNull() {
		t.Fatal("the plan has no model")
	}
	oneError(t, b.plan(other, inFile).Diagnostics, "Model cannot be used")
}

// A plan shows a model as it is written, with members that have their defaults, and with
// numbers of more digits than the trainer computes with.
func TestModelGraphStaysAsItIsWritten(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	text, number := cty.StringVal, cty.NumberIntVal
	written := layersOf(
		values{"name": text("conv"), "type": text("conv2d"), "filters": number(3), "kernel": number(3), "pad": cty.Zero, "no_bias": cty.False},
		values{"name": text("flat"), "type": text("flatten")},
		values{"name": text("drop"), "type": text("dropout"), "rate": cty.MustParseNumberVal("0.123456789")},
		values{"name": text("out"), "type": text("dense"), "units": number(10)},
	).AsValueMap()
	written["label_smoothing"] = cty.Zero
	config := b.experiment(data, values{"model": cty.NullVal(cty.String), "model_graph": cty.ObjectVal(written)})
	p := b.plan(b.new(experiment), config)
	noErrors(t, p.Diagnostics)
	if got := p.Planned.GetAttr("model_graph"); !got.RawEquals(cty.ObjectVal(written)) {
		t.Errorf("planned as %s", show(got))
	}
}

// What another resource decides is known at the apply.
func TestUnknownModels(t *testing.T) {
	b := newBench(t)
	b.behave(behaviour{Save: true})
	data := b.make("train_dataset", "op-data", b.digits(nil))
	text := cty.StringVal
	out := func(units cty.Value) cty.Value {
		return layersOf(values{"name": text("flat"), "type": text("flatten")}, values{"name": text("out"), "type": text("dense"), "units": units})
	}
	for name, change := range map[string]values{
		"member": {"model_graph": out(cty.UnknownVal(cty.Number))},
		"file":   {"model_file": cty.UnknownVal(cty.String)},
	} {
		change["model"] = cty.NullVal(cty.String)
		p := b.plan(b.new(experiment), b.experiment(data, change))
		noErrors(t, p.Diagnostics)
		if p.Planned.GetAttr("model_graph").IsWhollyKnown() || p.Planned.GetAttr("model_summary").IsKnown() {
			t.Errorf("%s: planned as %s", name, show(p.Planned))
		}
	}
	// The plan had no file: the apply has.
	var m experimentModel
	m.ModelFile, m.ModelGraph = types.StringValue(b.writeModel(5)), types.ObjectUnknown(graphTypes())
	d := &draft{unknown: make(map[string]bool)}
	if diags := d.describe(&m); diags.HasError() || d.model == nil || d.unknown["graph"] {
		t.Errorf("the model is %+v, %v", d.model, diags)
	}
}

// graphTypes are the types of the members of model_graph.
func graphTypes() map[string]attr.Type {
	return graph.Attribute().GetType().(types.ObjectType).AttrTypes
}

// Each mistake about a model is one error, at its layer where there is one.
func TestModelMistakesAreOneErrorEach(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	text, number := cty.StringVal, cty.NumberIntVal
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{\n\"layers\": [\n{\"name\": \"a\", \"type\": \"dense\", \"unit\": 3}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	flat := values{"name": text("flat"), "type": text("flatten")}
	out := func(more values) values {
		all := values{"name": text("out"), "type": text("dense"), "units": number(10)}
		maps.Copy(all, more)
		return all
	}
	graph := cty.GetAttrPath("model_graph")
	layer := func(i int) cty.Path { return graph.GetAttr("layers").IndexInt(i) }
	const unusable, unfit = "Model cannot be used", "Model does not fit the data"
	for name, tt := range map[string]struct {
		change  values
		summary string
		at      cty.Path
		says    string
	}{
		"two":          {values{"model": text("mlp"), "model_graph": layersOf(flat, out(nil))}, "More than one model or program", cty.GetAttrPath("model"), "model and model_graph"},
		"none":         {values{}, "Neither a model nor a program", cty.GetAttrPath("model"), "model_file"},
		"layers":       {values{"model_graph": withLoss("", layersOf(flat))}, unusable, graph, "0 layers"},
		"member":       {values{"model_graph": layersOf(flat, out(values{"kernel": number(3)}))}, unusable, layer(1), `"out"): has no kernel: it has units, no_bias`},
		"type":         {values{"model_graph": layersOf(flat, out(values{"type": text("lstm")}))}, unusable, layer(1), `unknown operation "lstm"`},
		"no type":      {values{"model_graph": layersOf(flat, out(values{"type": cty.NullVal(cty.String)}))}, unusable, layer(1), "has no type"},
		"fraction":     {values{"model_graph": layersOf(flat, out(values{"units": cty.MustParseNumberVal("1.5")}))}, unusable, layer(1), "want a whole number"},
		"zero":         {values{"model_graph": layersOf(flat, out(values{"units": number(0)}))}, unusable, layer(1), "units is 0"},
		"negative":     {values{"model_graph": layersOf(flat, out(values{"units": number(-1)}))}, unfit, layer(1), "dimension -1"},
		"large":        {values{"model_graph": layersOf(flat, out(values{"units": cty.MustParseNumberVal("1e30")}))}, unusable, layer(1), "want a whole number"},
		"input":        {values{"model_graph": layersOf(flat, out(values{"inputs": texts("flot")}))}, unusable, layer(1), `its input "flot" is not a layer`},
		"null":         {values{"model_graph": layersOf(flat, out(values{"inputs": cty.ListVal([]cty.Value{cty.NullVal(cty.String)})}))}, unusable, graph, "null"},
		"loss":         {values{"model_graph": withLoss("hinge", layersOf(out(nil)))}, unusable, graph, `loss "hinge": want`},
		"shape":        {values{"model_graph": layersOf(out(nil))}, unfit, layer(0), "put a flatten before it"},
		"classes":      {values{"model_graph": layersOf(flat, out(values{"units": number(3)}))}, unfit, graph, "[3] values per record, but there are 10 classes"},
		"parameters":   {values{"model_graph": layersOf(flat, values{"name": text("wide"), "type": text("dense"), "units": number(1 << 24)}, out(nil))}, unfit, graph, `"wide/weight" has more than`},
		"file":         {values{"model_file": text(broken)}, unusable, cty.GetAttrPath("model_file"), `broken.json: line 3: layer 1 (dense "a"): unknown member "unit": did you mean "units"?`},
		"missing file": {values{"model_file": text("/nonexistent/model.json")}, unusable, cty.GetAttrPath("model_file"), "no such file"},
		"folder":       {values{"model_file": text("/")}, unusable, cty.GetAttrPath("model_file"), "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			change := values{"model": cty.NullVal(cty.String)}
			maps.Copy(change, tt.change)
			d := oneError(t, b.plan(b.new(experiment), b.experiment(data, change)).Diagnostics, tt.summary)
			if !d.Path.Equals(tt.at) || !strings.Contains(d.Detail, tt.says) {
				t.Errorf("error at %#v, want %#v: %s", d.Path, tt.at, d.Detail)
			}
		})
	}
}
