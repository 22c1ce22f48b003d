package train

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// ended makes an experiment that ended early, in the way of that name.
func (b *bench) ended(how string, data *thing) *thing {
	b.t.Helper()
	config := b.experiment(data, values{"deadline": cty.StringVal("2h")})
	switch how {
	case "failed":
		b.behave(behaviour{Fail: true, Save: true})
		th := b.new(experiment)
		p := b.plan(th, config)
		noErrors(b.t, p.Diagnostics)
		oneError(b.t, b.apply(context.Background(), b.call("op-"+how), th, config, p), "The experiment failed")
		return th
	case "deadline":
		b.held(behaviour{Save: true, Overrun: true})
		th := b.new(experiment)
		p := b.plan(th, config)
		noErrors(b.t, p.Diagnostics)
		d := oneError(b.t, b.apply(context.Background(), b.call("op-"+how), th, config, p), "The experiment was stopped before its end")
		if !strings.Contains(d.Detail, "Raise deadline") {
			b.t.Errorf("detail: %s", d.Detail)
		}
		return th
	}
	b.held(behaviour{Save: how != "lost without a checkpoint"})
	th := b.leave("op-"+how, config)
	f := b.folder(th)
	eventually(b.t, "the run trains", func() bool { s, err := f.Status(); return err == nil && s.Step > 1 })
	kill(b.t, f)
	if version, unusable := strings.CutPrefix(how, "unusable checkpoints, found by "); unusable {
		s, err := f.Status()
		s.Phase, s.Cause, s.Trainer, s.Message = spec.Stopped, spec.CauseCheckpoints, version, "none can be used"
		if err = errors.Join(err, run.WriteJSON(f.StatusFile(), s)); err != nil {
			b.t.Fatal(err)
		}
	}
	noErrors(b.t, b.read(th))
	return th
}

// Nothing that can resume is replaced, and nothing is thrown away unsaid.
func TestWhatAChangeCostsARunThatEndedEarly(t *testing.T) {
	num, later := cty.NumberIntVal, cty.StringVal("200h")
	const lossOfCheckpoint = "throws away its checkpoint of step 10"
	tests := []struct {
		how     string
		change  values
		replace string // the attribute; "": in place
		note    string
		loss    string
	}{
		{how: "lost", change: nil, note: "resume: no process runs it"},
		{how: "lost", change: values{"worker.replicas": num(4)}, note: "resume: continues from its checkpoint with the new value"},
		{how: "lost", change: values{"parameter_server.replicas": num(2)}, note: "resume: continues from its checkpoint with the new value"},
		{how: "lost", change: values{"hyperparameters.seed": num(2)}, replace: "hyperparameters", note: "new run: this changes the result", loss: lossOfCheckpoint},
		{how: "lost without a checkpoint", change: nil, replace: "status", note: "new run: the last one did not reach its end"},
		{how: "unusable checkpoints, found by test", change: nil, replace: "status", note: "new run: none of its checkpoints can be used", loss: lossOfCheckpoint},
		{how: "unusable checkpoints, found by 0.0.1", change: nil, note: "resume: no process runs it"},
		{how: "deadline", change: nil, note: "resume: it has run for 100h0m0s, which is all of its deadline"},
		{how: "deadline", change: values{"deadline": later}, note: "resume: no process runs it"},
		{how: "deadline", change: values{"deadline": cty.NullVal(cty.String)}, note: "resume: no process runs it"},
		{how: "deadline", change: values{"hyperparameters.epochs": num(9)}, replace: "hyperparameters", note: "new run: this changes the result", loss: lossOfCheckpoint},
		{how: "failed", change: nil, replace: "status", note: "new run: the last one failed", loss: lossOfCheckpoint},
		{how: "failed", change: values{"worker.replicas": num(4)}, replace: "status", note: "new run: the last one failed", loss: lossOfCheckpoint},
	}
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	have := make(map[string]*thing)
	for _, test := range tests {
		t.Run(test.how+" "+strings.Join(keys(test.change), " "), func(t *testing.T) {
			if have[test.how] == nil {
				have[test.how] = b.ended(test.how, data)
			}
			config := values{"deadline": cty.StringVal("2h")}
			for name, v := range test.change {
				config[name] = v
			}
			p := b.plan(have[test.how], b.experiment(data, config))
			noErrors(t, p.Diagnostics)
			if replaced := len(p.Replace) > 0; replaced != (test.replace != "") ||
				replaced && !p.Replace[0].HasPrefix(cty.GetAttrPath(test.replace)) {
				t.Errorf("replaces by %#v, want %q", p.Replace, test.replace)
			}
			if !b.noted(providers.NoteChange, test.note) {
				t.Errorf("notes are %+v, want %q", b.notes, test.note)
			}
			if said := b.noted(providers.NoteDisruption, "throws away"); said != (test.loss != "") || said && !b.noted(providers.NoteDisruption, test.loss) {
				t.Errorf("notes are %+v, want %q", b.notes, test.loss)
			}
		})
	}
}

func keys(m values) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

