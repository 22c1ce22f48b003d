package train

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// realBench is a bench whose trainer is the real one.
func realBench(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the real trainer")
	}
	b := newBench(t)
	path := filepath.Join(b.dir, trainerName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := programtest.Copy(trainerName, path); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRealTrainer(t *testing.T) {
	b := realBench(t)
	data := b.make("train_dataset", "op-data", b.digits(values{"train": cty.NumberIntVal(1500), "test": cty.NumberIntVal(200)}))
	b.unchanged(data, b.digits(values{"train": cty.NumberIntVal(1500), "test": cty.NumberIntVal(200)}))
	change := values{
		"model": cty.StringVal("softmax"), "hyperparameters.epochs": cty.NumberIntVal(2000), // far longer than the test
		"checkpoint.every_steps": cty.NumberIntVal(20),
	}
	config := b.experiment(data, change)
	th := b.leave("op-run", config)
	f := b.folder(th)
	trains := func(workers int) {
		t.Helper()
		eventually(t, "it trains", func() bool {
			s, err := f.Status()
			return err == nil && s.Phase == spec.Running && s.Step > 40 && s.Workers == workers
		})
	}
	trains(2)
	b.restart()
	noErrors(t, b.read(th))
	if status(th) != "running" {
		t.Fatalf("status is %s", status(th))
	}

	// One worker more, while it trains.
	change["worker.replicas"] = cty.NumberIntVal(3)
	config = b.experiment(data, change)
	b.again(th, config)
	trains(3)

	// One server more: it stops at a checkpoint and goes on as the same run.
	at, err := f.Status()
	if err != nil {
		t.Fatal(err)
	}
	change["parameter_server.replicas"] = cty.NumberIntVal(2)
	config = b.experiment(data, change)
	b.again(th, config)
	trains(3)
	if s, err := f.ReadSpec(); err != nil || s.ParameterServer.Replicas != 2 || b.folder(th) != f {
		t.Errorf("it goes on with %d servers in %s, %v", s.ParameterServer.Replicas, b.folder(th), err)
	}
	if s, err := f.Status(); err != nil || s.Step < at.Step || !restored(t, f) {
		t.Errorf("it was at step %d, and is at %d, %v", at.Step, s.Step, err)
	}

	// Its supervisor dies: it goes on from a checkpoint, one server less.
	eventually(t, "there is a checkpoint", func() bool {
		found, _ := filepath.Glob(filepath.Join(f.Checkpoints(), "step-*"))
		return len(found) > 0
	})
	kill(t, f)
	eventually(t, "its roles are gone", func() bool { return len(roles(t, f)) == 0 })
	noErrors(t, b.read(th))
	if status(th) != "lost" {
		t.Fatalf("status is %s", status(th))
	}
	change["parameter_server.replicas"] = cty.NumberIntVal(1)
	config = b.experiment(data, change)
	b.again(th, config)
	trains(3)
	b.destroy(th)
	if left := roles(t, f); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	b.destroy(data)
}

// restored reports whether the run ever went back to a checkpoint.
func restored(t *testing.T, f run.Folder) bool {
	t.Helper()
	data, err := os.ReadFile(f.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e spec.Event
		if json.Unmarshal(line, &e) == nil && e.Type == spec.EventRestore && e.Step > 0 {
			return true
		}
	}
	return false
}

// again plans and applies an update, and leaves the run going.
func (b *bench) again(th *thing, config cty.Value) {
	b.t.Helper()
	p := b.plan(th, config)
	noErrors(b.t, p.Diagnostics)
	if len(p.Replace) > 0 {
		b.t.Fatalf("replaces by %#v", p.Replace)
	}
	call := b.call("")
	stopping := make(chan struct{})
	close(stopping)
	call.Stopping = stopping
	noErrors(b.t, b.apply(context.Background(), call, th, config, p))
}

// roles lists the processes whose command line names the run's folder.
func roles(t *testing.T, f run.Folder) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		data, err := os.ReadFile(line) // it may have ended meanwhile
		if text := string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})); err == nil && strings.Contains(text, string(f)) {
			found = append(found, text)
		}
	}
	return found
}

