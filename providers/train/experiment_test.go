package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
)

// experiment gives a configuration of a small experiment with arguments
// changed: "worker.replicas" names one in a block.
func (b *bench) experiment(dataset *thing, change values) cty.Value {
	all := values{
		"model":            cty.StringVal("mlp"),
		"dataset":          cty.StringVal("/data/" + strings.Repeat("0", 64)),
		"hyperparameters":  cty.ObjectVal(values{"learning_rate": cty.MustParseNumberVal("0.05"), "epochs": cty.NumberIntVal(2)}),
		"worker":           cty.ObjectVal(values{"replicas": cty.NumberIntVal(2)}),
		"parameter_server": cty.ObjectVal(values{"replicas": cty.NumberIntVal(1)}),
	}
	if b.code != "" {
		delete(all, "model")
		delete(all, "hyperparameters")
		all["program"] = cty.ObjectVal(values{
			"command":     texts("sh", "train.sh", "--rate={{rate}}"),
			"code":        cty.StringVal(b.code),
			"framework":   cty.StringVal("tensorflow"),
			"environment": cty.MapVal(values{"MODE": cty.StringVal("fast")}),
			"parameters":  cty.ObjectVal(values{"rate": cty.MustParseNumberVal("0.1"), "fast": cty.True}),
		})
	}
	if dataset != nil {
		all["dataset"] = dataset.state.GetAttr("uri")
	}
	for name, v := range change {
		in, inner, nested := strings.Cut(name, ".")
		if !nested {
			all[name] = v
			continue
		}
		fields := values{}
		if old, ok := all[in]; ok {
			fields = old.AsValueMap()
		}
		fields[inner] = v
		all[in] = cty.ObjectVal(fields)
	}
	return object(b.t, b.schema("train_experiment").ImpliedType(), all)
}

// texts is a list of texts.
func texts(all ...string) cty.Value {
	list := make([]cty.Value, len(all))
	for i, text := range all {
		list[i] = cty.StringVal(text)
	}
	return cty.ListVal(list)
}

