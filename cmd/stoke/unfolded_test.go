package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// TestJournalIsFolded leaves what a run leaves that is killed after its last
// result: a journal that tells everything. The next command folds it, also
// one that finds nothing to do.
func TestJournalIsFolded(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate")
	store, err := local.New(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := state.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := file.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := address.ParseInstance("terraform_data.a")
	if err != nil {
		t.Fatal(err)
	}
	object := state.RawObject([]byte(`{"id":"x","input":null,"output":null,"triggers_replace":null}`), state.Meta{Provider: `provider["terraform.io/builtin/terraform"]`})
	if err := journal.Result(ctx, state.Result{Changes: []state.Change{{Address: addr, Object: object}}, Durable: true}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, []byte(`"version": 5`)) {
		t.Fatalf("the state is not as a killed run leaves it: %v\n%s", err, b)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("resource \"terraform_data\" \"a\" {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if rc := execute([]string{"plan", "-no-color", "-detailed-exitcode"}, stage{in: os.Stdin, out: out, err: out, environ: os.Environ(), built: catalogue()}); rc != 0 {
		said, _ := os.ReadFile(out.Name())
		t.Fatalf("exit %d:\n%s", rc, said)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(`"version": 4`)) || !bytes.Contains(b, []byte(`"terraform_data"`)) {
		t.Errorf("the state afterwards:\n%s", b)
	}
	if _, err := os.Stat(path + ".journal"); !os.IsNotExist(err) {
		t.Errorf("the journal is still there: %v", err)
	}
}
