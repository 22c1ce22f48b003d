package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// idx writes an IDX file's text.
func idx(dimensions []uint32, elements []byte) []byte {
	b := []byte{0, 0, 8, byte(len(dimensions))}
	for _, d := range dimensions {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, elements...)
}

func compress(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// folder writes files by name, with the folders of their names.
func folder(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if b == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func count(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// mnist is a small set of 2 × 2 images, six for training and two for tests.
func mnist() map[string][]byte {
	return map[string][]byte{
		"train-images-idx3-ubyte": idx([]uint32{6, 2, 2}, count(24)),
		"train-labels-idx1-ubyte": idx([]uint32{6}, []byte{0, 1, 2, 0, 1, 2}),
		"t10k-images-idx3-ubyte":  idx([]uint32{2, 2, 2}, count(8)),
		"t10k-labels-idx1-ubyte":  idx([]uint32{2}, []byte{2, 1}),
	}
}

func TestIDX(t *testing.T) {
	plain := mnist()
	mixed := map[string][]byte{
		"train-images.idx3-ubyte.gz": compress(t, plain["train-images-idx3-ubyte"]),
		"train-labels-idx1-ubyte.gz": compress(t, plain["train-labels-idx1-ubyte"]),
		"t10k-images.idx3-ubyte":     plain["t10k-images-idx3-ubyte"],
		"t10k-labels-idx1-ubyte":     plain["t10k-labels-idx1-ubyte"],
	}
	var hashes []string
	for _, files := range []map[string][]byte{plain, mixed} {
		dir := filepath.Join(t.TempDir(), "new", "prepared")
		from := spec.Origin{Format: "idx", Path: folder(t, files)}
		m, err := Prepare(context.Background(), from, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		inspected, err := Inspect(context.Background(), from)
		if diff := cmp.Diff(m, inspected); err != nil || diff != "" {
			t.Errorf("inspected otherwise: %v %s", err, diff)
		}
		read, err := ReadManifest(dir)
		if diff := cmp.Diff(m, read); err != nil || diff != "" {
			t.Errorf("manifest otherwise: %v %s", err, diff)
		}
		hashes = append(hashes, m.Hash)
		want := Info{Records: 6, Type: model.U8, Shape: []int{2, 2}, Classes: 3, Hash: m.Train.Hash}
		if diff := cmp.Diff(want, m.Train); diff != "" {
			t.Error(diff)
		}
		s, err := Open(dir, Test)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if diff := cmp.Diff(m.Test, s.Info()); diff != "" {
			t.Error(diff)
		}
		f, l := make([]byte, 8), make([]byte, 8)
		if err := s.Read(context.Background(), []int64{1, 0}, f, l); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f, []byte{4, 5, 6, 7, 0, 1, 2, 3}) || !bytes.Equal(l, []byte{1, 0, 0, 0, 2, 0, 0, 0}) {
			t.Errorf("records %v, labels %v", f, l)
		}
	}
	if hashes[0] != hashes[1] {
		t.Error("equal data, but other hashes")
	}
}

func TestIDXLimits(t *testing.T) {
	m, err := Inspect(context.Background(), spec.Origin{Format: "idx", Path: folder(t, mnist()), Train: 4, Test: 100})
	if err != nil || m.Train.Records != 4 || m.Test.Records != 2 || m.Train.Classes != 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestIDXRefusals(t *testing.T) {
	const images, labels, tests = "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"
	huge := []uint32{1 << 31, 1 << 31, 1 << 31}
	for name, c := range map[string]struct {
		file    string
		text    []byte
		limited int64
		want    string // beside the file's name
	}{
		"missing":            {images, nil, 0, "no file"},
		"empty":              {images, []byte{}, 0, "truncated"},
		"text":               {images, []byte("hello, world, this is a text"), 0, "IDX"},
		"labels as images":   {images, idx([]uint32{6}, count(6)), 0, "3 dimensions"},
		"truncated":          {images, idx([]uint32{6, 2, 2}, count(23)), 0, "claims"},
		"goes on":            {images, idx([]uint32{6, 2, 2}, count(25)), 0, "claims"},
		"header only":        {images, idx([]uint32{6, 2}, nil), 0, ""},
		"overflowing header": {images, idx(huge, count(24)), 0, "claims"},
		"no images":          {images, idx([]uint32{0, 2, 2}, nil), 0, "no elements"},
		"fewer labels":       {labels, idx([]uint32{5}, count(5)), 0, "6 images"},
		"many labels":        {labels, idx([]uint32{1 << 31}, count(6)), 0, "claims"},
		"label unknown":      {tests, idx([]uint32{2}, []byte{1, 3}), 0, "label 3"},
		"one class":          {labels, idx([]uint32{6}, make([]byte, 6)), 0, "classes"},
	} {
		t.Run(name, func(t *testing.T) {
			files := mnist()
			files[c.file] = c.text
			refused(t, files, c.file, c.want)
			if c.text == nil {
				return
			}
			delete(files, c.file)
			files[c.file+".gz"] = compress(t, c.text)
			refused(t, files, "", "")
		})
	}
}

func refused(t *testing.T, files map[string][]byte, file, want string) {
	t.Helper()
	parent := t.TempDir()
	from := spec.Origin{Format: "idx", Path: folder(t, files)}
	_, err := Prepare(context.Background(), from, filepath.Join(parent, "prepared"), nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("want an error with %q, got %v", want, err)
	}
	if !strings.Contains(err.Error(), file) && !strings.Contains(err.Error(), "record") && !strings.Contains(err.Error(), "split") {
		t.Errorf("the error does not name %s: %v", file, err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := Inspect(context.Background(), from); err == nil {
		t.Error("inspected without complaint")
	}
}

func TestIDXCompressedRefusals(t *testing.T) {
	good := mnist()["train-images-idx3-ubyte"]
	packed := compress(t, good)
	damaged := bytes.Clone(packed)
	damaged[len(damaged)-6] ^= 1 // its own checksum
	for name, text := range map[string][]byte{
		"not gzip":  good,
		"cut":       packed[:len(packed)-9],
		"checksum":  damaged,
		"empty":     {},
		"bomb":      compress(t, idx([]uint32{1 << 20, 1 << 10, 1 << 10}, make([]byte, 1<<20))),
		"expansion": compress(t, append(bytes.Clone(good), make([]byte, 1<<24)...)),
	} {
		t.Run(name, func(t *testing.T) {
			files := mnist()
			delete(files, "train-images-idx3-ubyte")
			files["train-images-idx3-ubyte.gz"] = text
			refused(t, files, "train-images", "")
		})
	}
	// A limit does not keep damage behind it from being found.
	files := mnist()
	delete(files, "train-images-idx3-ubyte")
	files["train-images-idx3-ubyte.gz"] = damaged
	if _, err := Inspect(context.Background(), spec.Origin{Format: "idx", Path: folder(t, files), Train: 2}); err == nil {
		t.Error("damage behind the limit went unseen")
	}
}

func FuzzIDX(f *testing.F) {
	f.Add(idx([]uint32{6, 2, 2}, count(24)), idx([]uint32{6}, []byte{0, 1, 2, 0, 1, 2}))
	f.Add(idx([]uint32{1 << 31, 1 << 31, 1 << 31}, count(24)), idx([]uint32{1 << 31}, nil))
	f.Add([]byte{0, 0, 8, 3}, []byte{0, 0, 8, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, images, labels []byte) {
		files := mnist()
		files["train-images-idx3-ubyte"], files["train-labels-idx1-ubyte"] = images, labels
		m, err := Inspect(context.Background(), spec.Origin{Format: "idx", Path: folder(t, files)})
		if err == nil && m.Train.Records*4 > int64(len(images)) {
			t.Errorf("%d bytes gave %d images", len(images), m.Train.Records)
		}
	})
}

// A compressed file of labels may hold a thousand times its size: what is read
// of it is not kept.
func TestCompressedLabelsTakeNoMemory(t *testing.T) {
	const labels = 64 << 20
	files := mnist()
	delete(files, "train-labels-idx1-ubyte")
	files["train-labels-idx1-ubyte.gz"] = compress(t, idx([]uint32{labels}, make([]byte, labels)))
	dir := folder(t, files)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Inspect(context.Background(), spec.Origin{Format: "idx", Path: dir})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "6 images") {
		t.Errorf("more labels than images: %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > labels/8 {
		t.Errorf("%d bytes were allocated for %d labels", took, labels)
	}
}
