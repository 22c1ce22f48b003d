package dataset

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// brokenFile is a small dataset of a format with one broken file.
type brokenFile struct {
	format string
	files  map[string][]byte
	file   string // that is broken
	text   []byte // nil: it is missing
	want   string // in the error: what is wrong, and where
}

func brokenFiles(t *testing.T) map[string]brokenFile {
	t.Helper()
	mnist, cifar, pictures := mnist(), cifar10(""), animals(t)
	images, labels, batch := mnist["train-images-idx3-ubyte"], mnist["t10k-labels-idx1-ubyte"], cifar["data_batch_2.bin"]
	photo := jpegOf(t, plain(40, 40, rgb(1, 2, 3)))
	table := map[string][]byte{"train.csv": []byte("label,a\n0,1\n1,2\n"), "test.csv": []byte("label,a\n1,3\n")}
	texts := map[string][]byte{"train.txt": bytes.Repeat([]byte("hello "), 100), "test.txt": bytes.Repeat([]byte("world "), 100)}
	first := exampleOf(map[string]any{"image": []float32{1, 2}, "label": []int64{0}})
	second := exampleOf(map[string]any{"image": []float32{3, 4}, "label": []int64{1}})
	wrong := exampleOf(map[string]any{"image": []float32{3, 4}, "label": []int64{2}})
	chunk, record := chunkOf(1, first, second), tfRecords(first, second)
	examples := map[string][]byte{"train/a": chunk, "train/b": record, "test/a": record}
	stored := filepath.Join(t.TempDir(), "prepared")
	if _, err := Prepare(context.Background(), spec.Origin{Format: "csv", Path: folder(t, table)}, stored, nil); err != nil {
		t.Fatal(err)
	}
	rio := make(map[string][]byte)
	for _, name := range []string{"train.rio", "test.rio", "manifest.json"} {
		text, err := os.ReadFile(filepath.Join(stored, name))
		if err != nil {
			t.Fatal(err)
		}
		rio[name] = text
	}
	changed := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 0x40
		return b
	}
	train := rio["train.rio"]
	return map[string]brokenFile{
		"IDX: a file is missing":        {"idx", mnist, "t10k-labels-idx1-ubyte", nil, "has no file t10k-labels-idx1-ubyte"},
		"IDX: truncated":                {"idx", mnist, "train-images-idx3-ubyte", images[:len(images)-1], "claims [6 2 2] elements, so 40 bytes, but it has 39"},
		"IDX: labels in place of it":    {"idx", mnist, "train-images-idx3-ubyte", labels, "want 00 00 08 03"},
		"IDX: label without class":      {"idx", mnist, "t10k-labels-idx1-ubyte", idx([]uint32{2}, []byte{1, 7}), "test record 1 has label 7"},
		"CIFAR: truncated":              {"cifar", cifar, "data_batch_2.bin", batch[:5000], "data_batch_2.bin has 5000 bytes: want a multiple of 3073"},
		"CIFAR: label without class":    {"cifar", cifar, "data_batch_2.bin", changed(batch, 0), "data_batch_2.bin: record 0 has label 65"},
		"CIFAR: empty":                  {"cifar", cifar, "test_batch.bin", []byte{}, "test_batch.bin has 0 bytes"},
		"CSV: another column":           {"csv", table, "train.csv", []byte("label,a\n0,1\n1,2,3\n"), "train.csv: line 3 has more than the 2 columns"},
		"CSV: not a number":             {"csv", table, "test.csv", []byte("label,a\n1,x\n"), `test.csv: line 2, column 1: "x" is not a finite number`},
		"CSV: label without class":      {"csv", table, "test.csv", []byte("label,a\n4,1\n"), "test record 0 has label 4"},
		"CSV: a quote without end":      {"csv", table, "train.csv", []byte("label,a\n0,\"1\n"), `train.csv: line 2, byte 6: extraneous or missing`},
		"images: truncated JPEG":        {"images", pictures, "train/cat/2.png", photo[:len(photo)-300], "train/cat/2.png: it is damaged or truncated"},
		"images: another size":          {"images", pictures, "test/dog/a.png", photo, "test/dog/a.png: it is 40 × 40 pixels"},
		"images: text":                  {"images", pictures, "train/dog/3.PNG", []byte("not a picture"), "train/dog/3.PNG: "},
		"images: empty":                 {"images", pictures, "train/dog/3.PNG", []byte{}, "train/dog/3.PNG: "},
		"images: class of no record":    {"images", pictures, "test/cow/1.png", pngOf(t, plain(2, 1, color.White)), `class "cow" has no training pictures`},
		"text: empty":                   {"text", texts, "train.txt", []byte{}, "train.txt: the file is empty"},
		"text: shorter than a record":   {"text", texts, "test.txt", []byte("world"), "test.txt: the test split has 5 bytes: want at least 129"},
		"text: missing":                 {"text", texts, "train.txt", nil, "has no file train.txt"},
		"examples: wrong CRC":           {"tf-examples", examples, "train/a", changed(chunk, len(chunk)-2), "train/a: record 0: chunk at byte 0: it fails its checksum"},
		"examples: truncated":           {"tf-examples", examples, "train/b", record[:len(record)-9], fmt.Sprintf("train/b: record 1: at byte %d: the data ends early", 12+len(first)+4)},
		"examples: label without class": {"tf-examples", examples, "test/a", tfRecords(first, wrong), "test record 1 has label 2"},
		"examples: another format":      {"tf-examples", examples, "test/a", photo, "test/a: it starts with ffd8ff"},
		"stored: damaged record":        {"recordio", rio, "train.rio", changed(train, len(train)-footBytes-9), "train.rio: record 1 fails its checksum"},
		"stored: truncated":             {"recordio", rio, "train.rio", train[:len(train)-1], "train.rio: it does not end as a complete dataset does"},
	}
}

