package train

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestRunOfTheFirstVersionIsTakenUp imports a run that the first version had
// stopped at step 87, and lets it go on with a change: it stays the same run.
func TestRunOfTheFirstVersionIsTakenUp(t *testing.T) {
	b := realBench(t)
	digits := values{"train": cty.NumberIntVal(1500), "test": cty.NumberIntVal(400)}
	data := b.make("train_dataset", "op-data", b.digits(digits))
	const id = "run-00000000000000aa"
	f := run.Folder(filepath.Join(b.runs, id))
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(string(f), os.DirFS(filepath.Join("..", "..", "cmd", "stoke-trainer", "testdata", "landed"))); err != nil {
		t.Fatal(err)
	}
	before, err := f.Status()
	if err != nil || before.Phase != spec.Stopped || before.Step != 87 {
		t.Fatalf("status %+v, %v", before, err)
	}
	s, err := f.ReadSpec()
	if err != nil {
		t.Fatal(err)
	}
	if s.Dataset.Path, err = datasetFolder(data.state.GetAttr("uri").AsString()); err != nil {
		t.Fatal(err)
	}
	before.Run = id
	for path, v := range map[string]any{ // what that version's launcher wrote
		f.StatusFile(): before, f.Spec(): s, filepath.Join(string(f), "operation.json"): map[string]string{"id": id, "operation": "op"},
		filepath.Join(string(f), "launched.json"): run.Process{PID: 1, Start: 1, Boot: "another"},
	} {
		if err := run.WriteJSON(path, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(f.Token(), []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	imported := b.p.Import(t.Context(), importRequest(id))
	noErrors(t, imported.Diagnostics)
	th := &thing{typ: experiment, state: imported.Objects[0].State, private: imported.Objects[0].Private}
	noErrors(t, b.read(th))
	num, dec := cty.NumberIntVal, cty.MustParseNumberVal
	config := b.experiment(data, values{
		"name": cty.StringVal("landed"), "model": cty.StringVal("softmax"),
		"hyperparameters": cty.ObjectVal(values{"seed": num(5), "batch_size": num(40), "micro_batch": num(10), "epochs": num(400),
			"max_steps": num(600), "learning_rate": dec("0.05"), "momentum": dec("0.5")}),
		"checkpoint": cty.ObjectVal(values{"every_steps": num(10), "keep": num(1)}),
		"worker":     cty.ObjectVal(values{"replicas": num(2), "threads": num(1)}),
		// One more than it had.
		"parameter_server": cty.ObjectVal(values{"replicas": num(2)}),
	})
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) > 0 || !b.noted(providers.NoteChange, "resume: continues from its checkpoint with the new value") {
		t.Fatalf("replaces by %#v, notes %+v", p.Replace, b.notes)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), th, config, p))
	after, err := f.Status()
	if err != nil || status(th) != "succeeded" || after.Step != 600 || after.Hash != before.Hash || !restored(t, f) {
		t.Errorf("status %+v, %v", after, err)
	}
	b.unchanged(th, config)
	b.destroy(th)
}
