package train

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/spec"
)

// states are the ways in which an experiment can stand when it is changed.
var states = []string{"running", "finished", "failed", "lost", "lost without a checkpoint", "deadline"}

// unwritten are fields that no configuration can change by themselves.
var unwritten = []string{
	"engine", // follows from worker.gpus
	"loss",   // the model's

	"init_from.path", "init_from.skip", // of an experiment without init_from, whose hash changes too
}

// variation is a configuration in which one field is another one.
type variation struct {
	field  string
	change values
	data   *thing
	layers string
	at     string // the attribute or block that a replacement names
}

// fields are those of spec.Fields that the experiments of the bench have.
func (b *bench) fields() (all []string) {
	for _, field := range spec.Fields() {
		i := slices.IndexFunc(arguments(), func(a argument) bool { return a.field == field })
		switch {
		case slices.Contains(unwritten, field):
		case i >= 0 && !arguments()[i].isFor(b.code != ""):
		case field == "program.code" && b.code == "", slices.Contains([]string{"layers", "graph", "init_from.hash"}, field) && b.code != "":
		default:
			all = append(all, field)
		}
	}
	return all
}

// variations gives one for every field of spec.Fields: one that is new joins by
// itself, and fails here until it can be written, or is told not to be.
func (b *bench) variations(data *thing) (all []variation) {
	special := map[string]values{
		"name":                   {"name": cty.StringVal("other")},
		"model":                  {"model": cty.StringVal("softmax")},
		"graph":                  {"model": cty.NullVal(cty.String), "model_file": cty.StringVal(b.writeModel(16))},
		"strategy":               {"strategy": cty.UnknownVal(cty.String)}, // there is one: any other is not known yet
		"batch_per":              {"batch_per": cty.StringVal("worker")},
		"learning_rate_scaling":  {"batch_per": cty.StringVal("worker"), "learning_rate_scaling": cty.StringVal("linear")},
		"optimizer.nesterov":     {"hyperparameters.nesterov": cty.True, "hyperparameters.momentum": cty.MustParseNumberVal("0.9")},
		"optimizer.name":         {"hyperparameters.optimizer": cty.StringVal("adam"), "hyperparameters.momentum": cty.Zero},
		"optimizer.beta1":        {"hyperparameters.optimizer": cty.StringVal("adam"), "hyperparameters.beta1": cty.MustParseNumberVal("0.8")},
		"optimizer.beta2":        {"hyperparameters.optimizer": cty.StringVal("adamw"), "hyperparameters.beta2": cty.MustParseNumberVal("0.99")},
		"optimizer.epsilon":      {"hyperparameters.optimizer": cty.StringVal("adagrad"), "hyperparameters.epsilon": cty.MustParseNumberVal("1e-6")},
		"shuffle_block":          {"hyperparameters.shuffle_block": cty.NumberIntVal(8)},
		"clip_norm":              {"hyperparameters.clip_norm": cty.NumberIntVal(1)},
		"augmentation.crop":      {"hyperparameters.random_crop": cty.NumberIntVal(2)},
		"augmentation.flip":      {"hyperparameters.random_flip": cty.True},
		"schedule.name":          {"hyperparameters.schedule": cty.StringVal("cosine")},
		"schedule.warmup_epochs": {"hyperparameters.warmup_epochs": cty.MustParseNumberVal("0.5")},
		"schedule.decay_epochs": {"hyperparameters.schedule": cty.StringVal("step"),
			"hyperparameters.decay_epochs": cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.MustParseNumberVal("1.5")})},
		"schedule.decay_every": {"hyperparameters.schedule": cty.StringVal("step"), "hyperparameters.decay_every": cty.NumberIntVal(1)},
		"schedule.decay_factor": {"hyperparameters.schedule": cty.StringVal("step"), "hyperparameters.decay_every": cty.NumberIntVal(1),
			"hyperparameters.decay_factor": cty.MustParseNumberVal("0.5")},
		"schedule.minimum_learning_rate": {"hyperparameters.schedule": cty.StringVal("linear"),
			"hyperparameters.minimum_learning_rate": cty.MustParseNumberVal("0.01")},
		"init_from.hash":       {"init_from": cty.StringVal(filepath.Join(writeCode(b.t, b.t.TempDir(), "base", "weights"), "base"))},
		"deadline":             {"deadline": cty.StringVal("200h")},
		"deterministic":        {"deterministic": cty.True},
		"compute_type":         {"worker.gpus": cty.NumberIntVal(1), "compute_type": cty.StringVal("bf16")},
		"gpu_health":           {"gpu_health": cty.StringVal("required"), "worker.gpus": cty.NumberIntVal(1)},
		"worker.replicas":      {"worker.replicas": cty.NumberIntVal(3)},
		"worker.min_replicas":  {"worker.min_replicas": cty.NumberIntVal(2)},
		"program.command":      {"program.command": texts("sh", "other.sh")},
		"program.code":         {"program.code": cty.StringVal(writeCode(b.t, b.t.TempDir(), "train.sh", "exit"))},
		"program.environment":  {"program.environment": cty.MapVal(values{"MODE": cty.StringVal("slow")})},
		"program.parameters":   {"program.parameters": cty.ObjectVal(values{"rate": cty.MustParseNumberVal("0.2"), "fast": cty.True})},
		"program.framework":    {"program.framework": cty.StringVal("none")},
		"program.processes":    {"program.processes": cty.StringVal("2")},
		"program.evaluator":    {"program.evaluator": cty.True, "worker.min_replicas": cty.NumberIntVal(2)},
		"program.join_timeout": {"program.join_timeout": cty.StringVal("1m")},
		"program.stop_grace":   {"program.stop_grace": cty.StringVal("5s")},
	}
	base := spec.Default()
	base.Epochs = 2
	for _, field := range b.fields() {
		v := variation{field: field, at: pathOf(field).Steps()[0].String(), data: data}
		switch field {
		case "program.code":
			v.at = "code_hash"
		case "init_from.hash":
			v.at = "init_hash"
		}
		switch i := slices.IndexFunc(arguments(), func(a argument) bool { return a.field == field }); {
		case special[field] != nil:
			v.change = special[field]
		case i >= 0 && arguments()[i].get != nil:
			a := arguments()[i]
			v.change = values{strings.TrimPrefix(a.in+"."+a.name, "."): another(b.t, a, &base)}
		case field == "layers":
			v.layers = "sha256:2"
		case field == "dataset.hash":
			v.data, v.at = b.make("train_dataset", "op-other", b.digits(values{"seed": cty.NumberIntVal(7)})), "dataset_hash"
		case field == "dataset.path":
			v.change = values{"dataset": b.elsewhere(data)}
		default:
			b.t.Errorf("no configuration changes %s: say how in this test, or list it as unwritten", field)
		}
		all = append(all, v)
	}
	return all
}

