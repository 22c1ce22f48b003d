package train

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

func TestExperimentMistakesAreOneErrorEach(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	str, num := cty.StringVal, cty.NumberIntVal
	worker := cty.GetAttrPath("worker")
	hyper := cty.GetAttrPath("hyperparameters")
	dir := cty.GetAttrPath("dataset_path")
	lab := cty.ObjectVal(values{"credential": cty.ObjectVal(values{"kubeconfig": cty.ObjectVal(values{"path": str("~/.kube/config")})})})
	placed := func(more values) values {
		all := values{"cluster": lab, "image": str("trainer:1"), "dataset_path": str("/data")}
		maps.Copy(all, more)
		return all
	}
	listed := b.schema(experiment).ImpliedType().AttributeType("volumes")
	volumes := func(v values) cty.Value { return cty.ListVal([]cty.Value{object(t, listed.ElementType(), v)}) }
	volume := cty.GetAttrPath("volumes").IndexInt(0)
	place := cty.GetAttrPath("checkpoint").GetAttr("place")
	tests := []struct {
		name    string
		change  values
		summary string
		at      cty.Path
	}{
		{"rate", values{"hyperparameters.learning_rate": num(0)}, "Value out of range", hyper.GetAttr("learning_rate")},
		{"infinite rate", values{"hyperparameters.learning_rate": cty.MustParseNumberVal("1e999")}, "Value out of range", hyper.GetAttr("learning_rate")},
		{"half a batch", values{"hyperparameters.batch_size": cty.NumberFloatVal(1.5)}, "Value out of range", hyper.GetAttr("batch_size")},
		{"huge batch", values{"hyperparameters.batch_size": cty.MustParseNumberVal("1e30")}, "Value out of range", hyper.GetAttr("batch_size")},
		{"a million workers", values{"worker.replicas": num(1000000)}, "Value out of range", worker.GetAttr("replicas")},
		{"more than there are", values{"worker.min_replicas": num(9)}, "Value out of range", worker.GetAttr("min_replicas")},
		{"weight decay of 1", values{"hyperparameters.weight_decay": num(1)}, "Value out of range", hyper.GetAttr("weight_decay")},
		{"rate of nothing", values{"hyperparameters.learning_rate": cty.MustParseNumberVal("1e-46")}, "Value too close to a limit", hyper.GetAttr("learning_rate")},
		{"momentum of nearly 1", values{"hyperparameters.momentum": cty.MustParseNumberVal("0.99999999")}, "Value too close to a limit", hyper.GetAttr("momentum")},
		{"optimizer", values{"hyperparameters.optimizer": str("lion")}, "Unknown value", hyper.GetAttr("optimizer")},
		{"adam with momentum", values{"hyperparameters.optimizer": str("adam"), "hyperparameters.momentum": cty.MustParseNumberVal("0.9")},
			"Another optimizer has this", hyper.GetAttr("momentum")},
		{"sgd with epsilon", values{"hyperparameters.epsilon": cty.MustParseNumberVal("1e-8")}, "Another optimizer has this", hyper.GetAttr("epsilon")},
		{"beta1 of 0", values{"hyperparameters.optimizer": str("adam"), "hyperparameters.beta1": num(0)}, "Value out of range", hyper.GetAttr("beta1")},
		{"beta2 of 1", values{"hyperparameters.optimizer": str("adam"), "hyperparameters.beta2": num(1)}, "Value out of range", hyper.GetAttr("beta2")},
		{"clip norm", values{"hyperparameters.clip_norm": num(-1)}, "Value out of range", hyper.GetAttr("clip_norm")},
		{"negative crop", values{"hyperparameters.random_crop": num(-1)}, "Value out of range", hyper.GetAttr("random_crop")},
		{"half a crop", values{"hyperparameters.random_crop": cty.NumberFloatVal(0.5)}, "Value out of range", hyper.GetAttr("random_crop")},
		{"wide crop", values{"hyperparameters.random_crop": num(28)}, "Records cannot be changed like that", hyper.GetAttr("random_crop")},
		{"negative block", values{"hyperparameters.shuffle_block": num(-1)}, "Value out of range", hyper.GetAttr("shuffle_block")},
		{"block of more than all records", values{"hyperparameters.shuffle_block": num(1001)}, "Value out of range", hyper.GetAttr("shuffle_block")},
		{"schedule", values{"hyperparameters.schedule": str("poly")}, "Unknown value", hyper.GetAttr("schedule")},
		{"schedule step without epochs", values{"hyperparameters.schedule": str("step")}, "Nothing says when to decay", hyper.GetAttr("schedule")},
		{"minimum of a constant rate", values{"hyperparameters.minimum_learning_rate": cty.MustParseNumberVal("0.01")},
			"The schedule has no minimum", hyper.GetAttr("minimum_learning_rate")},
		{"long warm-up", values{"hyperparameters.warmup_epochs": num(99)}, "Value out of range", hyper.GetAttr("warmup_epochs")},
		{"negative seed", values{"hyperparameters.seed": num(-1)}, "Value out of range", hyper.GetAttr("seed")},
		{"model", values{"model": str("mnist-cn")}, "There is no such model", cty.GetAttrPath("model")},
		{"strategy", values{"strategy": str("ring")}, "Unknown value", cty.GetAttrPath("strategy")},
		{"deadline", values{"deadline": str("soon")}, "Value out of range", cty.GetAttrPath("deadline")},
		{"scaling", values{"learning_rate_scaling": str("linear")}, "Scaling needs a growing batch", cty.GetAttrPath("learning_rate_scaling")},
		{"priority", values{"worker.priority": str("urgent")}, "Unknown value", worker.GetAttr("priority")},
		{"dataset path without cluster", values{"dataset_path": str("/data")}, "Only clusters know this", dir},
		{"memory without cluster", values{"worker.memory": str("1Gi")}, "Only clusters know this", worker.GetAttr("memory")},
		{"claim without cluster", values{"coordinator.storage": str("1Gi")}, "Only clusters know this", cty.GetAttrPath("coordinator").GetAttr("storage")},
		{"place without cluster", values{"checkpoint.place": str("gs://lab/run")}, "Only clusters know this", place},
		{"no dataset path", values{"cluster": lab, "image": str("trainer:1")}, "Pods do not see this machine's folders", dir},
		{"relative dataset path", placed(values{"dataset_path": str("data")}), "Path is not absolute", dir},
		{"no image", values{"cluster": lab, "dataset_path": str("/data")}, "The pods have no image", cty.GetAttrPath("image")},
		{"pull policy", placed(values{"image_pull_policy": str("always")}), "Unknown value", cty.GetAttrPath("image_pull_policy")},
		{"port", placed(values{"port": num(65535)}), "Value out of range", cty.GetAttrPath("port")},
		{"memory", placed(values{"worker.memory": str("2GB")}), "Not an amount", worker.GetAttr("memory")},
		{"no cores", placed(values{"parameter_server.cpu": str("0")}), "Not an amount", cty.GetAttrPath("parameter_server").GetAttr("cpu")},
		{"negative storage", placed(values{"coordinator.storage": str("-1Gi")}), "Not an amount", cty.GetAttrPath("coordinator").GetAttr("storage")},
		{"bandwidth", placed(values{"worker.bandwidth_mbps": num(0)}), "Value out of range", worker.GetAttr("bandwidth_mbps")},
		{"two sources", placed(values{"volumes": volumes(values{"mount_path": str("/v"), "claim": str("v"), "secret": str("v")})}), "A volume has one source", volume},
		{"no source", placed(values{"volumes": volumes(values{"mount_path": str("/v")})}), "A volume has one source", volume},
		{"relative mount", placed(values{"volumes": volumes(values{"mount_path": str("v"), "claim": str("v")})}), "Mount path is not absolute", volume.GetAttr("mount_path")},
		{"sub path", placed(values{"volumes": volumes(values{"mount_path": str("/v"), "claim": str("v"), "sub_path": str("../x")})}), "Path leads out of the volume", volume.GetAttr("sub_path")},
		{"place of checkpoints", placed(values{"checkpoint.place": str("https://lab/run")}), "Not a place for checkpoints", place},
		{"checkpoints on no volume", placed(values{"checkpoint.place": str("/ckpt")}), "Checkpoints would be lost", place},
		{"checkpoints beside a volume", placed(values{"checkpoint.place": str("/volume/a"), "volumes": volumes(values{"mount_path": str("/vol"), "claim": str("v")})}), "Checkpoints would be lost", place},
		{"checkpoints in a pod", placed(values{"checkpoint.place": str("/v/a"), "volumes": volumes(values{"mount_path": str("/v"), "empty_dir": str("1Gi")})}), "Checkpoints would be lost", place},
		{"checkpoints in a Secret", placed(values{"checkpoint.place": str("/v"), "volumes": volumes(values{"mount_path": str("/v"), "secret": str("v")})}), "Checkpoints would be lost", place},
		{"checkpoints not to be written", placed(values{"checkpoint.place": str("/v/a/../b"), "volumes": volumes(values{"mount_path": str("/v/"), "claim": str("v"), "read_only": cty.True})}), "Checkpoints would be lost", place},
		{"connection", placed(values{"cluster": cty.ObjectVal(values{"endpoint": str("https://192.0.2.1:6443")})}), "Not one way to a credential", cty.GetAttrPath("cluster").GetAttr("credential")},
		{"relative dataset", values{"dataset": str("data/mnist")}, "Dataset is not a folder", cty.GetAttrPath("dataset")},
		{"remote dataset", values{"dataset": str("file://host/data")}, "Dataset is not a folder", cty.GetAttrPath("dataset")},
		{"no dataset", values{"dataset": str("/nonexistent/stoke")}, "There is no such dataset", cty.GetAttrPath("dataset")},
		{"gpus", values{"worker.gpus": num(1)}, "stoke-trainer-gpu was not found", worker.GetAttr("gpus")},
		{"compute type", values{"worker.gpus": num(1), "compute_type": str("f16")}, "Unknown value", cty.GetAttrPath("compute_type")},
		{"bf16 on the CPU", values{"compute_type": str("bf16")}, "The cpu engine computes in f32", cty.GetAttrPath("compute_type")},
		{"deterministic in tf32", values{"worker.gpus": num(1), "deterministic": cty.True, "compute_type": str("tf32")},
			"Deterministic runs compute in f32", cty.GetAttrPath("compute_type")},
		{"more GPUs", values{"worker.gpus": num(2)}, "A worker uses one GPU", worker.GetAttr("gpus")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := b.plan(b.new(experiment), b.experiment(data, test.change))
			if d := oneError(t, p.Diagnostics, test.summary); !d.Path.Equals(test.at) {
				t.Errorf("error is at %#v, want %#v", d.Path, test.at)
			}
		})
	}
	for name, v := range map[string]values{
		"bucket":             {"checkpoint.place": str("s3://lab/run")},
		"claim":              {"checkpoint.place": str("/v/a"), "volumes": volumes(values{"mount_path": str("/v"), "claim": str("v")})},
		"all of a claim":     {"checkpoint.place": str("/v"), "volumes": volumes(values{"mount_path": str("/v/"), "claim": str("v"), "sub_path": str("a")})},
		"claim of some name": {"checkpoint.place": str("/v"), "volumes": volumes(values{"mount_path": str("/v"), "claim": cty.UnknownVal(cty.String)})},
		"folder of nodes":    {"checkpoint.place": str("/v/a"), "volumes": volumes(values{"mount_path": str("/v"), "host_path": str("/mnt/shared")})},
		"some volume":        {"checkpoint.place": str("/v"), "volumes": volumes(values{"mount_path": cty.UnknownVal(cty.String), "claim": str("v")})},
		"some volumes":       {"checkpoint.place": str("/v"), "volumes": cty.UnknownVal(cty.List(listed.ElementType()))},
	} {
		t.Run("checkpoints on "+name, func(t *testing.T) {
			noErrors(t, b.plan(b.new(experiment), b.experiment(data, placed(v))).Diagnostics)
		})
	}
	b.behave(behaviour{Engines: []string{"xla"}})
	noErrors(t, b.plan(b.new(experiment), b.experiment(data, values{"worker.gpus": num(1)})).Diagnostics)
	if _, err := os.Stat(b.runs); err == nil {
		t.Error("planning wrote to the runs folder")
	}
}

