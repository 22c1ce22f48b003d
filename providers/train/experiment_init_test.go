package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// The hash of the model decides whether an experiment trains again: the file may move,
// and it may be removed once the run has begun.
func TestInitFrom(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	base := filepath.Join(writeCode(t, t.TempDir(), "base", "weights"), "base")
	change := values{"init_from": cty.StringVal(base), "init_skip": texts("output/*"), "hyperparameters.epochs": cty.Zero}
	config := b.experiment(data, change)
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if !b.noted(providers.NoteForecast, "evaluates only: no update") || !p.Planned.GetAttr("init_hash").IsKnown() {
		t.Errorf("notes %+v, hash %#v", b.notes, p.Planned.GetAttr("init_hash"))
	}
	noErrors(t, b.apply(context.Background(), b.call("op-run"), th, config, p))
	hash := th.state.GetAttr("init_hash").AsString()
	s, err := b.folder(th).ReadSpec()
	if want := (spec.InitFrom{Path: base, Hash: hash, Skip: `["output/*"]`}); err != nil || s.InitFrom != want || s.Epochs != 0 {
		t.Errorf("spec %+v, %v", s, err)
	}
	b.unchanged(th, config)

	resp := b.p.Import(t.Context(), importRequest(th.state.GetAttr("id").AsString()))
	noErrors(t, resp.Diagnostics)
	imported := &thing{typ: experiment, state: resp.Objects[0].State, private: resp.Objects[0].Private}
	noErrors(t, b.read(imported))
	for _, name := range []string{"init_from", "init_skip", "init_hash"} {
		if got := imported.state.GetAttr(name); !got.RawEquals(th.state.GetAttr(name)) {
			t.Errorf("%s is imported as %#v", name, got)
		}
	}

	moved := base + "-moved"
	if err := os.Rename(base, moved); err != nil {
		t.Fatal(err)
	}
	b.unchanged(th, config) // the record outlives the file
	change["init_from"] = cty.StringVal(moved)
	config = b.experiment(data, change)
	if p := b.plan(th, config); p.Diagnostics.HasErrors() || len(p.Replace) > 0 {
		t.Errorf("the same model elsewhere: %+v", p)
	}
	writeCode(t, filepath.Dir(moved), filepath.Base(moved), "other weights")
	if p := b.plan(th, config); len(p.Replace) != 1 || !p.Replace[0].Equals(cty.GetAttrPath("init_hash")) {
		t.Errorf("another model replaces by %#v, %+v", p.Replace, p.Diagnostics)
	}
}

// A model that is changed between plan and apply is not begun from.
func TestInitFromIsThePlannedOne(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	folder := writeCode(t, t.TempDir(), "base", "weights")
	config := b.experiment(data, values{"init_from": cty.StringVal(filepath.Join(folder, "base"))})
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	writeCode(t, folder, "base", "other weights")
	d := oneError(t, b.apply(context.Background(), b.call("op-run"), th, config, p), "Model is not the planned one")
	if !d.Path.Equals(cty.GetAttrPath("init_from")) || b.logged("starts.log") > 0 {
		t.Errorf("%+v, %d starts", d, b.logged("starts.log"))
	}
}

func TestInitFromMistakes(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	folder := writeCode(t, t.TempDir(), "base", "weights")
	given := cty.StringVal(filepath.Join(folder, "base"))
	for name, tt := range map[string]struct {
		change  values
		summary string
		at      string
	}{
		"nothing there":   {values{"init_from": cty.StringVal(folder + "/none")}, "Model of init_from cannot be used", "init_from"},
		"not a pattern":   {values{"init_from": given, "init_skip": texts("[a")}, "Not a pattern of names", "init_skip"},
		"nothing to skip": {values{"init_skip": texts("a")}, "Nothing to begin from", "init_skip"},
		"no epochs":       {values{"hyperparameters.epochs": cty.Zero}, "A run without epochs evaluates only", "hyperparameters"},
		"pods": {values{"init_from": given, "dataset_path": cty.StringVal("/data"), "cluster": cty.ObjectVal(values{"credential": cty.ObjectVal(values{
			"kubeconfig": cty.ObjectVal(values{"path": cty.StringVal("/none")})})})}, "init_from works on this machine only", "init_from"},
	} {
		d := oneError(t, b.plan(b.new(experiment), b.experiment(data, tt.change)).Diagnostics, tt.summary)
		if step, ok := d.Path[0].(cty.GetAttrStep); !ok || step.Name != tt.at {
			t.Errorf("%s: the error is at %#v", name, d.Path)
		}
	}
	// A model that is not known yet is not a mistake.
	for _, change := range []values{
		{"init_from": cty.UnknownVal(cty.String), "hyperparameters.epochs": cty.Zero},
		{"init_from": cty.UnknownVal(cty.String), "init_skip": texts("a")},
	} {
		p := b.plan(b.new(experiment), b.experiment(data, change))
		noErrors(t, p.Diagnostics)
		if p.Planned.GetAttr("init_hash").IsKnown() || p.Planned.GetAttr("spec_hash").IsKnown() {
			t.Errorf("%#v is known", p.Planned.GetAttr("init_hash"))
		}
	}
}