// another gives a value of an argument that is not its default.
func another(t *testing.T, a argument, s *spec.Spec) cty.Value {
	t.Helper()
	switch v := a.get(s).(type) {
	case types.Bool:
		return cty.BoolVal(!v.ValueBool())
	case types.Number:
		n := cty.NumberVal(v.ValueBigFloat())
		if v.ValueBigFloat().IsInt() && a.field != "optimizer.momentum" && a.field != "optimizer.weight_decay" {
			return n.Add(cty.NumberIntVal(1))
		}
		return n.Add(cty.MustParseNumberVal("0.01"))
	}
	t.Errorf("say in this test what else %s can be", a.field)
	return cty.NilVal
}

// elsewhere copies a prepared dataset.
func (b *bench) elsewhere(data *thing) cty.Value {
	b.t.Helper()
	from, err := datasetFolder(data.state.GetAttr("uri").AsString())
	to := filepath.Join(b.t.TempDir(), "moved")
	if err == nil {
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return cty.StringVal((&url.URL{Scheme: "file", Path: to}).String())
}

// standing makes an experiment that stands in that way.
func (b *bench) standing(how string, data *thing) *thing {
	b.t.Helper()
	config := b.experiment(data, values{"deadline": cty.StringVal("2h")})
	switch how {
	case "finished":
		b.behave(behaviour{Save: true})
		return b.make(experiment, "op-finished", config)
	case "running":
		b.held(behaviour{Save: true})
		th := b.leave("op-running", config)
		eventually(b.t, "the run trains", func() bool {
			noErrors(b.t, b.read(th))
			s, err := b.folder(th).Status()
			return err == nil && s.Step > 1 && status(th) == "running"
		})
		return th
	}
	return b.ended(how, data)
}

// fate is what a plan must say of a change.
type fate struct {
	replace bool
	note    string
	loss    string
}

// fateOf is decision 10: what a change of that cost does to an experiment that
// stands so.
func (b *bench) fateOf(cost spec.Cost, how string) fate {
	checkpoint, running := "throws away its checkpoint of step 10", "stops the run that is training now"
	if b.code != "" {
		checkpoint, running = "throws away its checkpoints", "stops the program that is running now at step"
	}
	f := fate{replace: cost == spec.NewRun, note: map[spec.Cost]string{spec.Live: "live", spec.Resume: "resume: stops at a checkpoint", spec.NewRun: "new run"}[cost]}
	switch how {
	case "running":
		if f.replace {
			f.loss = running
		}
	case "finished":
		if !f.replace {
			f.note = "only recorded"
		}
	case "failed":
		f = fate{true, "new run: the last one failed", checkpoint}
	case "lost without a checkpoint":
		f = fate{true, "new run: the last one did not reach its end and left no checkpoint", ""}
	default:
		if f.replace {
			f.loss = checkpoint
		} else {
			f.note = "resume"
		}
	}
	return f
}

// TestPlanOfEveryChange plans a change of every field to an experiment in every
// state: each says what it costs, and nothing is thrown away unsaid.
func TestPlanOfEveryChange(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { planEveryChange(t, benchOf(t, kind)) })
	}
}

// kinds are what an experiment can run.
var kinds = []string{"model", "program"}

func benchOf(t *testing.T, kind string) *bench {
	b := newBench(t)
	if kind == "program" {
		b.code = writeCode(t, t.TempDir(), "train.sh", "sleep 1")
	}
	return b
}

