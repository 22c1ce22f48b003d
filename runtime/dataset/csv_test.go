package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// load prepares an origin and reads a split whole.
func load(t *testing.T, from spec.Origin, split Split) (Info, []byte, []int32) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "prepared")
	if _, err := Prepare(context.Background(), from, dir, nil); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, split)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	numbers := make([]int64, s.Info().Records)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	f, l := make([]byte, len(numbers)*s.Info().FeatureBytes()), make([]byte, len(numbers)*4)
	if err := s.Read(context.Background(), numbers, f, l); err != nil {
		t.Fatal(err)
	}
	labels := make([]int32, len(numbers))
	for i := range labels {
		labels[i] = int32(binary.LittleEndian.Uint32(l[4*i:]))
	}
	return s.Info(), f, labels
}

func TestCSVPixels(t *testing.T) {
	dir := folder(t, map[string][]byte{
		"train.csv": []byte("\xef\xbb\xbflabel,p0,p1,p2,p3\r\n1,0,255,3,4\r\n\r\n0,5,6,7,8\r\n"),
		"test.csv":  []byte("label,p0,p1,p2,p3\n1,9,10,11,12"),
	})
	about, pixels, labels := load(t, spec.Origin{Format: "csv", Path: dir, CSV: &spec.CSV{Shape: []int{2, 2}}}, Train)
	if about.Type != model.U8 || !cmp.Equal(about.Shape, []int{2, 2}) || about.Classes != 2 {
		t.Errorf("info %+v", about)
	}
	if diff := cmp.Diff([]byte{0, 255, 3, 4, 5, 6, 7, 8}, pixels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int32{1, 0}, labels); diff != "" {
		t.Error(diff)
	}
	if _, pixels, _ := load(t, spec.Origin{Format: "csv", Path: dir}, Test); !cmp.Equal(pixels, []byte{9, 10, 11, 12}) {
		t.Errorf("test pixels %v", pixels)
	}
}

// Floats, a label in the last column, one file for both splits.
func TestCSVShare(t *testing.T) {
	var text strings.Builder
	text.WriteString("width, \"height\", kind\n")
	for i := range 600 {
		fmt.Fprintf(&text, "%d.5, -1e-2, %d\n", i, i%3)
	}
	path := filepath.Join(folder(t, map[string][]byte{"iris.csv": []byte(text.String())}), "iris.csv")
	seen := map[float32]Split{}
	for _, split := range []Split{Train, Test} {
		about, values, labels := load(t, spec.Origin{Format: "csv", Path: path, Seed: 5, CSV: &spec.CSV{Label: "kind", TestShare: 0.25}}, split)
		if about.Type != model.F32 || !cmp.Equal(about.Shape, []int{2}) || about.Classes != 3 {
			t.Errorf("info %+v", about)
		}
		for i, l := range labels {
			v := math.Float32frombits(binary.LittleEndian.Uint32(values[8*i:]))
			if int32(v)%3 != l {
				t.Errorf("record %v has label %d", v, l)
			}
			if _, twice := seen[v]; twice {
				t.Errorf("record %v is in both splits", v)
			}
			seen[v] = split
		}
		if split == Test && (len(labels) < 100 || len(labels) > 200) {
			t.Errorf("%d test records, want about 150", len(labels))
		}
	}
	if len(seen) != 600 {
		t.Errorf("%d records in all", len(seen))
	}
}

// Fields are quoted as RFC 4180 says: commas and line breaks within quotes
// part nothing.
func TestCSVQuotes(t *testing.T) {
	text := "\xef\xbb\xbf\"height, in cm\",\"kind\r\nof it\"\r\n\"1\",\"0\"\r\n\r\n 2 ,\"1\"\n   \n3,0\n4,1"
	dir := folder(t, map[string][]byte{"train.csv": []byte(text), "test.csv": []byte(text)})
	about, values, labels := load(t, spec.Origin{Format: "csv", Path: dir, CSV: &spec.CSV{Label: "kind\nof it"}}, Train)
	if about.Records != 4 || !cmp.Equal(about.Shape, []int{1}) || !cmp.Equal(values, []byte{1, 2, 3, 4}) || !cmp.Equal(labels, []int32{0, 1, 0, 1}) {
		t.Errorf("info %+v, values %v, labels %v", about, values, labels)
	}
}

