package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// A mapped file that is cut gives an error, and its records once they are there again.
func TestMappedFileIsCut(t *testing.T) {
	const records = 200
	text, dir := filepath.Join(t.TempDir(), "text"), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(text, bytes.Repeat([]byte("0123456789abcdef"), 500*(records+100)/16), 0o600); err != nil {
		t.Fatal(err)
	}
	from := spec.Origin{Format: spec.FormatText, Path: text, Train: records, Text: &spec.Text{Length: 500, TestShare: 0.1}}
	if _, err := Prepare(t.Context(), from, dir, nil); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "train.rio")
	s, err := openFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if s.mapped == nil {
		t.Fatal("the file is not mapped")
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	read := func() ([]byte, error) {
		features, labels := make([]byte, 2*s.about.FeatureBytes()), make([]byte, 2*s.about.TargetBytes())
		err := s.Read(t.Context(), []int64{3, s.about.Records - 2}, features, labels)
		return append(features, labels...), err
	}
	want, err := read()
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{int64(len(whole)) / 2, 0} {
		if err := os.Truncate(name, left); err != nil {
			t.Fatal(err)
		}
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "shorter") {
			t.Errorf("a file of %d of %d bytes: %v", left, len(whole), err)
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(whole)
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	if got, err := read(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file is whole again: %v, or other records", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); err == nil {
		t.Error("a closed file is read")
	}
}