func TestTrainerThatIsMissingIsSaidWhilePlanning(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	if err := os.Remove(filepath.Join(b.dir, trainerName)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	oneError(t, b.plan(b.new(experiment), b.experiment(data, nil)).Diagnostics, "stoke-trainer was not found")
}

func TestUnknownsLeaveTheCreateOpen(t *testing.T) {
	b := newBench(t)
	unknown := cty.UnknownVal(cty.String)
	p := b.plan(b.new(experiment), b.experiment(nil, values{"dataset": unknown}))
	noErrors(t, p.Diagnostics)
	for _, name := range []string{"id", "status", "metrics", "spec_hash", "dataset_hash"} {
		if p.Planned.GetAttr(name).IsKnown() {
			t.Errorf("%s is known although the dataset is not", name)
		}
	}
	p = b.plan(b.new(experiment), b.experiment(nil, values{"hyperparameters": cty.UnknownVal(b.schema(experiment).ImpliedType().AttributeType("hyperparameters"))}))
	noErrors(t, p.Diagnostics)
	if p.Planned.GetAttr("spec_hash").IsKnown() {
		t.Error("spec_hash is known although the hyperparameters are not")
	}
	// A dataset that is yet to be made is known by its hash.
	p = b.plan(b.new(experiment), b.experiment(nil, nil))
	noErrors(t, p.Diagnostics)
	if !p.Planned.GetAttr("spec_hash").IsKnown() {
		t.Error("a planned dataset's hash is not used")
	}
}

func TestLaunchThatFailsLeavesNothing(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	b.behave(behaviour{Refuse: true})
	config := b.experiment(data, nil)
	th := b.new(experiment)
	p := b.plan(th, config)
	d := oneError(t, b.apply(t.Context(), b.call("op-run"), th, config, p), "Experiment could not be launched")
	if want := "no disk left"; !contains(d.Detail, want) {
		t.Errorf("detail does not say %q: %s", want, d.Detail)
	}
	if entries, _ := os.ReadDir(b.runs); len(entries) > 0 || !th.state.IsNull() {
		t.Errorf("left behind: %v, %s", entries, show(th.state))
	}
}

func TestImportTakesAnIDOrAFolder(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, values{"evaluation.every_steps": cty.NumberIntVal(10)})
	made := b.make(experiment, "op-run", config)
	for _, id := range []string{made.state.GetAttr("id").AsString(), made.state.GetAttr("run_dir").AsString()} {
		resp := b.p.Import(t.Context(), importRequest(id))
		noErrors(t, resp.Diagnostics)
		th := &thing{typ: experiment, state: resp.Objects[0].State, private: resp.Objects[0].Private}
		noErrors(t, b.read(th))
		if status(th) != "succeeded" || !th.state.GetAttr("spec_hash").RawEquals(made.state.GetAttr("spec_hash")) {
			t.Errorf("imported as %s", show(th.state))
		}
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if len(p.Replace) > 0 {
			t.Errorf("an imported run is replaced: %#v", p.Replace)
		}
	}
	for _, id := range []string{"", "run-0000000000000000", "/etc", "../" + made.state.GetAttr("id").AsString()} {
		oneError(t, b.p.Import(t.Context(), importRequest(id)).Diagnostics, "There is no such run")
	}
}