func TestCSVRefusals(t *testing.T) {
	long := []byte("1," + strings.Repeat("5", maxLine))
	for name, c := range map[string]struct {
		train, test []byte
		options     spec.CSV
		want        string
	}{
		"missing":         {nil, nil, spec.CSV{}, "train.csv"},
		"empty":           {[]byte{}, nil, spec.CSV{}, "no lines"},
		"header only":     {[]byte("label,a\n"), []byte("label,a\n1,1\n"), spec.CSV{}, "at least one of each"},
		"one column":      {[]byte("1\n2\n"), nil, spec.CSV{}, "one column"},
		"fewer columns":   {[]byte("1,2,3\n0,2\n"), nil, spec.CSV{}, "line 2 has 2 columns"},
		"more columns":    {[]byte("1,2\n0,2,3\n"), nil, spec.CSV{}, "more than the 2 columns"},
		"word":            {[]byte("1,2\n0,x\n"), nil, spec.CSV{}, "line 2, column 1"},
		"not a number":    {[]byte("1,2\n0,NaN\n"), nil, spec.CSV{}, "finite"},
		"infinite":        {[]byte("1,2\n0,1e999\n"), nil, spec.CSV{}, "finite"},
		"label -1":        {[]byte("1,2\n-1,3\n"), nil, spec.CSV{}, "label"},
		"label 0.5":       {[]byte("1,2\n0.5,3\n"), nil, spec.CSV{}, "label"},
		"mixed labels":    {[]byte("a,b\ncat,3\n1,2\n"), nil, spec.CSV{}, "line 3: label \"1\": some labels are numbers"},
		"numbers, text":   {[]byte("1,2\n0,3\ncat,2\n"), nil, spec.CSV{}, "line 3: label \"cat\": some labels are numbers"},
		"label NaN":       {[]byte("a,b\nnan,3\n"), nil, spec.CSV{}, "whole number"},
		"empty label":     {[]byte("a,b\ncat,3\n,3\n"), nil, spec.CSV{}, "it is empty"},
		"long label":      {[]byte("a,b\n" + strings.Repeat("x", 257) + ",3\n"), nil, spec.CSV{}, "257 bytes"},
		"test text":       {[]byte("a,b\ncat,3\ndog,4\n"), []byte("a,b\ncow,3\n"), spec.CSV{}, "test.csv: line 2: label \"cow\": no training record has it"},
		"test numbers":    {[]byte("a,b\ncat,3\ndog,4\n"), []byte("a,b\n1,3\n"), spec.CSV{}, "want one kind"},
		"header or not":   {[]byte("cat,3\ndog,4\n"), nil, spec.CSV{}, "set header to"},
		"one text":        {[]byte("a,b\ncat,3\ncat,4\n"), []byte("a,b\ncat,3\n"), spec.CSV{}, "1 classes: want 2"},
		"label huge":      {[]byte("1,2\n9999999,3\n"), nil, spec.CSV{}, "label"},
		"test label":      {[]byte("1,2\n0,3\n"), []byte("2,2\n"), spec.CSV{}, "label 2"},
		"test columns":    {[]byte("1,2\n0,3\n"), []byte("1,2,3\n"), spec.CSV{}, "columns"},
		"label column":    {[]byte("a,b\n0,3\n"), nil, spec.CSV{Label: "kind"}, "kind"},
		"shape":           {[]byte("1,2\n0,3\n"), []byte("1,2\n"), spec.CSV{Shape: []int{2, 2}}, "shape"},
		"negative shape":  {[]byte("1,2\n0,3\n"), []byte("1,2\n"), spec.CSV{Shape: []int{-1, -1}}, "shape"},
		"u8 asked":        {[]byte("1,2.5\n0,3\n"), []byte("1,2\n"), spec.CSV{Type: "u8"}, "u8"},
		"type":            {[]byte("1,2\n0,3\n"), nil, spec.CSV{Type: "f64"}, "f64"},
		"share":           {[]byte("1,2\n0,3\n"), nil, spec.CSV{TestShare: 1}, "test_share"},
		"endless quote":   {[]byte("1,\"" + strings.Repeat("5\n", maxLine/2)), nil, spec.CSV{Header: "no"}, "longer"},
		"open quote":      {[]byte("1,2\n0,\"3\n"), nil, spec.CSV{}, "line 2"},
		"endless line":    {long, nil, spec.CSV{Header: "no"}, "longer"},
		"binary":          {[]byte("\x7fELF\x00\x00\x01\n\x00\x00,\x01\n"), nil, spec.CSV{}, "one column"},
		"too few to part": {[]byte("1,2\n"), nil, spec.CSV{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string][]byte{"train.csv": c.train, "test.csv": c.test})
			from := spec.Origin{Format: "csv", Path: dir, CSV: &c.options}
			parent := t.TempDir()
			_, err := Prepare(context.Background(), from, filepath.Join(parent, "out"), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("want an error with %q, got %v", c.want, err)
			}
			if left, _ := os.ReadDir(parent); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Text labels become classes, sorted. Their names are in the manifest.
func TestCSVTextLabels(t *testing.T) {
	for name, c := range map[string]struct {
		train, test string
		options     spec.CSV
	}{
		"header":            {"a,b,kind\n1,2,frog\n3,4, cat\n5,6,\"dog\"\n7,8,cat\n", "a,b,kind\n1,2,dog\n", spec.CSV{Label: "kind"}},
		"no header":         {"frog,1,2\ncat,3,4\ndog,5,6\ncat,7,8\n", "dog,1,2\n", spec.CSV{Header: "no"}},
		"header given":      {"kind,0,1\nfrog,1,2\ncat,3,4\ndog,5,6\ncat,7,8\n", "kind,0,1\ndog,1,2\n", spec.CSV{Header: "yes"}},
		"header label":      {"label,0,1\nfrog,1,2\ncat,3,4\ndog,5,6\ncat,7,8\n", "label,0,1\ndog,1,2\n", spec.CSV{}},
		"column, no header": {"1,2,frog\n3,4,cat\n5,6,dog\n7,8,cat\n", "1,2,dog\n", spec.CSV{Label: "2", Header: "no"}},
	} {
		from := spec.Origin{Format: "csv", Path: folder(t, map[string][]byte{"train.csv": []byte(c.train), "test.csv": []byte(c.test)}), CSV: &c.options}
		about, values, labels := load(t, from, Train)
		if about.Classes != 3 || !cmp.Equal(labels, []int32{2, 0, 1, 0}) || !cmp.Equal(values, []byte{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("%s: info %+v, labels %v, values %v", name, about, labels, values)
		}
		if _, _, labels := load(t, from, Test); !cmp.Equal(labels, []int32{1}) {
			t.Errorf("%s: test labels %v", name, labels)
		}
		m, err := Inspect(context.Background(), from)
		if err != nil || !cmp.Equal(m.ClassNames, []string{"cat", "dog", "frog"}) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	// A header whose names are numbers, above labels that are numbers.
	path := folder(t, map[string][]byte{"train.csv": []byte("kind,0,1\n1,2,3\n0,4,5\n"), "test.csv": []byte("kind,0,1\n1,2,3\n")})
	if m, err := Inspect(context.Background(), spec.Origin{Format: "csv", Path: path}); err != nil || m.Train.Records != 2 || m.ClassNames != nil {
		t.Errorf("%+v, %v", m, err)
	}
}

// With label_type = "number" the label is the target itself.
func TestCSVNumbers(t *testing.T) {
	table := "rooms,price\n3,0.5\n4,-2e3\n5,1\n"
	dir := folder(t, map[string][]byte{"train.csv": []byte(table), "test.csv": []byte("rooms,price\n7,9\n")})
	from := spec.Origin{Format: "csv", Path: dir, CSV: &spec.CSV{Label: "price", LabelType: "number"}}
	about, features, targets := loadTargets(t, from, Train)
	want := Info{Records: 3, Type: model.U8, Shape: []int{1}, Target: Target{model.F32, []int{1}}, Hash: about.Hash}
	if diff := cmp.Diff(want, about); diff != "" {
		t.Error(diff)
	}
	var got []float32
	for i := range 3 {
		got = append(got, math.Float32frombits(binary.LittleEndian.Uint32(targets[4*i:])))
	}
	if !cmp.Equal(features, []byte{3, 4, 5}) || !cmp.Equal(got, []float32{0.5, -2000, 1}) {
		t.Errorf("features %v, targets %v", features, got)
	}
	for want, c := range map[string]struct{ label, text string }{
		`train.csv: line 3: label "cheap": it is not a finite number`: {"number", "rooms,price\n3,1\n4,cheap\n"},
		`train.csv: line 2: label "1e99": it is not a finite number`:  {"number", "rooms,price\n3,1e99\n"},
		`csv label_type "float"`: {"float", table},
	} {
		dir := folder(t, map[string][]byte{"train.csv": []byte(c.text), "test.csv": []byte(table)})
		from := spec.Origin{Format: "csv", Path: dir, CSV: &spec.CSV{Label: "price", LabelType: c.label}}
		if _, err := Inspect(context.Background(), from); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("kind,a\ncat,1\ndog,2\ncat,1\n"))
	f.Add([]byte("a,kind\n1,cat\n2,dog\n3,cat\n4,cat\n5,dog\n6,dog\n"))
	f.Add([]byte("label,a\n0,1\n1,2\n0,3\n"))
	f.Add([]byte("1;2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := folder(t, map[string][]byte{"train.csv": append([]byte{}, text...)})
		m, err := Inspect(context.Background(), spec.Origin{Format: "csv", Path: dir})
		if err == nil && m.Train.Records+m.Test.Records > int64(len(text)) {
			t.Errorf("%d bytes gave %d records", len(text), m.Train.Records+m.Test.Records)
		}
	})
}
