package train

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// installGPU puts a fake trainer with GPUs into a folder.
func (b *bench) installGPU(dir string, as behaviour) string {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(dir, gpuTrainerName)
	if err := os.Symlink(self, path); err != nil {
		b.t.Fatal(err)
	}
	if err := run.WriteJSON(filepath.Join(dir, gpuBehaviour), as); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func cards(n int) (all []device) {
	for i := range n {
		all = append(all, device{i, "NVIDIA H200"})
	}
	return all
}

// What keeps GPUs from being used is an error of the plan, which names it.
func TestGPUsThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		as       behaviour
		replicas int64
		summary  string
		detail   string
	}{
		"no driver": {behaviour{Problem: "no NVIDIA driver: /dev/nvidiactl does not exist"}, 1,
			"GPUs cannot be used on this machine", "stoke-trainer-gpu: no NVIDIA driver: /dev/nvidiactl does not exist. Set gpus = 0"},
		"a build without the engine": {behaviour{}, 1, "stoke-trainer-gpu was not found", "has no engine for GPUs, but cpu"},
		"fewer GPUs": {behaviour{Engines: []string{"xla"}, GPUs: cards(2)}, 3,
			"This machine has fewer GPUs", "3 workers with 1 GPU each need 3, and"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			data := b.make("train_dataset", "op-data", b.digits(nil))
			b.installGPU(b.dir, test.as)
			config := b.experiment(data, values{"worker.gpus": cty.NumberIntVal(1), "worker.replicas": cty.NumberIntVal(test.replicas)})
			d := oneError(t, b.plan(b.new(experiment), config).Diagnostics, test.summary)
			if !d.Path.Equals(cty.GetAttrPath("worker").GetAttr("gpus")) || !strings.Contains(d.Detail, test.detail) {
				t.Errorf("%#v: %s", d.Path, d.Detail)
			}
			cpu := b.experiment(data, values{"worker.replicas": cty.NumberIntVal(test.replicas)})
			noErrors(t, b.plan(b.new(experiment), cpu).Diagnostics)
		})
	}
}

// A run with GPUs is started, and resumed, by the trainer that has their engine; the
// plan notes which. All other runs are started by the trainer that needs no library.
func TestTrainerOfGPUs(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	path := b.installGPU(b.dir, behaviour{Engines: []string{"xla"}, GPUs: cards(2)})
	supervisors := func() string {
		log, _ := os.ReadFile(filepath.Join(b.dir, "supervisors.log"))
		return strings.Join(strings.Fields(string(log)), " ")
	}
	b.make(experiment, "op-cpu", b.experiment(data, nil))
	if b.noted(providers.NoteFact, "1 GPU") {
		t.Errorf("a run on the CPU: %+v", b.notes)
	}
	config := b.experiment(data, values{"worker.gpus": cty.NumberIntVal(1)})
	th := b.make(experiment, "op-gpu", config)
	if !b.noted(providers.NoteFact, "1 GPU for each worker: engine xla, tf32, by "+path) {
		t.Errorf("a run on a GPU: %+v", b.notes)
	}
	if got, want := supervisors(), trainerName+" "+gpuTrainerName; got != want {
		t.Errorf("started by %s, want %s", got, want)
	}
	b.unchanged(th, config)
	more := b.experiment(data, values{"worker.gpus": cty.NumberIntVal(1), "worker.replicas": cty.NumberIntVal(3)})
	oneError(t, b.plan(th, more).Diagnostics, "This machine has fewer GPUs")
}

// Workers with GPUs hold the parameters themselves, unless the configuration says otherwise.
func TestStrategyOfGPUs(t *testing.T) {
	b := newBench(t)
	b.installGPU(b.dir, behaviour{Engines: []string{"xla"}, GPUs: cards(2)})
	data := b.make("train_dataset", "op-data", b.digits(nil))
	one := cty.NumberIntVal(1)
	for name, test := range map[string]struct {
		change values
		want   string // "": it is not known
	}{
		"no GPU":       {values{}, spec.StrategyParameterServer},
		"one GPU":      {values{"worker.gpus": one}, spec.StrategyAllReduce},
		"two workers":  {values{"worker.gpus": one, "worker.replicas": cty.NumberIntVal(2)}, spec.StrategyAllReduce},
		"asynchronous": {values{"worker.gpus": one, "synchronous": cty.False}, spec.StrategyParameterServer},
		"servers":      {values{"worker.gpus": one, "parameter_server": cty.ObjectVal(values{"replicas": one})}, spec.StrategyParameterServer},
		"given":        {values{"worker.gpus": one, "strategy": cty.StringVal(spec.StrategyParameterServer)}, spec.StrategyParameterServer},
		"not known":    {values{"worker.gpus": cty.UnknownVal(cty.Number)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, given := test.change["parameter_server"]; !given {
				test.change["parameter_server"] = cty.NullVal(cty.DynamicPseudoType)
			}
			p := b.plan(b.new(experiment), b.experiment(data, test.change))
			noErrors(t, p.Diagnostics)
			strategy := p.Planned.GetAttr("strategy")
			if want := cty.StringVal(test.want); test.want == "" && strategy.IsKnown() || test.want != "" && !strategy.RawEquals(want) {
				t.Errorf("planned %#v", strategy)
			}
		})
	}
	config := b.experiment(data, values{"worker.gpus": one, "parameter_server": cty.NullVal(cty.DynamicPseudoType)})
	b.unchanged(b.make(experiment, "op-gpu", config), config)
}

