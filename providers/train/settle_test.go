package train

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

func TestInterruptedLaunchIsSettled(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	place, id := local.Place(b.runs), launch.ID("op-run")
	of, diags := planned(t, p.Planned)
	if diags != nil {
		t.Fatal(diags)
	}

	gone := func(when string) {
		t.Helper()
		if got := b.settle(experiment, "op-run", p.Planned); !got.state.IsNull() {
			t.Errorf("%s: a run that never started was found", when)
		}
		if _, err := os.Lstat(string(place.Folder(id))); !os.IsNotExist(err) {
			t.Errorf("%s: its folder is still there", when)
		}
	}
	gone("nothing happened")
	if _, err := place.Create(t.Context(), id, "op-run", of, launch.Code{}); err != nil {
		t.Fatal(err)
	}
	gone("killed before the launch")

	// Killed once the record was written, before "go": nobody runs it, and the
	// next apply starts it, once.
	f, err := place.Create(t.Context(), id, "op-run", of, launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WriteJSON(filepath.Join(string(f), "launched.json"), run.Process{PID: 1, Start: 1, Boot: "another"}); err != nil {
		t.Fatal(err)
	}
	got := b.settle(experiment, "op-run", p.Planned)
	if got.state.IsNull() || status(got) != "lost" {
		t.Fatalf("settled as %s", show(got.state))
	}
	next := b.plan(got, config)
	noErrors(t, next.Diagnostics)
	if len(next.Replace) > 0 {
		t.Errorf("a run that has nothing to lose is replaced: %v", next.Replace)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), got, config, next))
	if status(got) != "succeeded" || b.logged("starts.log") != 1 {
		t.Errorf("status %s after %d starts", status(got), b.logged("starts.log"))
	}
	b.unchanged(got, config)
}

// planned reads the spec that a planned state means.
func planned(t *testing.T, v cty.Value) (spec.Spec, error) {
	t.Helper()
	s := spec.Default()
	s.Name, s.Model, s.Epochs = "mlp", "mlp", 2
	s.Worker.Replicas = 2
	folder, err := datasetFolder(v.GetAttr("dataset").AsString())
	s.Dataset = spec.Dataset{Path: folder, Hash: v.GetAttr("dataset_hash").AsString()}
	if s.Hash() != v.GetAttr("spec_hash").AsString() {
		t.Errorf("planned hash is %s, want %s", v.GetAttr("spec_hash").AsString(), s.Hash())
	}
	return s, err
}

func TestRunningLaunchIsAdoptedNotRepeated(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	th := b.new(experiment)
	p := b.plan(th, config)
	release := b.held(behaviour{})
	b.leave("op-run", config) // its result never reaches the journal

	got := b.settle(experiment, "op-run", p.Planned)
	if got.state.IsNull() || status(got) != "running" {
		t.Fatalf("settled as %s", show(got.state))
	}
	if other := b.settle(experiment, "op-other", p.Planned); !other.state.IsNull() {
		t.Error("another operation's run was taken over")
	}
	next := b.plan(got, config)
	noErrors(t, next.Diagnostics)
	release()
	noErrors(t, b.apply(context.Background(), b.call(""), got, config, next))
	if status(got) != "succeeded" || b.logged("starts.log") != 1 {
		t.Errorf("status %s after %d starts", status(got), b.logged("starts.log"))
	}
	b.unchanged(got, config)
	b.destroy(got)
}

func TestDestroyStopsTheRunAndRemovesItsFolderOnly(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		b := newBench(t)
		data := b.make("train_dataset", "op-data", b.digits(nil))
		limit := values{"timeouts": cty.ObjectVal(values{"delete": cty.StringVal("500ms")})}
		config := b.experiment(data, limit)
		defer b.held(behaviour{Deaf: deaf})()
		th := b.leave("op-run", config)
		f := b.folder(th)
		sup, err := f.ReadSupervisor()
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the run trains", func() bool { s, err := f.Status(); return err == nil && s.Phase == spec.Running })
		b.plan(th, cty.NullVal(th.state.Type()))
		noErrors(t, b.read(th))
		b.plan(th, cty.NullVal(th.state.Type()))
		if !b.noted(providers.NoteDisruption, "stops the run") {
			t.Errorf("destroying a running experiment notes %+v", b.notes)
		}
		b.destroy(th)
		if sup.Alive() {
			t.Error("the supervisor is still there")
		}
		entries, err := os.ReadDir(b.runs)
		if err != nil || len(entries) > 0 {
			t.Errorf("left in the runs folder: %v, %v", entries, err)
		}
	}
}

func TestDestroyNeverFollowsALink(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	th := b.make(experiment, "op-run", b.experiment(data, nil))
	f := string(b.folder(th))
	theirs := filepath.Join(t.TempDir(), "theirs")
	if err := os.Rename(f, theirs); err != nil { // mark and all
		t.Fatal(err)
	}
	if err := os.Symlink(theirs, f); err != nil {
		t.Fatal(err)
	}
	null := cty.NullVal(th.state.Type())
	diags := b.apply(context.Background(), b.call(""), th, null, providers.PlanResponse{Planned: null})
	oneError(t, diags, "The run's folder is not ours")
	if _, err := os.Stat(filepath.Join(theirs, "spec.json")); err != nil {
		t.Errorf("a folder behind a link was touched: %v", err)
	}
}

func TestHostileStatusIsNamedAndHarmless(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	defer b.held(behaviour{})()
	th := b.leave("op-run", config)
	f := b.folder(th)
	eventually(t, "the run trains", func() bool { s, err := f.Status(); return err == nil && s.Phase == spec.Running })
	noErrors(t, b.read(th))
	kill(t, f)
	before := th.state
	huge := make([]byte, 17<<20)
	for name, content := range map[string]string{
		"empty": "", "no JSON": "}{", "phase": `{"phase":"won"}`, "other run": `{"phase":"succeeded","run":"run-x"}`,
		"metric": `{"phase":"succeeded","metrics":{"a":1e999}}`, "huge": string(huge), "other spec": `{"phase":"succeeded","hash":"sha256:0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(f.StatusFile(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			diags := b.read(th)
			noErrors(t, diags)
			if len(diags) != 1 || !th.state.RawEquals(before) {
				t.Errorf("says %+v and makes of it %s", diags, show(th.state))
			}
		})
	}
	b.destroy(th)
}