// An evaluation of a finished run measures what the run measured; a run that begins
// from an exported file is better than one that begins from nothing.
func TestRealTrainerBeginsFromAModel(t *testing.T) {
	b := realBench(t)
	data := b.make("train_dataset", "op-data", b.digits(values{"train": cty.NumberIntVal(1500), "test": cty.NumberIntVal(300)}))
	base := b.make(experiment, "op-base", b.experiment(data, nil))
	folder := b.folder(base)

	config := b.experiment(data, values{"init_from": cty.StringVal(string(folder)), "hyperparameters.epochs": cty.Zero})
	only := b.make(experiment, "op-only", config)
	b.unchanged(only, config)
	measured := func(th *thing, name string) cty.Value { return th.state.GetAttr("metrics").AsValueMap()[name] }
	for _, name := range []string{"accuracy", "loss"} {
		if got, want := measured(only, name), measured(base, name); !got.RawEquals(want) {
			t.Errorf("%s is %#v, was %#v", name, got, want)
		}
	}
	if text := step(launch.State{Status: spec.Status{Phase: spec.Running, Evaluated: -1}}); !strings.HasPrefix(text, "evaluates only") {
		t.Errorf("its progress is %q", text)
	}
	if s, err := b.folder(only).Status(); err != nil || s.Phase != spec.Succeeded || s.Step != 0 {
		t.Errorf("status %+v, %v", s, err)
	}

	file := filepath.Join(t.TempDir(), "base.safetensors")
	from := experimentRun{trainingRun{new(settings).launcherIn(b.runs), folder.Name()}, "",
		func(context.Context) (trainer, error) { return trainer(filepath.Join(b.dir, trainerName)), nil }}
	if _, err := from.Export(t.Context(), providers.RunExport{Path: file, Step: -1}); err != nil {
		t.Fatal(err)
	}
	again := b.make(experiment, "op-again", b.experiment(data, values{"init_from": cty.StringVal(file), "hyperparameters.epochs": cty.Zero}))
	if got, want := measured(again, "loss"), measured(base, "loss"); !got.RawEquals(want) {
		t.Errorf("from the file the loss is %#v, was %#v", got, want)
	}
	skipped := b.make(experiment, "op-skip",
		b.experiment(data, values{"init_from": cty.StringVal(file), "init_skip": texts("*/*"), "hyperparameters.epochs": cty.Zero}))
	if got, was := measured(skipped, "loss"), measured(base, "loss"); got.LessThanOrEqualTo(was).True() {
		t.Errorf("without any of the variables the loss is %#v, was %#v", got, was)
	}

	// A model that does not fit is named with both shapes.
	other := b.new(experiment)
	config = b.experiment(data, values{"init_from": cty.StringVal(file), "model": cty.StringVal("softmax")})
	d := oneError(t, b.plan(other, config).Diagnostics, "Model of init_from does not fit")
	if !d.Path.Equals(cty.GetAttrPath("init_from")) || !strings.Contains(d.Detail, "Variable \"output/weight\" has the shape [128 10]") {
		t.Errorf("%#v: %s", d.Path, d.Detail)
	}
	for _, th := range []*thing{base, only, again, skipped} {
		b.destroy(th)
	}
}
