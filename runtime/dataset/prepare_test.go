package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
)

func drawn(train, test int64, seed uint64) spec.Origin {
	return spec.Origin{Format: "synthetic-digits", Train: train, Test: test, Seed: seed}
}

func TestPrepareReplaces(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "digits")
	first, err := Prepare(ctx, drawn(20, 10, 1), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var calls int
	second, err := Prepare(ctx, drawn(30, 10, 2), dir, func(done, total int64) {
		calls++
		if total != 40 || done < 1 || done > 40 {
			t.Errorf("progress %d of %d", done, total)
		}
	})
	if err != nil || first.Hash == second.Hash || calls < 2 {
		t.Fatalf("error %v, %d calls, hashes %s, %s", err, calls, first.Hash, second.Hash)
	}
	read, err := ReadManifest(dir)
	if diff := cmp.Diff(second, read); err != nil || diff != "" {
		t.Error(err, diff)
	}
	// Its own storage is an origin too, and the same data has the same hash.
	again, err := Prepare(ctx, spec.Origin{Format: "recordio", Path: dir}, filepath.Join(t.TempDir(), "copy"), nil)
	if err != nil || again.Hash != second.Hash {
		t.Errorf("copied as %s, %v; want %s", again.Hash, err, second.Hash)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, %v", entries, err)
	}
}

func TestPrepareLeavesOthersAlone(t *testing.T) {
	dir := folder(t, map[string][]byte{"thesis.tex": []byte("mine"), "train.rio": []byte("x")})
	if _, err := Prepare(context.Background(), drawn(2, 2, 1), dir, nil); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "thesis.tex")); err != nil || string(text) != "mine" {
		t.Error("the file is gone")
	}
	file := filepath.Join(dir, "thesis.tex")
	if _, err := Prepare(context.Background(), drawn(2, 2, 1), file, nil); err == nil {
		t.Error("prepared over a file")
	}
}

// What a killed preparation left is reused; what one under way holds is not.
func TestPrepareClaims(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "digits")
	left := filepath.Join(parent, ".digits.preparing")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "train.rio"), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	held, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(context.Background(), drawn(2, 2, 1), dir, nil); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("error %v", err)
	}
	held.Close()
	if _, err := Prepare(context.Background(), drawn(2, 2, 1), dir, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("the working folder is still there")
	}
}

func TestPrepareCancelled(t *testing.T) {
	parent := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Prepare(ctx, drawn(20_000, 10, 1), filepath.Join(parent, "digits"), func(_, _ int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestManifestEdited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "digits")
	if _, err := Prepare(context.Background(), drawn(4, 2, 1), dir, nil); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "manifest.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", "[]", strings.Replace(string(text), "sha256:", "sha256:0", 1)} {
		if err := os.WriteFile(name, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadManifest(dir); err == nil {
			t.Errorf("read %q", bad)
		}
	}
}

func TestOriginRefusals(t *testing.T) {
	for want, o := range map[string]spec.Origin{
		"did you mean \"synthetic-digits\"": {Format: "synthetic-digit"},
		"want one of cifar":                 {Format: "parquet"},
		"needs a path":                      {Format: "idx"},
		"takes no path":                     {Format: "synthetic-digits", Path: "x"},
		"at most":                           {Format: "synthetic-digits", Train: 1 << 60},
		"record limits":                     {Format: "synthetic-digits", Train: -1},
		"csv options":                       {Format: "idx", Path: "x", CSV: &spec.CSV{}},
		"no such file":                      {Format: "idx", Path: "/nonexistent"},
		"the dataset's path":                {Format: "csv", Path: "/nonexistent"},
		"train.rio":                         {Format: "recordio", Path: "/nonexistent"},
	} {
		if _, err := Inspect(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: want an error with %q, got %v", o, want, err)
		}
	}
}
