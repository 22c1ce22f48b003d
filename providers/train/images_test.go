package train

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/runtime/spec"
)

// addPicture writes a PNG of one colour, with the folders of its name.
func addPicture(t *testing.T, name string, side int, c color.Color) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	for i := range side * side {
		m.Set(i%side, i/side, c)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The real trainer plans, stores and follows folders of pictures and the files
// of CIFAR.
func TestDatasetOfPictures(t *testing.T) {
	b := realBench(t)
	pictures, cifar := t.TempDir(), t.TempDir()
	for i := range 5 {
		addPicture(t, filepath.Join(pictures, "train", "cat", fmt.Sprintf("%d.png", i)), 4, color.RGBA{uint8(i), 2, 3, 255})
		addPicture(t, filepath.Join(pictures, "train", "dog", fmt.Sprintf("%d.png", i)), 4, color.RGBA{9, uint8(i), 3, 255})
	}
	addPicture(t, filepath.Join(pictures, "test", "dog", "1.png"), 4, color.White)
	for name, records := range map[string]int{"train.bin": 10, "test.bin": 1} {
		if err := os.MkdirAll(filepath.Join(cifar, "cifar-100-binary"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cifar, "cifar-100-binary", name), make([]byte, 3074*records), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		format, path, shape string
		change              func()
	}{
		{"images", pictures, "[4 4 3]", func() {
			addPicture(t, filepath.Join(pictures, "train", "cat", "1.png"), 4, color.Black)
		}},
		{"cifar", cifar, "[32 32 3]", func() {
			if err := os.WriteFile(filepath.Join(cifar, "cifar-100-binary", "test.bin"), make([]byte, 3074*2), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		config := b.digits(values{"format": cty.StringVal(c.format), "path": cty.StringVal(c.path)})
		th := b.make("train_dataset", "op-"+c.format, config)
		var shape []string
		for _, d := range th.state.GetAttr("shape").AsValueSlice() {
			shape = append(shape, d.AsBigFloat().String())
		}
		if n, _ := th.state.GetAttr("train_records").AsBigFloat().Int64(); n != 10 || fmt.Sprint(shape) != c.shape {
			t.Errorf("%s: %d records of shape %v", c.format, n, shape)
		}
		b.unchanged(th, config)
		c.change()
		b.restart()
		noErrors(t, b.read(th))
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if len(p.Replace) != 1 || !p.Replace[0].Equals(cty.GetAttrPath("hash")) {
			t.Errorf("%s: changed files replace by %#v, want hash", c.format, p.Replace)
		}
	}
	addPicture(t, filepath.Join(pictures, "test", "dog", "2.png"), 5, color.White)
	p := b.plan(b.new("train_dataset"), b.digits(values{"format": cty.StringVal("images"), "path": cty.StringVal(pictures)}))
	if d := oneError(t, p.Diagnostics, "Dataset cannot be used"); !strings.Contains(d.Detail, filepath.Join("test", "dog", "2.png")) {
		t.Errorf("a picture of another size: %s", d.Detail)
	}
}

// Of formats with folders in their folder, a file in one of those counts; a
// link to a folder does not lead anywhere else.
func TestFingerprintOfFolders(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "train", "cat", "1.png")
	addPicture(t, name, 1, color.White)
	if err := os.Symlink(dir, filepath.Join(dir, "train", "loop")); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]bool{spec.FormatImages: true, spec.FormatCIFAR: true, spec.FormatIDX: false, spec.FormatCSV: false} {
		from := spec.Origin{Format: format, Path: dir}
		before, err := fingerprintOf(from)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		later := info.ModTime().Add(time.Hour)
		if err := os.Chtimes(name, later, later); err != nil {
			t.Fatal(err)
		}
		if after, err := fingerprintOf(from); err != nil || (after != before) != want {
			t.Errorf("%s: a file of a folder in the folder changes the fingerprint: %v, want %v (%v)", format, after != before, want, err)
		}
	}
}