// A run that has used up its deadline goes on once it is raised, and not
// before.
func TestDeadlineIsRaised(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	th := b.ended("deadline", data)
	starts := b.logged("starts.log")
	apply := func(deadline string) []providers.Diagnostic {
		t.Helper()
		config := b.experiment(data, values{"deadline": cty.StringVal(deadline)})
		noErrors(t, b.read(th))
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		return b.apply(context.Background(), b.call(""), th, config, p)
	}
	oneError(t, apply("3h"), "The deadline has been used up")
	if n := b.logged("starts.log"); n != starts {
		t.Errorf("started %d times for nothing", n-starts)
	}
	folder := b.folder(th)
	b.behave(behaviour{Overrun: true})
	noErrors(t, apply("200h"))
	if status(th) != "succeeded" || b.folder(th) != folder {
		t.Errorf("status %s in %s", status(th), b.folder(th))
	}
}

// A running run takes on what costs a resume: it stops at a checkpoint and
// goes on.
func TestRunningRunIsInterrupted(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	release := b.held(behaviour{Save: true})
	th := b.leave("op-run", b.experiment(data, nil))
	f := b.folder(th)
	eventually(t, "the run trains", func() bool { s, err := f.Status(); return err == nil && s.Step > 1 })
	noErrors(t, b.read(th))
	config := b.experiment(data, values{"parameter_server.replicas": cty.NumberIntVal(3)})
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	go func() {
		for b.logged("starts.log") < 2 {
			time.Sleep(5 * time.Millisecond)
		}
		release()
	}()
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	if s, err := f.ReadSpec(); err != nil || s.ParameterServer.Replicas != 3 || status(th) != "succeeded" {
		t.Errorf("status %s with %d servers, %v", status(th), s.ParameterServer.Replicas, err)
	}
	b.unchanged(th, config)
}

// The layers of a model are part of what was trained; its name is not enough.
// Runs of the first version did not record them and stay what they are.
func TestLayersArePartOfTheRun(t *testing.T) {
	const one, two = "sha256:1", "sha256:2"
	for _, tt := range []struct {
		was, is string
		replace bool
	}{{one, one, false}, {one, two, true}, {"", two, false}, {one, "", false}} {
		b := newBench(t)
		data := b.make("train_dataset", "op-data", b.digits(nil))
		config := b.experiment(data, nil)
		b.behave(behaviour{Layers: tt.was})
		th := b.make(experiment, "op-run", config)
		if s, err := b.folder(th).ReadSpec(); err != nil || s.Layers != tt.was {
			t.Errorf("the run has layers %q, %v", s.Layers, err)
		}
		b.behave(behaviour{Layers: tt.is})
		noErrors(t, b.read(th))
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if replaced := len(p.Replace) == 1 && p.Replace[0].Equals(cty.GetAttrPath("model")); replaced != tt.replace || len(p.Replace) > 0 != tt.replace {
			t.Errorf("%q to %q: replaces by %#v", tt.was, tt.is, p.Replace)
		}
		if tt.replace && !b.noted(providers.NoteChange, "new run: this trainer's model") {
			t.Errorf("notes %+v", b.notes)
		}
	}
}

// A run on GPUs asks the trainer before it compares; that changes nothing.
func TestRunOnGPUsStaysTheSame(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	b.behave(behaviour{Layers: "sha256:1", Engines: []string{"xla"}})
	config := b.experiment(data, values{"worker.gpus": cty.NumberIntVal(1)})
	th := b.make(experiment, "op-run", config)
	b.unchanged(th, config)
}

func TestTrainerChangedSinceThePlan(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	b.behave(behaviour{Layers: "sha256:1"})
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	b.behave(behaviour{Layers: "sha256:2"})
	oneError(t, b.apply(context.Background(), b.call("op-run"), th, config, p), "The trainer is not the planned one")
}

// A state of the first version knows no checkpoint.every_seconds, and its runs
// no layers.
func TestStateOfTheFirstVersion(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, values{"checkpoint.every_steps": cty.NumberIntVal(50)})
	th := b.make(experiment, "op-run", config)
	text, err := jsonOf(th.state)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	delete(state["checkpoint"].(map[string]any), "every_seconds")
	if text, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	up := b.p.Upgrade(context.Background(), providers.UpgradeRequest{Type: experiment, JSON: text})
	noErrors(t, up.Diagnostics)
	th.state = up.State
	noErrors(t, b.read(th))
	b.behave(behaviour{Layers: "sha256:2"})
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 {
		t.Errorf("a run of the first version is replaced by %#v", p.Replace)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	b.unchanged(th, config)
	if n := b.logged("starts.log"); n != 1 {
		t.Errorf("trained %d times", n)
	}
}

// An apply that is cut short while a run saves itself leaves the run alone: to
// kill it would throw away what it has learned since its last checkpoint.
func TestInterruptedInterruptionKillsNothing(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	defer b.held(behaviour{Save: true, Deaf: true})()
	th := b.leave("op-run", b.experiment(data, nil))
	f := b.folder(th)
	eventually(t, "the run trains", func() bool { s, err := f.Status(); return err == nil && s.Step > 1 })
	noErrors(t, b.read(th))
	config := b.experiment(data, values{"parameter_server.replicas": cty.NumberIntVal(3)})
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	ctx, cancel := context.WithCancel(context.Background())
	call := b.call("")
	report := call.Progress
	call.Progress = func(p providers.Progress) {
		if strings.HasPrefix(p.Step, "stopping") {
			cancel()
		}
		report(p)
	}
	oneError(t, b.apply(ctx, call, th, config, p), "Running experiment could not be stopped")
	if !local.Alive(f) {
		t.Error("the run was killed")
	}
}