// writeCode writes a file of a program's code and returns the folder.
func writeCode(t *testing.T, folder, name, text string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

const experiment = "train_experiment"

// held makes an experiment that trains until the returned function is called.
func (b *bench) held(more behaviour) (release func()) {
	more.Hold = filepath.Join(b.dir, "release")
	b.behave(more)
	return func() {
		if err := os.WriteFile(more.Hold, nil, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// leave applies a create and leaves it running, as Ctrl-C does.
func (b *bench) leave(operation string, config cty.Value) *thing {
	b.t.Helper()
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(b.t, p.Diagnostics)
	call := b.call(operation)
	stopping := make(chan struct{})
	close(stopping)
	call.Stopping = stopping
	diags := b.apply(context.Background(), call, th, config, p)
	noErrors(b.t, diags)
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, "apply attaches") {
		b.t.Errorf("leaving a run says %+v", diags)
	}
	return th
}

func (b *bench) folder(th *thing) run.Folder {
	return run.Folder(th.state.GetAttr("run_dir").AsString())
}

func status(th *thing) string { return th.state.GetAttr("status").AsString() }

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestExperimentTrainsOnceAndStaysFinished(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	th := b.make(experiment, "op-run", config)
	if status(th) != "succeeded" {
		t.Errorf("status is %s", status(th))
	}
	accuracy := th.state.GetAttr("metrics").AsValueMap()["accuracy"]
	if !accuracy.RawEquals(cty.MustParseNumberVal("0.97312345")) {
		t.Errorf("accuracy is %#v", accuracy)
	}
	if rate := th.state.GetAttr("hyperparameters").GetAttr("learning_rate"); !rate.RawEquals(cty.MustParseNumberVal("0.05")) {
		t.Errorf("learning_rate is %#v", rate)
	}
	if momentum := th.state.GetAttr("hyperparameters").GetAttr("momentum"); !momentum.RawEquals(cty.MustParseNumberVal("0")) {
		t.Errorf("default momentum is shown as %#v", momentum)
	}
	var said strings.Builder
	for _, p := range b.progress {
		said.WriteString(p.Step + "\n" + p.Line + "\n")
	}
	for _, want := range []string{"Ctrl-C leaves run-", "evaluation at step 100: accuracy 0.9731, loss 0.1", "epoch "} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("progress does not say %q:\n%s", want, said.String())
		}
	}
	b.unchanged(th, config)

	// Neither the processes nor the files of a finished run are needed.
	if err := os.RemoveAll(string(b.folder(th))); err != nil {
		t.Fatal(err)
	}
	b.unchanged(th, config)
	if n := b.logged("starts.log"); n != 1 {
		t.Errorf("trained %d times", n)
	}
	b.destroy(th)
}

func TestWhatAChangeCosts(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	other := b.make("train_dataset", "op-other", b.digits(values{"seed": cty.NumberIntVal(7)}))
	finished := b.make(experiment, "op-run", b.experiment(data, nil))
	release := b.held(behaviour{})
	defer release()
	running := b.leave("op-running", b.experiment(data, nil))
	eventually(t, "the run trains", func() bool { noErrors(t, b.read(running)); return status(running) == "running" })

	hyper := func(name string) cty.Path { return cty.GetAttrPath("hyperparameters").GetAttr(name) }
	num := cty.NumberIntVal
	tests := []struct {
		name    string
		change  values
		dataset *thing
		replace cty.Path // nil: in place
		note    string   // on the running run
	}{
		{name: "learning rate", change: values{"hyperparameters.learning_rate": cty.MustParseNumberVal("0.1")}, replace: hyper("learning_rate"), note: "new run"},
		{name: "seed", change: values{"hyperparameters.seed": num(3)}, replace: hyper("seed"), note: "new run"},
		{name: "default written out", change: values{"hyperparameters.batch_size": num(64)}},
		{name: "batch size", change: values{"hyperparameters.batch_size": num(32)}, replace: hyper("batch_size"), note: "new run"},
		{name: "model", change: values{"model": cty.StringVal("softmax")}, replace: cty.GetAttrPath("model"), note: "new run"},
		{name: "data", dataset: other, replace: cty.GetAttrPath("dataset_hash"), note: "new run"},
		{name: "workers", change: values{"worker.replicas": num(4)}, note: "live: rescales the running experiment from 2 to 4 workers"},
		{name: "evaluation", change: values{"evaluation.every_steps": num(50)}, note: "live"},
		{name: "checkpoints", change: values{"checkpoint.every_seconds": num(7)}, note: "live"},
		{name: "servers", change: values{"parameter_server.replicas": num(2)}, note: "resume: stops at a checkpoint and continues"},
		{name: "unknown rate", change: values{"hyperparameters.learning_rate": cty.UnknownVal(cty.Number)}, replace: hyper("learning_rate"), note: "new run"},
		{name: "unknown workers", change: values{"worker.replicas": cty.UnknownVal(cty.Number)}, note: "live"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			from := data
			if test.dataset != nil {
				from = test.dataset
			}
			config := b.experiment(from, test.change)
			for _, th := range []*thing{finished, running} {
				p := b.plan(th, config)
				noErrors(t, p.Diagnostics)
				if test.replace == nil && len(p.Replace) > 0 || test.replace != nil && (len(p.Replace) != 1 || !p.Replace[0].Equals(test.replace)) {
					t.Errorf("replaces by %#v, want %#v", p.Replace, test.replace)
				}
				if th == finished && test.replace == nil && !p.Planned.GetAttr("status").RawEquals(cty.StringVal("succeeded")) {
					t.Error("a finished run does not stay finished")
				}
				if th == running && test.note != "" && !b.noted(providers.NoteChange, test.note) {
					t.Errorf("notes are %+v, want %q", b.notes, test.note)
				}
				if loss := b.noted(providers.NoteDisruption, "stops the run that is training now"); loss != (th == running && test.replace != nil) {
					t.Errorf("what is thrown away: %v, notes %+v", loss, b.notes)
				}
			}
		})
	}
}

