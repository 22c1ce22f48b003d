package train

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/code"
)

// programs is a bench whose experiments run a program, without a dataset.
func programs(t *testing.T) (b *bench, of func(change values) cty.Value) {
	b = benchOf(t, "program")
	return b, func(change values) cty.Value {
		all := values{"dataset": cty.NullVal(cty.String)}
		for name, v := range change {
			all[name] = v
		}
		return b.experiment(nil, all)
	}
}

func (b *bench) heard() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all strings.Builder
	for _, p := range b.progress {
		all.WriteString(p.Step + "\n" + p.Line + "\n")
	}
	return all.String()
}

// running waits for the first steps of a run that was left.
func (b *bench) running(th *thing) {
	b.t.Helper()
	eventually(b.t, "the run goes on", func() bool {
		noErrors(b.t, b.read(th))
		s, err := b.folder(th).Status()
		return err == nil && status(th) == "running" && s.Metrics != nil
	})
}

func TestProgramRunsOnceAndStaysFinished(t *testing.T) {
	b, of := programs(t)
	config := of(nil)
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	for _, n := range b.notes {
		t.Errorf("the plan says %q", n.Text)
	}
	snapshot, err := code.Read(t.Context(), b.code)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Planned.GetAttr("code_hash"); !got.RawEquals(cty.StringVal(snapshot.Hash())) {
		t.Errorf("planned code %#v", got)
	}
	noErrors(t, b.apply(context.Background(), b.call("op-run"), th, config, p))
	metrics := th.state.GetAttr("metrics").AsValueMap()
	if status(th) != "succeeded" || len(metrics) != 2 || !metrics["reward"].RawEquals(cty.NumberIntVal(7)) {
		t.Errorf("it is %s with %#v", status(th), metrics)
	}
	for _, name := range []string{"model", "dataset", "dataset_hash", "strategy", "synchronous", "batch_per", "hyperparameters"} {
		if v := th.state.GetAttr(name); !v.IsNull() {
			t.Errorf("%s of a program is %#v", name, v)
		}
	}
	block := th.state.GetAttr("program")
	for name, want := range map[string]cty.Value{
		"processes": cty.StringVal("1"), "chief": cty.False, "on_change": cty.StringVal("new_run"), "join_timeout": cty.StringVal("30s"),
		"max_restarts": cty.NumberIntVal(3), "stop_grace": cty.StringVal("30s"),
	} {
		if got := block.GetAttr(name); !got.RawEquals(want) {
			t.Errorf("%s is %#v", name, got)
		}
	}
	if said := b.heard(); !strings.Contains(said, "loss 0.25") || strings.Contains(said, "epoch") || strings.Contains(said, "samples") {
		t.Errorf("progress: %s", said)
	}
	is, err := b.folder(th).ReadSpec()
	if err != nil || is.ParameterServer.Replicas != 1 || is.Name != "program" || is.Hash() != th.state.GetAttr("spec_hash").AsString() {
		t.Errorf("%+v, %v", is, err)
	}
	b.unchanged(th, config)
	if n := b.logged("starts.log"); n != 1 || b.logged("code.log") != 1 {
		t.Errorf("started %d times", n)
	}
	b.destroy(th)
}

// Steps are told where the program reports them.
func TestProgressOfAProgram(t *testing.T) {
	for _, stepless := range []bool{false, true} {
		b, of := programs(t)
		release := b.held(behaviour{Stepless: stepless})
		th := b.leave("op-run", of(nil))
		b.running(th)
		b.progress = nil
		ctx, cancel := context.WithCancel(context.Background())
		call, config := b.call(""), of(nil)
		report := call.Progress
		seen := ""
		call.Progress = func(p providers.Progress) {
			report(p)
			if strings.Contains(p.Step, "workers") {
				seen = p.Step
				cancel()
			}
		}
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		noErrors(t, b.apply(ctx, call, th, config, p))
		if stepless && seen != "running, 2 workers" || !stepless && (!strings.HasPrefix(seen, "step ") || !strings.HasSuffix(seen, ", loss 0.312, 2 workers")) {
			t.Errorf("progress %q", seen)
		}
		release()
	}
}

// A parameter_server block gives one server, no block none.
func TestServersOfAProgram(t *testing.T) {
	b, of := programs(t)
	for want, block := range map[int]cty.Value{
		0: cty.NullVal(b.schema(experiment).ImpliedType().AttributeType("parameter_server")),
		1: cty.ObjectVal(values{}),
		3: cty.ObjectVal(values{"replicas": cty.NumberIntVal(3)}),
	} {
		th := b.make(experiment, fmt.Sprint("op-", want), of(values{"parameter_server": block}))
		if is, err := b.folder(th).ReadSpec(); err != nil || is.ParameterServer.Replicas != want {
			t.Errorf("%d servers, want %d; %v", is.ParameterServer.Replicas, want, err)
		}
		b.unchanged(th, of(values{"parameter_server": block}))
	}
}