func TestEveryFieldOfTheSpecHasAPlace(t *testing.T) {
	computed := map[string]bool{"loss": true, "layers": true, "engine": true, "dataset.path": true, "dataset.hash": true, "program.code": true,
		"graph": true, "init_from.hash": true}
	have := make(map[string]bool)
	for _, a := range arguments() {
		have[a.field] = true
	}
	for _, field := range spec.Fields() {
		if !have[field] && !computed[field] {
			t.Errorf("nobody can set %s", field)
		}
	}
}

func TestSupervisorNumberOfSomebodyElseIsLeftAlone(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	defer b.held(behaviour{})()
	victim := b.leave("op-victim", b.experiment(data, nil))
	th := b.leave("op-run", b.experiment(data, nil))
	bystander, err := b.folder(victim).ReadSupervisor()
	if err != nil {
		t.Fatal(err)
	}
	kill(t, b.folder(th))
	// The machine gives the dead supervisor's number to somebody else.
	old, err := b.folder(th).ReadSupervisor()
	if err != nil {
		t.Fatal(err)
	}
	old.PID = bystander.PID
	for _, file := range []string{b.folder(th).Supervisor(), filepath.Join(string(b.folder(th)), "launched.json")} {
		if err := run.WriteJSON(file, old); err != nil {
			t.Fatal(err)
		}
	}
	if local.Alive(b.folder(th)) {
		t.Error("another process counts as the supervisor")
	}
	b.destroy(th)
	if !bystander.Alive() {
		t.Error("a process that is not ours was stopped")
	}
}