// A supervisor that dies between the final model and its own last word leaves a
// status that says running. The model is kept, and to resume is to be done.
func TestFinishedModelOutlivesItsSupervisor(t *testing.T) {
	b := realBench(t)
	data := b.make("train_dataset", "op-data", b.digits(values{"train": cty.NumberIntVal(600), "test": cty.NumberIntVal(100)}))
	config := b.experiment(data, nil)
	th := b.leave("op-run", config)
	f := b.folder(th)
	var was spec.Status
	eventually(t, "the run ends", func() bool {
		var err error
		was, err = f.Status()
		return err == nil && was.Phase.Final() && len(roles(t, f)) == 0
	})
	if steps, _ := filepath.Glob(filepath.Join(f.Checkpoints(), "step-*")); was.Phase != spec.Succeeded || len(steps) > 0 {
		t.Fatalf("the run %s with checkpoints %v", was.Phase, steps)
	}
	events, err := os.ReadFile(f.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	updates := bytes.Count(events, []byte(`"type":"update"`))
	cut := was
	cut.Phase, cut.Ended = spec.Running, time.Time{}
	if err := run.WriteJSON(f.StatusFile(), cut); err != nil {
		t.Fatal(err)
	}

	noErrors(t, b.read(th))
	if status(th) != "lost" {
		t.Fatalf("status is %s", status(th))
	}
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 || !b.noted(providers.NoteChange, "resume: no process runs it") {
		t.Fatalf("replaces by %#v, notes %+v", p.Replace, b.notes)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	is, err := f.Status()
	if err != nil || status(th) != "succeeded" || b.folder(th) != f || is.Step != was.Step {
		t.Errorf("resumed, it is %s at step %d in %s, want step %d, %v", status(th), is.Step, b.folder(th), was.Step, err)
	}
	if events, err = os.ReadFile(f.Metrics()); err != nil || bytes.Count(events, []byte(`"type":"update"`)) != updates {
		t.Errorf("it trained again: %d updates became %d, %v", updates, bytes.Count(events, []byte(`"type":"update"`)), err)
	}
	b.destroy(th)
	b.destroy(data)
}

func TestRealTrainerFinishesAndFails(t *testing.T) {
	b := realBench(t)
	data := b.make("train_dataset", "op-data", b.digits(values{"train": cty.NumberIntVal(600), "test": cty.NumberIntVal(100)}))
	config := b.experiment(data, nil)
	th := b.make(experiment, "op-run", config)
	for _, name := range []string{"accuracy", "loss", "samples_per_second", "steps", "epochs", "elapsed_seconds"} {
		if _, ok := th.state.GetAttr("metrics").AsValueMap()[name]; !ok {
			t.Errorf("metrics have no %s: %s", name, show(th.state.GetAttr("metrics")))
		}
	}
	b.unchanged(th, config)

	// A finished run takes the rest down as a record, and trains nothing.
	recorded := b.experiment(data, values{"worker.replicas": cty.NumberIntVal(1), "parameter_server.replicas": cty.NumberIntVal(2)})
	before := th.state.GetAttr("metrics")
	b.again(th, recorded)
	if status(th) != "succeeded" || !th.state.GetAttr("metrics").RawEquals(before) {
		t.Errorf("a finished run became %s", show(th.state))
	}
	if p := b.plan(th, b.experiment(data, values{"hyperparameters.seed": cty.NumberIntVal(1)})); len(p.Replace) == 0 {
		t.Error("another seed is no new run")
	}
	b.destroy(th)

	oneError(t, b.plan(b.new(experiment), b.experiment(data, values{"model": cty.StringVal("mnist")})).Diagnostics, "There is no such model")

	// A run that would fail again is replaced.
	config = b.experiment(data, values{"hyperparameters.learning_rate": cty.NumberFloatVal(1e6), "hyperparameters.weight_decay": cty.NumberFloatVal(0.5)})
	failing := b.new(experiment)
	p := b.plan(failing, config)
	noErrors(t, p.Diagnostics)
	d := oneError(t, b.apply(context.Background(), b.call("op-bad"), failing, config, p), "The experiment failed")
	if !strings.Contains(d.Detail, "lower the learning rate") {
		t.Errorf("detail does not name the rate: %s", d.Detail)
	}
	if p := b.plan(failing, config); len(p.Replace) == 0 || !b.noted(providers.NoteChange, "new run: the last one failed") {
		t.Errorf("a failed run is not replaced: notes %+v", b.notes)
	}
	b.destroy(failing)

	// A record that is damaged on one machine stops the run, which can go on.
	folder, err := datasetFolder(data.state.GetAttr("uri").AsString())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(folder, "train.rio"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("damaged"), 100_000); err != nil {
		t.Fatal(err)
	}
	config = b.experiment(data, values{"hyperparameters.seed": cty.NumberIntVal(1)})
	stopping := b.new(experiment)
	p = b.plan(stopping, config)
	noErrors(t, p.Diagnostics)
	d = oneError(t, b.apply(context.Background(), b.call("op-damaged"), stopping, config, p), "The experiment was stopped before its end")
	if !strings.Contains(d.Detail, "fails its checksum") || !strings.Contains(d.Detail, "prepare them again") {
		t.Errorf("detail does not name the damage: %s", d.Detail)
	}
	b.destroy(stopping)
}

func TestRealTrainerStopsAtItsDeadlineAndGoesOn(t *testing.T) {
	b := realBench(t)
	data := b.make("train_dataset", "op-data", b.digits(values{"train": cty.NumberIntVal(600), "test": cty.NumberIntVal(100)}))
	with := func(deadline string) cty.Value {
		return b.experiment(data, values{"deadline": cty.StringVal(deadline), "hyperparameters.epochs": cty.NumberIntVal(1 << 40), "hyperparameters.max_steps": cty.NumberIntVal(200)})
	}
	th := b.new(experiment)
	config := with("1ms")
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	d := oneError(t, b.apply(context.Background(), b.call("op-run"), th, config, p), "The experiment was stopped before its end")
	if !strings.Contains(d.Detail, "deadline of 1ms") || !b.kept {
		t.Errorf("detail does not name the deadline: %s", d.Detail)
	}
	id := th.state.GetAttr("id")
	config = with("100h")
	noErrors(t, b.read(th))
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	if status(th) != "succeeded" || !th.state.GetAttr("id").RawEquals(id) {
		t.Errorf("state %s", show(th.state))
	}
	b.destroy(th)
}

func TestRealTrainerNamesBadData(t *testing.T) {
	b := realBench(t)
	dir := t.TempDir()
	for _, name := range []string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"} {
		// A header that promises 60,000 images, and nothing behind it.
		header := []byte{0, 0, 8, 3, 0, 0, 0xea, 0x60, 0, 0, 0, 28, 0, 0, 0, 28}
		if err := os.WriteFile(filepath.Join(dir, name), header, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty := t.TempDir()
	for _, path := range []string{dir, empty} {
		p := b.plan(b.new("train_dataset"), b.digits(values{"format": cty.StringVal("idx"), "path": cty.StringVal(path)}))
		var found []providers.Diagnostic
		for _, d := range p.Diagnostics {
			if d.Severity == providers.Error {
				found = append(found, d)
			}
		}
		if len(found) != 1 || !found[0].Path.Equals(cty.GetAttrPath("path")) || !strings.Contains(found[0].Detail, path) {
			t.Errorf("lying or missing files give %+v", found)
		}
	}
	if _, err := os.Stat(b.data); err == nil {
		t.Error("planning wrote something")
	}
}
