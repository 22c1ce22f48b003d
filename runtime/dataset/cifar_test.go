package dataset

import (
	"bytes"
	"context"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
)

// cifarRecords writes records with these labels, each of them as many bytes as
// the set has before its planes; their planes are of one value each.
func cifarRecords(labels ...[]byte) []byte {
	var b []byte
	for i, l := range labels {
		b = append(b, l...)
		for plane := range 3 {
			b = append(b, bytes.Repeat([]byte{byte(100*plane + i)}, cifarPlane)...)
		}
	}
	return b
}

func cifar10(under string) map[string][]byte {
	files := map[string][]byte{path.Join(under, "test_batch.bin"): cifarRecords([]byte{3})}
	for i, name := range cifarKinds[0].files[Train] {
		files[path.Join(under, name)] = cifarRecords([]byte{byte(i)}, []byte{9})
	}
	return files
}

func cifar100(under string) map[string][]byte {
	return map[string][]byte{
		path.Join(under, "train.bin"): cifarRecords([]byte{19, 99}, []byte{1, 7}),
		path.Join(under, "test.bin"):  cifarRecords([]byte{0, 42}),
	}
}

func TestCIFAR(t *testing.T) {
	for _, under := range []string{"", "cifar-10-batches-bin"} {
		files := cifar10(under)
		files[path.Join(under, "batches.meta.txt")] = []byte("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n")
		from := spec.Origin{Format: "cifar", Path: folder(t, files)}
		about, pixels, labels := load(t, from, Train)
		if about.Classes != 10 || !cmp.Equal(about.Shape, []int{32, 32, 3}) {
			t.Errorf("info %+v", about)
		}
		if diff := cmp.Diff([]int32{0, 9, 1, 9, 2, 9, 3, 9, 4, 9}, labels); diff != "" {
			t.Error(diff)
		}
		if size := 3 * cifarPlane; !bytes.Equal(pixels[size:2*size], bytes.Repeat([]byte{1, 101, 201}, cifarPlane)) {
			t.Errorf("pixels of record 1 start with %v", pixels[size:size+6])
		}
		from.Train = 3
		if m, err := Inspect(context.Background(), from); err != nil || m.Train.Records != 3 || len(m.ClassNames) != 10 || m.ClassNames[2] != "bird" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	for _, under := range []string{"", "cifar-100-binary"} {
		about, _, labels := load(t, spec.Origin{Format: "cifar", Path: folder(t, cifar100(under))}, Train)
		if about.Classes != 100 || !cmp.Equal(labels, []int32{99, 7}) {
			t.Errorf("info %+v, labels %v", about, labels)
		}
	}
}

// A plane has its pixels row by row, and so has a record.
func TestCIFARPlaces(t *testing.T) {
	files := cifar10("")
	record := files["test_batch.bin"]
	record[1+cifarPlane+32*5+2] = 77 // green, row 5, column 2
	_, pixels, _ := load(t, spec.Origin{Format: "cifar", Path: folder(t, files)}, Test)
	if at := bytes.IndexByte(pixels, 77); at != (5*32+2)*3+1 {
		t.Errorf("green of row 5, column 2 is at %d", at)
	}
}

func TestCIFARRefusals(t *testing.T) {
	for want, change := range map[string]func(files map[string][]byte){
		"data_batch_3.bin has 6145 bytes: want a multiple of 3073": func(f map[string][]byte) {
			f["data_batch_3.bin"] = f["data_batch_3.bin"][:6145]
		},
		"test_batch.bin has 0 bytes":           func(f map[string][]byte) { f["test_batch.bin"] = []byte{} },
		"CIFAR-10 needs the file data_batch_4": func(f map[string][]byte) { delete(f, "data_batch_4.bin") },
		"CIFAR-10 needs the file test_batch":   func(f map[string][]byte) { delete(f, "test_batch.bin") },
		"data_batch_2.bin: record 1 has label 10: want 0 to 9": func(f map[string][]byte) {
			f["data_batch_2.bin"][3073] = 10
		},
		"has no file data_batch_1.bin": func(f map[string][]byte) { clear(f) },
		"give a folder with one of them": func(f map[string][]byte) {
			for name, text := range cifar100("cifar-100-binary") {
				f[name] = text
			}
		},
		"train.bin has 6146 bytes: want a multiple of 3074": func(f map[string][]byte) {
			clear(f)
			f["train.bin"], f["test.bin"] = cifarRecords([]byte{1}, []byte{2}), cifarRecords([]byte{1, 1})
		},
		"test.bin: record 0 has label 100": func(f map[string][]byte) {
			clear(f)
			f["train.bin"], f["test.bin"] = cifarRecords([]byte{1, 1}), cifarRecords([]byte{1, 100})
		},
	} {
		files := cifar10("")
		change(files)
		_, err := Inspect(context.Background(), spec.Origin{Format: "cifar", Path: folder(t, files)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	for path, want := range map[string]string{
		"/nonexistent": "the dataset's folder", folder(t, map[string][]byte{"cifar.tar.gz": {}}) + "/cifar.tar.gz": "unpack the archive",
	} {
		if _, err := Inspect(context.Background(), spec.Origin{Format: "cifar", Path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func FuzzCIFAR(f *testing.F) {
	f.Add(cifarRecords([]byte{1}, []byte{2}), true)
	f.Add(cifarRecords([]byte{1, 2}), false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, text []byte, ten bool) {
		files, name := cifar100(""), "train.bin"
		if ten {
			files, name = cifar10(""), "data_batch_5.bin"
		}
		files[name] = append([]byte{}, text...)
		m, err := Inspect(context.Background(), spec.Origin{Format: "cifar", Path: folder(t, files)})
		if err == nil && m.Train.Records*3073 > int64(len(text))+4*2*3073 {
			t.Errorf("%d bytes gave %d records", len(text), m.Train.Records)
		}
	})
}