func planEveryChange(t *testing.T, b *bench) {
	b.layers = "sha256:1"
	b.behave(behaviour{})
	data := b.make("train_dataset", "op-data", b.digits(nil))
	all := b.variations(data)
	planned := 0
	for _, how := range states {
		th := b.standing(how, data)
		for _, v := range all {
			t.Run(how+"/"+v.field, func(t *testing.T) {
				more := behaviour{Layers: v.layers, Engines: []string{"xla"}}
				b.behave(more)
				change := values{"deadline": cty.StringVal("2h")}
				for name, to := range v.change {
					change[name] = to
				}
				p := b.plan(th, b.experiment(v.data, change))
				noErrors(t, p.Diagnostics)
				want := b.fateOf(spec.CostOf(v.field), how)
				if replaced := len(p.Replace) > 0; replaced != want.replace {
					t.Errorf("replaces by %#v, want %v", p.Replace, want.replace)
				}
				if want.replace && how != "failed" && how != "lost without a checkpoint" &&
					!slices.ContainsFunc(p.Replace, func(at cty.Path) bool { return at.HasPrefix(cty.GetAttrPath(v.at)) }) {
					t.Errorf("replaces by %#v, want %s", p.Replace, v.at)
				}
				if !b.noted(providers.NoteChange, want.note) {
					t.Errorf("notes are %+v, want %q", b.notes, want.note)
				}
				losses := slices.DeleteFunc(slices.Clone(b.notes), func(n providers.Note) bool { return n.Kind != providers.NoteDisruption })
				if len(losses) > 0 != (want.loss != "") || want.loss != "" && !b.noted(providers.NoteDisruption, want.loss) {
					t.Errorf("throws away %+v, want %q", losses, want.loss)
				}
				planned++
			})
		}
	}
	if fields := len(b.fields()); planned < fields*len(states) {
		t.Errorf("%d changes were planned of %d fields in %d states", planned, fields, len(states))
	}
}

// TestApplyOfEachCost carries a change of each cost out on an experiment in
// every state.
func TestApplyOfEachCost(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { applyEachCost(t, kind) })
	}
}

func applyEachCost(t *testing.T, kind string) {
	changes := map[spec.Cost]values{
		spec.Live:   {"worker.replicas": cty.NumberIntVal(3), "deadline": cty.StringVal("200h")},
		spec.Resume: {"parameter_server.replicas": cty.NumberIntVal(3), "deadline": cty.StringVal("200h")},
		spec.NewRun: {"hyperparameters.seed": cty.NumberIntVal(9), "deadline": cty.StringVal("200h")},
	}
	if kind == "program" {
		changes[spec.NewRun] = values{"program.framework": cty.StringVal("none"), "deadline": cty.StringVal("200h")}
	}
	for _, how := range states {
		for cost, change := range changes {
			t.Run(how+"/"+cost.String(), func(t *testing.T) {
				b := benchOf(t, kind)
				data := b.make("train_dataset", "op-data", b.digits(nil))
				th := b.standing(how, data)
				starts, before := b.logged("starts.log"), b.folder(th)
				config := b.experiment(data, change)
				p := b.plan(th, config)
				noErrors(t, p.Diagnostics)
				want := b.fateOf(cost, how)
				if len(p.Replace) > 0 != want.replace {
					t.Fatalf("replaces by %#v", p.Replace)
				}
				b.behave(behaviour{Save: true}) // what starts now ends by itself
				if want.replace {
					b.destroy(th)
					th = b.make(experiment, "op-next", config)
				} else {
					if how == "running" && cost == spec.Live { // which is not started again
						go func() {
							for b.logged("live.log") == 0 {
								time.Sleep(time.Millisecond)
							}
							b.release()
						}()
					}
					noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
				}
				after, err := b.folder(th).ReadSpec()
				if err != nil {
					t.Fatal(err)
				}
				anew := 1
				if how == "finished" && !want.replace || how == "running" && cost == spec.Live {
					anew = 0
				}
				if n := b.logged("starts.log") - starts; n != anew {
					t.Errorf("started %d times, want %d", n, anew)
				}
				if kept := b.folder(th) == before; kept == want.replace || status(th) != "succeeded" {
					t.Errorf("the same run: %v, %s", kept, status(th))
				}
				if _, err := os.Stat(string(before)); (err == nil) == want.replace {
					t.Errorf("what is left of the run before: %v", err)
				}
				wanted := map[spec.Cost]bool{
					spec.Live: after.Worker.Replicas == 3, spec.Resume: after.ParameterServer.Replicas == 3, spec.NewRun: after.Seed == 9 || after.Program.Framework == "none",
				}[cost]
				if anew == 1 && !wanted {
					t.Errorf("it ran with %+v", after)
				}
				b.unchanged(th, config)
			})
		}
	}
}

// release lets a run that is held train to its end.
func (b *bench) release() {
	if err := os.WriteFile(filepath.Join(b.dir, "release"), nil, 0o600); err != nil {
		b.t.Error(err)
	}
}
