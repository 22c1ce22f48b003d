package train

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// States of earlier versions have no program.
func TestStateWithoutProgram(t *testing.T) {
	b := newBench(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	config := b.experiment(data, nil)
	th := b.make(experiment, "op-run", config)
	text, err := jsonOf(th.state)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"program", "code_hash"} {
		if _, ok := state[name]; !ok {
			t.Errorf("a state has no %s", name)
		}
		delete(state, name)
	}
	if text, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	up := b.p.Upgrade(context.Background(), providers.UpgradeRequest{Type: experiment, JSON: text})
	noErrors(t, up.Diagnostics)
	if th.state = up.State; !th.state.GetAttr("program").IsNull() {
		t.Errorf("it has the program %#v", th.state.GetAttr("program"))
	}
	b.unchanged(th, config)
}

func TestImportOfAProgram(t *testing.T) {
	b, of := programs(t)
	config := of(values{"program.max_restarts": cty.NumberIntVal(5)})
	made := b.make(experiment, "op-run", config)
	resp := b.p.Import(t.Context(), importRequest(made.state.GetAttr("id").AsString()))
	noErrors(t, resp.Diagnostics)
	th := &thing{typ: experiment, state: resp.Objects[0].State, private: resp.Objects[0].Private}
	noErrors(t, b.read(th))
	was, is := made.state.GetAttr("program").AsValueMap(), th.state.GetAttr("program").AsValueMap()
	for name, v := range was {
		if name != "code" && !is[name].RawEquals(v) {
			t.Errorf("%s is imported as %#v, was %#v", name, is[name], v)
		}
	}
	for _, name := range []string{"code_hash", "spec_hash", "model", "hyperparameters", "metrics"} {
		if !th.state.GetAttr(name).RawEquals(made.state.GetAttr(name)) {
			t.Errorf("%s is imported as %#v", name, th.state.GetAttr(name))
		}
	}
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 {
		t.Errorf("an imported run is replaced: %#v", p.Replace)
	}
	// The apply knows the files of its code from then on.
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	b.unchanged(th, config)
	writeCode(t, b.code, "train.sh", "exit 9")
	noErrors(t, b.plan(th, config).Diagnostics)
	if !b.noted(providers.NoteChange, "new run: the code has changed: ~ train.sh") {
		t.Errorf("notes are %+v", b.notes)
	}
}

// A create that was cut short is found with its program.
func TestInterruptedLaunchOfAProgramIsSettled(t *testing.T) {
	b, of := programs(t)
	config := of(nil)
	release := b.held(behaviour{})
	p := b.plan(b.new(experiment), config)
	noErrors(t, p.Diagnostics)
	th := b.leave("op-run", config)
	got := b.settle(experiment, "op-run", p.Planned)
	for _, name := range []string{"program", "code_hash", "spec_hash", "id", "hyperparameters"} {
		if !got.state.GetAttr(name).RawEquals(th.state.GetAttr(name)) {
			t.Errorf("%s is settled as %#v, is %#v", name, got.state.GetAttr(name), th.state.GetAttr(name))
		}
	}
	release()
}

// An apply that was killed after the resume leaves a state that is older than the
// run: the next apply repairs it.
func TestResumeThatWasNotRecorded(t *testing.T) {
	b, of := programs(t)
	config := of(values{"program.on_change": cty.StringVal("resume")})
	b.held(behaviour{Save: true})
	th := b.leave("op-run", config)
	b.running(th)
	before := *th
	writeCode(t, b.code, "train.sh", "exit 7")
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	b.behave(behaviour{}) // the next start ends by itself
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	th = &before
	diags := b.read(th)
	noErrors(t, diags)
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	is, err := b.folder(th).ReadSpec()
	if err != nil || status(th) != "succeeded" || th.state.GetAttr("spec_hash").AsString() != is.Hash() {
		t.Errorf("%s with %s, %v", status(th), th.state.GetAttr("spec_hash").AsString(), err)
	}
	b.unchanged(th, config)
}