func TestDatasetOfAProgram(t *testing.T) {
	b, of := programs(t)
	data := b.make("train_dataset", "op-data", b.digits(nil))
	own := writeCode(t, t.TempDir(), "manifest.json", `{"mine": true}`)
	t.Chdir(filepath.Dir(own))
	for name, tt := range map[string]struct {
		given, path string
		hash        cty.Value
	}{
		"prepared": {data.state.GetAttr("uri").AsString(), filepath.Join(b.data, hashDigits(data.state.GetAttr("hash").AsString())), data.state.GetAttr("hash")},
		"own":      {own, own, cty.NullVal(cty.String)},
		"relative": {filepath.Base(own), own, cty.NullVal(cty.String)},
	} {
		t.Run(name, func(t *testing.T) {
			config := of(values{"dataset": cty.StringVal(tt.given)})
			th := b.make(experiment, "op-"+name, config)
			if got := th.state.GetAttr("dataset_hash"); !got.RawEquals(tt.hash) {
				t.Errorf("hash %#v", got)
			}
			if is, err := b.folder(th).ReadSpec(); err != nil || is.Dataset.Path != tt.path {
				t.Errorf("%+v, %v", is.Dataset, err)
			}
			b.unchanged(th, config)
		})
	}
	oneError(t, b.plan(b.new(experiment), of(values{"dataset": cty.StringVal("/nonexistent/stoke")})).Diagnostics, "There is no such dataset")
}

// What a change of the program costs, and which files of the code it names.
func TestWhatAChangeOfAProgramCosts(t *testing.T) {
	b, of := programs(t)
	release := b.held(behaviour{Save: true})
	defer release()
	th := b.leave("op-run", of(nil))
	b.running(th)
	block := func(name string) cty.Path { return cty.GetAttrPath("program").GetAttr(name) }
	hash := cty.GetAttrPath("code_hash")
	edited := t.TempDir()
	for _, name := range []string{"b.py", "c.py", "d.py", "e.py", "f.py"} {
		writeCode(t, edited, name, "1")
	}
	writeCode(t, edited, "train.sh", "exit 1")
	other := cty.StringVal(edited)
	const files = "+ b.py, + c.py, + d.py, + e.py, + f.py and 1 more"
	resume := cty.StringVal("resume")
	tests := []struct {
		name    string
		change  values
		replace cty.Path // nil: in place
		at      cty.Path
		note    string
	}{
		{"command", values{"program.command": texts("sh", "b.py")}, block("command"), block("command"), "new run: this changes the result"},
		{"command, resumed", values{"program.command": texts("sh", "b.py"), "program.on_change": resume}, nil, block("command"), "resume: stops at a checkpoint"},
		{"code", values{"program.code": other}, hash, block("code"), "new run: the code has changed: " + files},
		{"code, resumed", values{"program.code": other, "program.on_change": resume}, nil, block("code"), "resume: stops at a checkpoint and continues with the new value: " + files},
		{"no code", values{"program.code": cty.NullVal(cty.String)}, hash, block("code"), "new run: the code has changed"},
		{"unknown code", values{"program.code": cty.UnknownVal(cty.String)}, hash, block("code"), "new run: the code has changed"},
		{"unknown code, resumed", values{"program.code": cty.UnknownVal(cty.String), "program.on_change": resume}, nil, block("code"), "resume: stops"},
		{"parameter", values{"program.parameters": cty.ObjectVal(values{"rate": cty.NumberIntVal(1)})}, block("parameters"), block("parameters"), "new run: this changes the result"},
		{"parameter, resumed", values{"program.parameters": cty.ObjectVal(values{"rate": cty.NumberIntVal(1)}), "program.on_change": resume}, nil, block("parameters"), "resume: stops"},
		{"unknown parameter", values{"program.parameters": cty.ObjectVal(values{"rate": cty.UnknownVal(cty.Number)})}, block("parameters"), block("parameters"), "new run: this changes the result"},
		{"environment", values{"program.environment": cty.MapVal(values{"MODE": cty.StringVal("slow")})}, block("environment"), block("environment"), "new run: this changes the result"},
		{"environment, resumed", values{"program.environment": cty.NullVal(cty.Map(cty.String)), "program.on_change": resume}, nil, block("environment"), "resume: stops"},
		{"framework, resumed", values{"program.framework": cty.StringVal("none"), "program.on_change": resume}, block("framework"), block("framework"), "new run: this changes the result"},
		{"processes", values{"program.processes": cty.NumberIntVal(2)}, nil, block("processes"), "resume: stops"},
		{"restarts", values{"program.max_restarts": cty.NumberIntVal(7)}, nil, block("max_restarts"), "live: reaches"},
		{"grace written otherwise", values{"program.stop_grace": cty.StringVal("0.5m")}, nil, nil, ""},
		{"on_change", values{"program.on_change": resume}, nil, nil, ""},
		{"servers", values{"parameter_server.replicas": cty.NumberIntVal(2)}, nil, cty.GetAttrPath("parameter_server").GetAttr("replicas"), "resume: stops"},
		{"a model", values{"program": cty.NullVal(b.schema(experiment).ImpliedType().AttributeType("program")), "model": cty.StringVal("mlp"),
			"dataset": cty.StringVal("/data/" + strings.Repeat("0", 64))}, cty.GetAttrPath("model"), cty.GetAttrPath("model"), "new run: this changes the result"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			p := b.plan(th, of(test.change))
			noErrors(t, p.Diagnostics)
			if replaced := slices.ContainsFunc(p.Replace, func(at cty.Path) bool { return at.Equals(test.replace) }); len(p.Replace) > 0 != (test.replace != nil) ||
				replaced != (test.replace != nil) {
				t.Errorf("replaces by %#v, want %#v", p.Replace, test.replace)
			}
			changes := slices.DeleteFunc(slices.Clone(b.notes), func(n providers.Note) bool {
				return n.Kind != providers.NoteChange || strings.HasPrefix(n.Text, "live: attaches")
			})
			switch {
			case test.note == "" && len(changes) > 0, test.note != "" && len(changes) != 1:
				t.Errorf("notes are %+v", changes)
			case test.note != "" && (!strings.HasPrefix(changes[0].Text, test.note) || !changes[0].Path.Equals(test.at)):
				t.Errorf("note at %#v: %q, want %q", changes[0].Path, changes[0].Text, test.note)
			}
			if test.replace != nil != b.noted(providers.NoteDisruption, "stops the program that is running now at step ") {
				t.Errorf("what is thrown away: %+v", b.notes)
			}
			known := p.Planned.GetAttr("spec_hash").IsKnown() && p.Planned.GetAttr("spec_hash").RawEquals(th.state.GetAttr("spec_hash"))
			covered := strings.HasSuffix(test.name, ", resumed") && test.replace == nil
			if test.replace == nil && known == covered {
				t.Errorf("spec_hash is planned as %#v", p.Planned.GetAttr("spec_hash"))
			}
		})
	}
}

