package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
)

// TestExport trains, and writes the model to a file by the command.
func TestExport(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("the program that it runs is built without the race detector")
	}
	c := &training{t: t, dir: t.TempDir(), stoke: programtest.Path(t, "stoke")}
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(crashTraining), 0o644); err != nil {
		t.Fatal(err)
	}
	c.run("apply", "-auto-approve")
	export := func(args ...string) (out string, err error) {
		cmd := exec.Command(c.stoke, append([]string{"-chdir=" + c.dir, "export", "-no-color"}, args...)...)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if out, err := export(args...); err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%v: %v, want %q:\n%s", args, err, want, out)
		}
	}
	out, err := export("-json", "-out=m.safetensors", "train_experiment.digits")
	var is struct {
		Name                             string
		Step, Tensors, Parameters, Bytes int64
	}
	if err != nil || json.Unmarshal([]byte(out), &is) != nil || is.Name != "mlp" || is.Step != 252 || is.Tensors == 0 || is.Parameters < 1000 {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(c.dir, "m.safetensors")
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) != is.Bytes {
		t.Fatalf("%d bytes, want %d (%v)", len(text), is.Bytes, err)
	}
	var header map[string]json.RawMessage
	if n := binary.LittleEndian.Uint64(text); json.Unmarshal(text[8:8+n], &header) != nil || int64(len(header)) != is.Tensors+1 {
		t.Errorf("the header is %.300s", text[8:])
	}

	refused("The file exists already", "-out=m.safetensors", "train_experiment.digits")
	if err := os.WriteFile(path, []byte("of another"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("no checkpoint of step 3, only of [252]", "-force", "-checkpoint=3", "-out=m.safetensors", "train_experiment.digits")
	if text, err := os.ReadFile(path); err != nil || string(text) != "of another" {
		t.Errorf("an export that failed has left %.20q (%v)", text, err)
	}
	if out, err := export("-force", "-checkpoint=252", "-out=m.safetensors", "train_experiment.digits"); err != nil ||
		!strings.HasPrefix(out, "Wrote m.safetensors: mlp at step 252, ") {
		t.Errorf("%v: %s", err, out)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(text) {
		t.Errorf("the same model gives another file (%v)", err)
	}
	refused("The file is needed", "train_experiment.digits")
	refused("0 or more", "-checkpoint=-2", "-out=x", "train_experiment.digits")
	refused("Not a run", "-out=x", "train_dataset.digits")
	refused("no such file or directory", "-out=absent/x", "train_experiment.digits")
	if left, err := filepath.Glob(filepath.Join(c.dir, ".*safetensors*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	c.run("destroy", "-auto-approve")
	refused("The state has no object", "-out=x", "train_experiment.digits")
}
