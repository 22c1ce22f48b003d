package dataset_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/spec"
)

// A folder may have as many pictures as people put there: the header of each is
// read, and as many are decoded as were asked for.
func TestManyPictures(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("writes 100,000 files")
	}
	const n = 100_000
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(folder string, i int) string { return filepath.Join(dir, folder, fmt.Sprintf("%06d.png", i)) }
	for folder, files := range map[string]int{"train/a": n, "train/b": 1, "test/a": 1} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range files {
			if i%1000 > 0 { // a link takes less time than a file
				if err := os.Link(file(folder, i-i%1000), file(folder, i)); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(file(folder, i), picture.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, err := dataset.Inspect(t.Context(), spec.Origin{Format: "images", Path: dir, Train: 1000})
	if err != nil || m.Train.Records != 1000 || m.Train.Classes != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}
