package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/spec"
)

// preparedText returns the training file of a small dataset of texts.
func preparedText(t *testing.T) (name string) {
	t.Helper()
	const records = 200
	text, dir := filepath.Join(t.TempDir(), "text"), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(text, bytes.Repeat([]byte("0123456789abcdef"), 500*(records+100)/16), 0o600); err != nil {
		t.Fatal(err)
	}
	from := spec.Origin{Format: spec.FormatText, Path: text, Train: records, Text: &spec.Text{Length: 500, TestShare: 0.1}}
	if _, err := Prepare(t.Context(), from, dir, nil); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "train.rio")
}

// readTwo reads two records of a file.
func readTwo(t *testing.T, s *stored) ([]byte, error) {
	features, labels := make([]byte, 2*s.about.FeatureBytes()), make([]byte, 2*s.about.TargetBytes())
	err := s.Read(t.Context(), []int64{3, s.about.Records - 2}, features, labels)
	return append(features, labels...), err
}

// A short file is copied when its first records are read: not before, and a file that is cut
// later has the same records.
func TestShortFileIsCopied(t *testing.T) {
	name := preparedText(t)
	var all []*stored
	for range 2 {
		s, err := openFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.mapped == nil {
			t.Fatal("the file is not mapped")
		}
		defer s.Close()
		all = append(all, s)
	}
	want, err := readTwo(t, all[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 100); err != nil {
		t.Fatal(err)
	}
	if got, err := readTwo(t, all[0]); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy of a file: %v, or other records", err)
	}
	if _, err := readTwo(t, all[1]); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("the file was cut before its first records were read: %v", err)
	}
}

// A mapped file that is cut gives an error, and its records once they are there again.
func TestMappedFileIsCut(t *testing.T) {
	name := preparedText(t)
	s, err := openFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if s.mapped == nil {
		t.Fatal("the file is not mapped")
	}
	s.mapped.short = false
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := readTwo(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{int64(len(whole)) / 2, 0} {
		if err := os.Truncate(name, left); err != nil {
			t.Fatal(err)
		}
		if _, err := readTwo(t, s); err == nil || !strings.Contains(err.Error(), "shorter") {
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
	if got, err := readTwo(t, s); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file is whole again: %v, or other records", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := readTwo(t, s); err == nil {
		t.Error("a closed file is read")
	}
}