// A run keeps its strategy, and its number of servers, where the configuration leaves the
// strategy out: an older default is no change of the configuration.
func TestStrategyOfAnExistingRun(t *testing.T) {
	b := newBench(t)
	b.installGPU(b.dir, behaviour{Engines: []string{"xla"}, GPUs: cards(2)})
	data := b.make("train_dataset", "op-data", b.digits(nil))
	none := cty.NullVal(cty.DynamicPseudoType)
	config := func(strategy cty.Value, more values) cty.Value {
		change := values{"worker.gpus": cty.NumberIntVal(1), "parameter_server": none, "strategy": strategy}
		maps.Copy(change, more)
		return b.experiment(data, change)
	}
	out := cty.NullVal(cty.String)
	for _, strategy := range []string{spec.StrategyParameterServer, spec.StrategyAllReduce} {
		th := b.make(experiment, "op-"+strategy, config(cty.StringVal(strategy), nil))
		b.unchanged(th, config(out, nil))
		p := b.plan(th, config(out, values{"synchronous": cty.False}))
		noErrors(t, p.Diagnostics)
		if is := p.Planned.GetAttr("strategy"); !is.RawEquals(cty.StringVal(spec.StrategyParameterServer)) {
			t.Errorf("an asynchronous run has %#v", is)
		}
	}
}

// A finished run that changes nothing asks nothing of GPUs.
func TestFinishedRunNeedsNoGPU(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	b.installGPU(b.dir, behaviour{Engines: []string{"xla"}, GPUs: cards(2)})
	config := b.experiment(data, values{"worker.gpus": cty.NumberIntVal(1)})
	th := b.make(experiment, "op-gpu", config)
	if err := run.WriteJSON(filepath.Join(b.dir, gpuBehaviour), behaviour{Problem: "no driver"}); err != nil {
		t.Fatal(err)
	}
	b.unchanged(th, config)
	bf16 := b.experiment(data, values{"worker.gpus": cty.NumberIntVal(1), "compute_type": cty.StringVal("bf16")})
	oneError(t, b.plan(th, bf16).Diagnostics, "GPUs cannot be used on this machine")
}

// The compute type is recorded only where it is given, and a plan names it as the change.
func TestComputeTypeOfAnExperiment(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	b.installGPU(b.dir, behaviour{Engines: []string{"xla"}, GPUs: cards(2), Hold: filepath.Join(b.dir, "hold")})
	gpus := values{"worker.gpus": cty.NumberIntVal(1), "wait": cty.False}
	config := b.experiment(data, gpus)
	th := b.make(experiment, "op-gpu", config)
	if !th.state.GetAttr("compute_type").IsNull() {
		t.Errorf("a default is recorded: %#v", th.state.GetAttr("compute_type"))
	}
	for given, changed := range map[string]bool{spec.ComputeTF32: false, spec.ComputeBF16: true} {
		gpus["compute_type"] = cty.StringVal(given)
		p := b.plan(th, b.experiment(data, gpus))
		noErrors(t, p.Diagnostics)
		if len(p.Replace) > 0 || b.noted(providers.NoteChange, "resume: stops at a checkpoint") != changed {
			t.Errorf("%s: replaces %#v, notes %+v", given, p.Replace, b.notes)
		}
	}
}

// gpu_trainer names the program; a path without a program is an error of the provider
// block.
func TestGPUTrainerOfTheProvider(t *testing.T) {
	b := newBench(t)
	path := b.installGPU(t.TempDir(), behaviour{Engines: []string{"xla"}})
	p, err := Entry("test").New()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := p.Schema(context.Background())
	configure := func(path string) providers.Diagnostics {
		return p.Configure(context.Background(), object(t, s.Provider.ImpliedType(), values{
			"runs_dir": cty.StringVal(b.runs), "datasets_dir": cty.StringVal(b.data),
			"trainer": cty.StringVal(filepath.Join(b.dir, trainerName)), "gpu_trainer": cty.StringVal(path),
		}))
	}
	if d := oneError(t, configure(path+"-none"), "The trainer cannot be used"); !d.Path.Equals(cty.GetAttrPath("gpu_trainer")) {
		t.Errorf("error is at %#v", d.Path)
	}
	if p, err = Entry("test").New(); err != nil {
		t.Fatal(err)
	}
	noErrors(t, configure(path))
	b.p = p
	data := b.make("train_dataset", "op-data", b.digits(nil))
	noErrors(t, b.plan(b.new(experiment), b.experiment(data, values{"worker.gpus": cty.NumberIntVal(1)})).Diagnostics)
	if !b.noted(providers.NoteFact, "1 GPU for each worker: engine xla, tf32, by "+path) {
		t.Errorf("notes %+v", b.notes)
	}
}