// With on_change = "resume" the same run goes on with edited code.
func TestEditedCodeResumes(t *testing.T) {
	b, of := programs(t)
	config := of(values{"program.on_change": cty.StringVal("resume")})
	b.held(behaviour{Save: true})
	th := b.leave("op-run", config)
	b.running(th)
	f, before := b.folder(th), th.state
	writeCode(t, b.code, "train.sh", "exit 7")
	b.restart() // on another machine: only the state is left
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if !b.noted(providers.NoteChange, "resume: stops at a checkpoint and continues with the new value: ~ train.sh") {
		t.Errorf("notes are %+v", b.notes)
	}
	b.behave(behaviour{}) // the next start ends by itself
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	is, err := f.ReadSpec()
	if err != nil {
		t.Fatal(err)
	}
	if status(th) != "succeeded" || b.folder(th) != f || b.logged("starts.log") != 2 {
		t.Errorf("%s in %s after %d starts", status(th), b.folder(th), b.logged("starts.log"))
	}
	for name, want := range map[string]string{"spec_hash": is.Hash(), "code_hash": is.Program.Code} {
		if got := th.state.GetAttr(name).AsString(); got != want || got == before.GetAttr(name).AsString() {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if _, err := os.Stat(f.Code(is.Program.Code)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Code(before.GetAttr("code_hash").AsString())); err == nil {
		t.Error("the code of before is still there")
	}
	b.unchanged(th, config)
	// The list that the next plan compares with is the new code's.
	writeCode(t, b.code, "more.py", "1")
	noErrors(t, b.plan(th, config).Diagnostics)
	if !b.noted(providers.NoteChange, "only recorded: the run has ended: + more.py") {
		t.Errorf("notes are %+v", b.notes)
	}
}

// Code that is edited between plan and apply changes nothing.
func TestCodeIsThePlannedOne(t *testing.T) {
	b, of := programs(t)
	config := of(values{"program.on_change": cty.StringVal("resume")})
	th := b.new(experiment)
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	writeCode(t, b.code, "train.sh", "exit 1")
	d := oneError(t, b.apply(context.Background(), b.call("op-run"), th, config, p), "Code is not the planned one")
	if !d.Path.Equals(cty.GetAttrPath("program").GetAttr("code")) || !strings.Contains(d.Detail, "Plan again") {
		t.Errorf("%+v", d)
	}
	if entries, _ := os.ReadDir(b.runs); len(entries) > 0 || !th.state.IsNull() {
		t.Errorf("left behind: %v", entries)
	}

	release := b.held(behaviour{Save: true})
	th = b.leave("op-run", config)
	b.running(th)
	writeCode(t, b.code, "train.sh", "exit 2")
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	writeCode(t, b.code, "train.sh", "exit 3")
	before := th.state
	oneError(t, b.apply(context.Background(), b.call(""), th, config, p), "Code is not the planned one")
	if !local.Alive(b.folder(th)) || b.logged("starts.log") != 1 || !th.state.GetAttr("code_hash").RawEquals(before.GetAttr("code_hash")) {
		t.Error("a run is stopped for code that was not planned")
	}
	// A plan that fails leaves the list of files as it was.
	noErrors(t, b.plan(th, config).Diagnostics)
	if !b.noted(providers.NoteChange, "resume: stops at a checkpoint and continues with the new value: ~ train.sh") {
		t.Errorf("notes are %+v", b.notes)
	}

	// Neither is it stopped for another change.
	writeCode(t, b.code, "train.sh", "exit 1")
	more := of(values{"program.on_change": cty.StringVal("resume"), "program.processes": cty.NumberIntVal(2)})
	p = b.plan(th, more)
	noErrors(t, p.Diagnostics)
	writeCode(t, b.code, "train.sh", "exit 4")
	oneError(t, b.apply(context.Background(), b.call(""), th, more, p), "Code is not the planned one")
	if !local.Alive(b.folder(th)) || b.logged("starts.log") != 1 {
		t.Error("a run is stopped, and cannot go on")
	}

	// A change that reaches the running program does not need the code.
	writeCode(t, b.code, "train.sh", "exit 1")
	config = of(values{"program.on_change": cty.StringVal("resume"), "program.max_restarts": cty.NumberIntVal(9), "wait": cty.False})
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	writeCode(t, b.code, "train.sh", "exit 4")
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	if b.logged("live.log") != 1 || b.logged("starts.log") != 1 {
		t.Errorf("%d changes, %d starts", b.logged("live.log"), b.logged("starts.log"))
	}
	release()
}

// A program that is resumed although it has saved nothing starts over, and the plan
// and the apply say so.
func TestProgramWithoutCheckpointStartsOver(t *testing.T) {
	b, of := programs(t)
	b.held(behaviour{})
	th := b.leave("op-run", of(nil))
	b.running(th)
	f, config := b.folder(th), of(values{"program.processes": cty.NumberIntVal(2)})
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 || !b.noted(providers.NoteDisruption, "stops the program, which has saved no complete checkpoint") {
		t.Errorf("replaces by %#v, notes %+v", p.Replace, b.notes)
	}
	b.behave(behaviour{}) // the next start ends by itself
	diags := b.apply(context.Background(), b.call(""), th, config, p)
	noErrors(t, diags)
	if len(diags) != 1 || diags[0].Summary != "The program starts over" {
		t.Errorf("%+v", diags)
	}
	if status(th) != "succeeded" || b.folder(th) != f || b.logged("starts.log") != 2 {
		t.Errorf("%s in %s after %d starts", status(th), b.folder(th), b.logged("starts.log"))
	}
}

// A lost program without steps has nothing to lose: it goes on in the same run.
func TestLostProgramWithoutStepsGoesOn(t *testing.T) {
	b, of := programs(t)
	release := b.held(behaviour{Stepless: true})
	th := b.leave("op-run", of(nil))
	before := th.state
	b.running(th)
	kill(t, b.folder(th))
	noErrors(t, b.read(th))
	for _, name := range []string{"program", "worker", "parameter_server", "dataset"} {
		if !th.state.GetAttr(name).RawEquals(before.GetAttr(name)) {
			t.Errorf("%s is read as %#v", name, th.state.GetAttr(name))
		}
	}
	p := b.plan(th, of(nil))
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 || !b.noted(providers.NoteChange, "resume: no process runs it; it starts over, for it has saved nothing") {
		t.Errorf("replaces by %#v, notes %+v", p.Replace, b.notes)
	}
	release()
	noErrors(t, b.apply(context.Background(), b.call(""), th, of(nil), p))
	if status(th) != "succeeded" || b.logged("starts.log") != 2 {
		t.Errorf("%s after %d starts", status(th), b.logged("starts.log"))
	}
	b.unchanged(th, of(nil))
}

// A run of a program that is to be replaced loses its progress.
func TestDestroyedProgramLosesItsProgress(t *testing.T) {
	b, of := programs(t)
	defer b.held(behaviour{Stepless: true})()
	th := b.leave("op-run", of(nil))
	b.running(th)
	noErrors(t, b.plan(th, cty.NullVal(b.schema(experiment).ImpliedType())).Diagnostics)
	if !b.noted(providers.NoteDisruption, "stops the program that is running now; its progress is lost") {
		t.Errorf("notes are %+v", b.notes)
	}
}
