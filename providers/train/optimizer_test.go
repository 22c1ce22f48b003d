package train

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/runtime/spec"
)

// The optimizer decides about the learning rate of an experiment that gives
// none; what else is left out stays out.
func TestOptimizerOfAnExperiment(t *testing.T) {
	b := newBench(t)
	b.behave(behaviour{Save: true})
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, values{
		"hyperparameters.learning_rate": cty.NullVal(cty.Number),
		"hyperparameters.optimizer":     cty.StringVal("adam"),
		"hyperparameters.beta2":         cty.MustParseNumberVal("0.99"),
		"hyperparameters.clip_norm":     cty.NumberIntVal(1),
		"hyperparameters.shuffle_block": cty.NumberIntVal(8),
		"hyperparameters.random_crop":   cty.NumberIntVal(4),
		"hyperparameters.random_flip":   cty.True,
		"hyperparameters.schedule":      cty.StringVal("step"),
		"hyperparameters.decay_epochs":  cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.MustParseNumberVal("1.5")}),
	})
	th := b.make(experiment, "op-adam", config)
	got, err := b.folder(th).ReadSpec()
	if err != nil {
		t.Fatal(err)
	}
	wantedOptimizer := spec.Optimizer{Name: "adam", Beta2: 0.99}
	wantedSchedule := spec.Schedule{Name: "step", DecayEpochs: "[1,1.5]"}
	if got.LearningRate != 0.001 || got.ClipNorm != 1 || got.ShuffleBlock != 8 || got.Augmentation != (spec.Augmentation{Crop: 4, Flip: true}) || got.Optimizer != wantedOptimizer || got.Schedule != wantedSchedule {
		t.Errorf("spec %+v", got)
	}
	state := th.state.GetAttr("hyperparameters")
	if !state.GetAttr("learning_rate").RawEquals(cty.MustParseNumberVal("0.001")) || !state.GetAttr("beta1").IsNull() {
		t.Errorf("state %s", show(state))
	}
	b.unchanged(th, config)

	// An import has them again.
	resp := b.p.Import(t.Context(), importRequest(th.state.GetAttr("id").AsString()))
	noErrors(t, resp.Diagnostics)
	imported := &thing{typ: experiment, state: resp.Objects[0].State, private: resp.Objects[0].Private}
	noErrors(t, b.read(imported))
	if !imported.state.GetAttr("hyperparameters").RawEquals(state) {
		t.Errorf("imported as %s, want %s", show(imported.state.GetAttr("hyperparameters")), show(state))
	}
}
