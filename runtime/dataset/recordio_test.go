package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/model"
)

// sample is a stored split of n records of 2 × 3 bytes: record i holds i in
// every byte and label i mod 4.
func sample(t testing.TB, n int) (name string, features, labels []byte) {
	t.Helper()
	about := Info{Records: int64(n), Type: model.U8, Shape: []int{2, 3}, Classes: 4}
	name = filepath.Join(t.TempDir(), "train.rio")
	w, err := create(name, about)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		features = append(features, bytes.Repeat([]byte{byte(i)}, 6)...)
		labels = binary.LittleEndian.AppendUint32(labels, uint32(i%4))
	}
	sum := newContentHash(about)
	sum.add(features, labels)
	w.write(features, labels)
	if err := w.finish(sum.sum.Sum(nil)); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	return name, features, labels
}

func TestStoredRecords(t *testing.T) {
	name, features, labels := sample(t, 100)
	s, err := Open(filepath.Dir(name), Train)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if i := s.Info(); i.Records != 100 || i.Type != model.U8 || !cmp.Equal(i.Shape, []int{2, 3}) || i.Classes != 4 {
		t.Errorf("info %+v", i)
	}
	numbers := []int64{99, 0, 1, 2, 50, 50, 98, 99, 3}
	f, l := make([]byte, 6*len(numbers)), make([]byte, 4*len(numbers))
	if err := s.Read(context.Background(), numbers, f, l); err != nil {
		t.Fatal(err)
	}
	for i, n := range numbers {
		if !bytes.Equal(f[6*i:6*i+6], features[6*n:6*n+6]) || !bytes.Equal(l[4*i:4*i+4], labels[4*n:4*n+4]) {
			t.Errorf("record %d is %v, %v", n, f[6*i:6*i+6], l[4*i:4*i+4])
		}
	}
	for _, bad := range [][]int64{{100}, {-1}, {99, 100}, {1 << 62}} {
		if err := s.Read(context.Background(), bad, make([]byte, 6*len(bad)), make([]byte, 4*len(bad))); err == nil {
			t.Errorf("read records %v", bad)
		}
	}
	if err := s.Read(context.Background(), []int64{1}, make([]byte, 5), make([]byte, 4)); err == nil {
		t.Error("read into too little room")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Read(ctx, []int64{1}, f[:6], l[:4]); err == nil {
		t.Error("read after its context ended")
	}
	if _, err := Open(filepath.Dir(name), "validation"); err == nil {
		t.Error("opened an unknown split")
	}
	if _, err := Open(filepath.Dir(name), Test); err == nil || !strings.Contains(err.Error(), "test.rio") {
		t.Errorf("missing split: %v", err)
	}
}

// readAll opens and reads everything; it must never panic.
func readAll(data []byte) (Info, error) {
	s, err := readStored(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Info{}, err
	}
	size := s.about.FeatureBytes()
	f, l := make([]byte, size), make([]byte, 4)
	for i := range s.about.Records {
		if err := s.Read(context.Background(), []int64{i}, f, l); err != nil {
			return Info{}, err
		}
	}
	return s.about, nil
}

// Every cut and every changed byte is found, at the latest when the record is
// read.
func TestStoredDamage(t *testing.T) {
	name, _, _ := sample(t, 5)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(good); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := readAll(good[:n]); err == nil {
			t.Errorf("cut to %d of %d bytes, it was read", n, len(good))
		}
		bad := bytes.Clone(good)
		bad[n] ^= 0x10
		if _, err := readAll(bad); err == nil {
			t.Errorf("with byte %d changed, it was read", n)
		}
	}
	if _, err := readAll(append(bytes.Clone(good), 0)); err == nil {
		t.Error("with a byte appended, it was read")
	}
	// Two records with each other's place, each whole in itself.
	swapped := bytes.Clone(good)
	first := len(head(Info{Type: model.U8, Shape: []int{2, 3}, Classes: 4}))
	copy(swapped[first:first+14], good[first+14:first+28])
	copy(swapped[first+14:first+28], good[first:first+14])
	if _, err := readAll(swapped); err == nil {
		t.Error("with two records swapped, it was read")
	}
}

// A header with a valid checksum may still lie about sizes.
func TestStoredLies(t *testing.T) {
	for name, about := range map[string]Info{
		"huge dimension": {Type: model.U8, Shape: []int{1 << 40}, Classes: 2},
		"overflow":       {Type: model.I64, Shape: []int{1 << 24, 1 << 24, 1 << 24}, Classes: 2},
		"no dimension":   {Type: model.U8, Classes: 2},
		"negative":       {Type: model.U8, Shape: []int{-1}, Classes: 2},
		"one class":      {Type: model.U8, Shape: []int{2}, Classes: 1},
		"many records":   {Type: model.U8, Shape: []int{2}, Classes: 2},
	} {
		data := append(head(about), foot(1<<40, make([]byte, 32))...)
		if _, err := readAll(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzStored(f *testing.F) {
	name, _, _ := sample(f, 3)
	good, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(head(Info{Type: model.F32, Shape: []int{1 << 24}, Classes: 2}), foot(1, make([]byte, 32))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if about, err := readAll(data); err == nil && about.Records*int64(storedRecord(about)) > int64(len(data)) {
			t.Errorf("%d bytes gave %d records of %d bytes", len(data), about.Records, storedRecord(about))
		}
	})
}