func (b *bench) noted(kind providers.NoteKind, text string) bool {
	for _, n := range b.notes {
		if n.Kind == kind && strings.HasPrefix(n.Text, text) {
			return true
		}
	}
	return false
}

func TestRescaleReachesTheRunningRun(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	release := b.held(behaviour{})
	config := b.experiment(data, values{"wait": cty.False})
	th := b.make(experiment, "op-run", config)
	b.unchangedBut(th, config)
	eventually(t, "the run trains", func() bool { noErrors(t, b.read(th)); return status(th) == "running" })

	config = b.experiment(data, values{"wait": cty.False, "worker.replicas": cty.NumberIntVal(5)})
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	if n := b.logged("live.log"); n != 1 {
		t.Errorf("the run heard of %d changes, want 1", n)
	}
	release()
	eventually(t, "the run ends", func() bool { noErrors(t, b.read(th)); return status(th) == "succeeded" })
	b.unchanged(th, config)
}

// unchangedBut is unchanged for a run that goes on and whose numbers move.
func (b *bench) unchangedBut(th *thing, config cty.Value) {
	b.t.Helper()
	noErrors(b.t, b.read(th))
	p := b.plan(th, config)
	noErrors(b.t, p.Diagnostics)
	if !p.Planned.RawEquals(th.state) {
		b.t.Errorf("wait = false plans something")
	}
}

func TestCtrlCLeavesTheRunAndTheNextApplyAttaches(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	release := b.held(behaviour{})
	th := b.leave("op-run", config)
	if s := status(th); s != "running" && s != "pending" {
		t.Errorf("a run that was left is %s", s)
	}
	b.restart()
	eventually(t, "the run trains", func() bool { noErrors(t, b.read(th)); return status(th) == "running" })
	before := th.state
	time.Sleep(50 * time.Millisecond) // its numbers move meanwhile
	noErrors(t, b.read(th))
	if !th.state.RawEquals(before) {
		t.Error("a run that goes on shows as drift")
	}
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 || p.Planned.GetAttr("status").IsKnown() || !b.noted(providers.NoteChange, "live: attaches") {
		t.Errorf("the next plan is no update that waits: %v %+v", p.Replace, b.notes)
	}
	release()
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	if status(th) != "succeeded" {
		t.Errorf("status is %s", status(th))
	}
	if n := b.logged("starts.log"); n != 1 {
		t.Errorf("started %d times", n)
	}
	b.unchanged(th, config)
}

func TestCancelledCallReturnsAtOnce(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	defer b.held(behaviour{})()
	th := b.new(experiment)
	p := b.plan(th, config)
	ctx, cancel := context.WithCancel(context.Background())
	call := b.call("op-run")
	report := call.Progress
	call.Progress = func(p providers.Progress) { // the second Ctrl-C, once it trains
		report(p)
		if strings.HasPrefix(p.Step, "epoch") {
			cancel()
		}
	}
	noErrors(t, b.apply(ctx, call, th, config, p))
	if status(th) != "running" {
		t.Errorf("status is %s", status(th))
	}
}

func TestWaitingHasALimitTheRunHasNot(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	release := b.held(behaviour{})
	config := b.experiment(data, values{"timeouts": cty.ObjectVal(values{"create": cty.StringVal("300ms")})})
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	oneError(t, b.apply(context.Background(), b.call("op-run"), th, config, p), "The experiment is not done yet")
	if !b.kept || th.state.IsNull() || !local.Alive(b.folder(th)) {
		t.Error("the run was not kept")
	}
	release()
	eventually(t, "the run ends", func() bool { noErrors(t, b.read(th)); return status(th) == "succeeded" })
	b.unchanged(th, config)
}

