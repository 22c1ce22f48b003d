package workload

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/spec"
)

// prepared makes a small dataset.
func prepared(t *testing.T, seed uint64) spec.Dataset {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "digits")
	m, err := dataset.Prepare(context.Background(), spec.Origin{Format: "synthetic-digits", Train: 20, Test: 10, Seed: seed}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Dataset{Path: dir, Hash: m.Hash}
}

func wants(t *testing.T, s spec.Spec, text string) {
	t.Helper()
	got, err := Open(&s)
	if err == nil {
		got.Close()
	}
	if err == nil && text != "" || err != nil && (text == "" || !strings.Contains(err.Error(), text)) {
		t.Errorf("want an error with %q, got %v", text, err)
	}
}

func TestDataIsWhatTheManifestSays(t *testing.T) {
	s := spec.Default()
	s.Model, s.Dataset = "mlp", prepared(t, 1)
	wants(t, s, "")
	other := s
	other.Dataset.Hash = "sha256:other"
	wants(t, other, "other data than planned")

	// Another dataset's records under this one's manifest.
	for _, split := range []string{"train.rio", "test.rio"} {
		mine := filepath.Join(s.Dataset.Path, split)
		kept, err := os.ReadFile(mine)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile(filepath.Join(prepared(t, 2).Path, split))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(mine, theirs, 0o600); err != nil {
			t.Fatal(err)
		}
		wants(t, s, "other data than its manifest says")
		if err := os.WriteFile(mine, kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLayersAreThePlannedOnes(t *testing.T) {
	s := spec.Default()
	s.Model, s.Dataset = "mlp", prepared(t, 1)
	layers, err := zoo.Layers("mlp")
	if err != nil {
		t.Fatal(err)
	}
	s.Layers = layers
	wants(t, s, "")
	s.Layers = "sha256:" + strings.Repeat("0", 64)
	wants(t, s, "differ from the plan")
}
