package main

import (
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// TestRemoteStateOfARun reads outputs that only the journal holds, while the
// run that writes it is at work.
func TestRemoteStateOfARun(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "other.tfstate")
	store, err := local.New(path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := remoteReader{func(string) string { return "" }}
	read := func() (string, bool) {
		t.Helper()
		outputs, found, err := r.Outputs(ctx, "local", cty.ObjectVal(map[string]cty.Value{"path": cty.StringVal(path)}), "default")
		if err != nil {
			t.Fatal(err)
		}
		if len(outputs) == 0 {
			return "", found
		}
		if !outputs["x"].Sensitive {
			t.Error("the output is not sensitive any more")
		}
		return outputs["x"].Value.AsString(), found
	}
	if v, found := read(); v != "" || found {
		t.Errorf("without a state: %q %v", v, found)
	}
	lock, err := store.Lock(ctx, state.LockInfo{})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release() //nolint:errcheck // of a test
	file, err := state.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := file.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if v, found := read(); v != "" || !found {
		t.Errorf("with a journal that has just begun: %q %v", v, found)
	}
	for _, text := range []string{"one", "two"} {
		out := map[string]state.Output{"x": {Value: cty.StringVal(text), Sensitive: true}}
		if err := journal.Result(ctx, state.Result{Outputs: out, Durable: true}); err != nil {
			t.Fatal(err)
		}
		if v, found := read(); v != text || !found {
			t.Errorf("got %q %v, want %q", v, found, text)
		}
	}
	if err := journal.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if v, _ := read(); v != "two" {
		t.Errorf("afterwards %q", v)
	}
}