// Each broken file is one error that names the file and the place, and nothing
// is left of the preparation.
func TestBrokenFiles(t *testing.T) {
	for name, c := range brokenFiles(t) {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(c.files)
			whole := spec.Origin{Format: c.format, Path: folder(t, files)}
			if _, err := Inspect(context.Background(), whole); err != nil {
				t.Fatalf("without it: %v", err)
			}
			files[c.file] = c.text
			from := spec.Origin{Format: c.format, Path: folder(t, files)}
			parent := t.TempDir()
			_, err := Prepare(context.Background(), from, filepath.Join(parent, "prepared"), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("want an error with %q, got %v", c.want, err)
			}
			if _, again := Inspect(context.Background(), from); again == nil || "prepare dataset: "+again.Error() != err.Error() {
				t.Errorf("inspected: %v, prepared: %v", again, err)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// One record in each split is a dataset; one class is not.
func TestSmallestDatasets(t *testing.T) {
	example := func(label int64) []byte {
		return exampleOf(map[string]any{"image": []byte("abc"), "label": []int64{label}})
	}
	for format, files := range map[string]func(label byte) map[string][]byte{
		"idx": func(label byte) map[string][]byte {
			return map[string][]byte{
				"train-images-idx3-ubyte": idx([]uint32{1, 2, 2}, count(4)), "train-labels-idx1-ubyte": idx([]uint32{1}, []byte{label}),
				"t10k-images-idx3-ubyte": idx([]uint32{1, 2, 2}, count(4)), "t10k-labels-idx1-ubyte": idx([]uint32{1}, []byte{label}),
			}
		},
		"csv": func(label byte) map[string][]byte {
			return map[string][]byte{"train.csv": fmt.Appendf(nil, "%d,5\n", label), "test.csv": fmt.Appendf(nil, "%d,6\n", label)}
		},
		"tf-examples": func(label byte) map[string][]byte {
			return map[string][]byte{"train": tfRecords(example(int64(label))), "test": chunkOf(2, example(int64(label)))}
		},
	} {
		m, err := Inspect(context.Background(), spec.Origin{Format: format, Path: folder(t, files(1))})
		if err != nil || m.Train.Records != 1 || m.Test.Records != 1 || m.Train.Classes != 2 {
			t.Errorf("%s: one record: %+v, %v", format, m, err)
		}
		_, err = Inspect(context.Background(), spec.Origin{Format: format, Path: folder(t, files(0))})
		if err == nil || !strings.Contains(err.Error(), "1 classes: want 2 to") {
			t.Errorf("%s: one class: %v", format, err)
		}
	}
}