func TestFailedRunSaysWhyAndIsReplaced(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	b.behave(behaviour{Fail: true})
	config := b.experiment(data, nil)
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	d := oneError(t, b.apply(context.Background(), b.call("op-run"), th, config, p), "The experiment failed")
	for _, want := range []string{"worker 0 ran out of memory", "allocation of 99 GB failed", string(b.folder(th))} {
		if !strings.Contains(d.Detail, want) {
			t.Errorf("detail does not say %q: %s", want, d.Detail)
		}
	}
	if strings.ContainsRune(d.Detail, 0x1b) {
		t.Error("a log's control characters reach the terminal")
	}
	if b.kept || th.state.IsNull() {
		t.Error("a failed run is to be stored, and tainted")
	}
	// A run that failed while nobody watched is replaced all the same.
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) != 1 || !p.Replace[0].Equals(cty.GetAttrPath("status")) {
		t.Errorf("replaces by %#v, want status", p.Replace)
	}
	b.destroy(th)
}

func TestLostRunResumesOrIsReplaced(t *testing.T) {
	for _, saved := range []bool{true, false} {
		b := newBench(t)
		data := b.make("train_dataset", "op-data", b.digits(nil))
		config := b.experiment(data, nil)
		release := b.held(behaviour{Save: saved})
		th := b.leave("op-run", config)
		f := b.folder(th)
		eventually(t, "the run trains", func() bool { s, err := f.Status(); return err == nil && s.Step > 1 })
		kill(t, f)
		noErrors(t, b.read(th))
		if status(th) != "lost" {
			t.Fatalf("a run without a supervisor is %s", status(th))
		}
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if replaced := len(p.Replace) > 0; replaced == saved {
			t.Errorf("with a checkpoint %v: replaced %v", saved, replaced)
		}
		release()
		if saved {
			noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
			if status(th) != "succeeded" || b.folder(th) != f {
				t.Errorf("resumed run is %s in %s", status(th), b.folder(th))
			}
			b.unchanged(th, config)
		}
	}
}

func TestStoppedRunGoesOn(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	release := b.held(behaviour{Save: true})
	th := b.new(experiment)
	p := b.plan(th, config)
	call := b.call("op-run")
	report := call.Progress
	stopped := false
	call.Progress = func(p providers.Progress) { // as a machine that shuts down does
		report(p)
		if strings.HasPrefix(p.Step, "epoch") && !stopped {
			stopped = true
			if err := local.Stop(t.Context(), local.Place(b.runs).Folder(launch.ID("op-run"))); err != nil {
				t.Error(err)
			}
		}
	}
	oneError(t, b.apply(context.Background(), call, th, config, p), "The experiment was stopped before its end")
	if !b.kept || status(th) != "stopped" {
		t.Errorf("kept %v, status %s", b.kept, status(th))
	}
	b.restart()
	noErrors(t, b.read(th))
	// What a running run cannot change, one that goes on can.
	config = b.experiment(data, values{"parameter_server.replicas": cty.NumberIntVal(2)})
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 || !b.noted(providers.NoteChange, "resume: ") {
		t.Errorf("replaces by %v, notes %+v", p.Replace, b.notes)
	}
	release()
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	if status(th) != "succeeded" || b.logged("starts.log") != 2 {
		t.Errorf("status %s after %d starts", status(th), b.logged("starts.log"))
	}
	b.unchanged(th, config)
}

func TestRunLostWhileWaitingIsKept(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	defer b.held(behaviour{Save: true})()
	th := b.new(experiment)
	p := b.plan(th, config)
	call := b.call("op-run")
	report := call.Progress
	killed := false
	call.Progress = func(p providers.Progress) {
		report(p)
		if strings.HasPrefix(p.Step, "epoch") && !killed {
			killed = true
			kill(t, local.Place(b.runs).Folder(launch.ID("op-run")))
		}
	}
	oneError(t, b.apply(context.Background(), call, th, config, p), "The experiment was lost")
	if !b.kept || status(th) != "lost" {
		t.Errorf("kept %v, status %s", b.kept, status(th))
	}
}

// kill ends a run's supervisor as the system would, by its identity.
func kill(t *testing.T, f run.Folder) {
	t.Helper()
	sup, err := f.ReadSupervisor()
	if err != nil || !sup.Alive() {
		t.Fatalf("no supervisor to kill: %v", err)
	}
	p, err := os.FindProcess(sup.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the supervisor dies", func() bool { return !sup.Alive() })
}
