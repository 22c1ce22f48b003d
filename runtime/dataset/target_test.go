package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/model"
)

// A split keeps targets of each type, and its file says what they are.
func TestStoredTargets(t *testing.T) {
	for name, c := range map[string]struct {
		classes int
		target  Target
		labels  []byte // of three records
		size    int
		text    string
	}{
		"class":   {3, Target{}, []byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, 4, `"classes":3}`},
		"bytes":   {256, Target{model.U8, []int{2}}, []byte{1, 2, 255, 4, 5, 6}, 2, `"target":{"type":"u8","shape":[2]}`},
		"classes": {9, Target{model.I32, []int{2}}, bytes.Repeat([]byte{8, 0, 0, 0}, 6), 8, `"target":{"type":"i32","shape":[2]}`},
		"numbers": {0, Target{model.F32, []int{1, 1}}, bytes.Repeat([]byte{0, 0, 128, 63}, 3), 4, `"target":{"type":"f32","shape":[1,1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			about := Info{Records: 3, Type: model.U8, Shape: []int{2}, Classes: c.classes, Target: c.target}
			if about.TargetBytes() != c.size {
				t.Errorf("a target has %d bytes, want %d", about.TargetBytes(), c.size)
			}
			if err := checkLabels(c.labels, 0, about, Train); err != nil {
				t.Error(err)
			}
			name := filepath.Join(t.TempDir(), "train.rio")
			w, err := create(name, about)
			if err != nil {
				t.Fatal(err)
			}
			sum := newContentHash(about)
			sum.add([]byte("abcdef"), c.labels)
			if err := w.write([]byte("abcdef"), c.labels); err != nil {
				t.Fatal(err)
			}
			if err := w.finish(sum.sum.Sum(nil)); err != nil {
				t.Fatal(err)
			}
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			s, err := Open(filepath.Dir(name), Train)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			about.Hash = sum.text()
			if diff := cmp.Diff(about, s.Info()); diff != "" {
				t.Error(diff)
			}
			f, l := make([]byte, 6), make([]byte, 3*c.size)
			if err := s.Read(context.Background(), []int64{2, 0, 1}, f, l); err != nil {
				t.Fatal(err)
			}
			last := c.labels[2*c.size:]
			if string(f) != "efabcd" || !bytes.Equal(l, append(bytes.Clone(last), c.labels[:2*c.size]...)) {
				t.Errorf("records %q, targets %v", f, l)
			}
			if text, err := json.Marshal(about); err != nil || !strings.Contains(string(describe(about)), c.text) ||
				strings.Contains(string(text), "target") == c.target.IsZero() {
				t.Errorf("described as %s and %s, %v: want %s", describe(about), text, err, c.text)
			}
		})
	}
}

func TestTargetRefusals(t *testing.T) {
	about := func(classes int, target Target) Info {
		return Info{Records: 1, Type: model.U8, Shape: []int{1}, Classes: classes, Target: target}
	}
	for want, i := range map[string]Info{
		"257 classes: want 2 to 256":               about(257, Target{model.U8, []int{1}}),
		"0 classes: want 2 to 65536":               about(0, Target{}),
		"1 classes":                                about(1, Target{model.I32, []int{1}}),
		"3 classes of a target of numbers":         about(3, Target{model.F32, []int{1}}),
		"target of type i64":                       about(3, Target{model.I64, []int{1}}),
		"target shape []: want one to four":        about(0, Target{model.F32, nil}),
		"target shape [0]: want dimensions":        about(0, Target{model.F32, []int{0}}),
		"target shape [16777216 1024]: more than":  about(9, Target{model.U8, []int{1 << 24, 1 << 10}}),
		"unknown element type dtype(200)":          about(9, Target{200, []int{1}}),
		"target shape [1 1 1 1 1]: want one to fo": about(9, Target{model.U8, []int{1, 1, 1, 1, 1}}),
	} {
		if err := i.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	nan := binary.LittleEndian.AppendUint32(make([]byte, 4), math.Float32bits(float32(math.NaN())))
	for want, c := range map[string]struct {
		about  Info
		labels []byte
	}{
		"test record 7 has label 4, but the training labels are 0 to 3":  {about(4, Target{model.U8, []int{2}}), []byte{0, 3, 3, 4}},
		"test record 7 has label -1, but the training labels are 0 to 3": {about(4, Target{model.I32, []int{1}}), []byte{0, 0, 0, 0, 255, 255, 255, 255}},
		"test record 7 has target NaN: want a finite number":             {about(0, Target{model.F32, []int{1}}), nan},
	} {
		if err := checkLabels(c.labels, 6, c.about, Test); err == nil || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
