package dataset

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// loadTargets prepares an origin and reads a split whole.
func loadTargets(t *testing.T, from spec.Origin, split Split) (about Info, features, targets []byte) {
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
	about = s.Info()
	numbers := make([]int64, about.Records)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	features, targets = make([]byte, len(numbers)*about.FeatureBytes()), make([]byte, len(numbers)*about.TargetBytes())
	if err := s.Read(context.Background(), numbers, features, targets); err != nil {
		t.Fatal(err)
	}
	return about, features, targets
}

func TestText(t *testing.T) {
	one := folder(t, map[string][]byte{"a.txt": []byte("abcdefghijklmnopqrstuvwxyz")})
	two := folder(t, map[string][]byte{"train.txt.gz": compress(t, []byte("the quick brown fox")), "test.txt": []byte("jumps\xff\n")})
	for name, c := range map[string]struct {
		from              spec.Origin
		split             Split
		records           int64
		features, targets string
	}{
		"one file":      {spec.Origin{Path: filepath.Join(one, "a.txt"), Text: &spec.Text{Length: 4, TestShare: 0.25}}, Train, 4, "abcdefghijklmnop", "bcdefghijklmnopq"},
		"its end":       {spec.Origin{Path: filepath.Join(one, "a.txt"), Text: &spec.Text{Length: 4, TestShare: 0.25}}, Test, 1, "uvwx", "vwxy"},
		"a tenth":       {spec.Origin{Path: filepath.Join(one, "a.txt"), Text: &spec.Text{Length: 1}}, Test, 1, "y", "z"},
		"compressed":    {spec.Origin{Path: two, Text: &spec.Text{Length: 3}}, Train, 6, "the quick brown fo", "he quick brown fox"},
		"its test.txt":  {spec.Origin{Path: two, Text: &spec.Text{Length: 3}}, Test, 2, "jumps\xff", "umps\xff\n"},
		"first records": {spec.Origin{Path: two, Train: 2, Text: &spec.Text{Length: 3}}, Train, 2, "the qu", "he qui"},
	} {
		t.Run(name, func(t *testing.T) {
			c.from.Format = "text"
			about, features, targets := loadTargets(t, c.from, c.split)
			length := c.from.Text.Length
			want := Info{Records: c.records, Type: model.U8, Shape: []int{length}, Classes: 256, Target: Target{model.U8, []int{length}}, Hash: about.Hash}
			if diff := cmp.Diff(want, about); diff != "" {
				t.Error(diff)
			}
			if string(features) != c.features || string(targets) != c.targets {
				t.Errorf("%q and %q, want %q and %q", features, targets, c.features, c.targets)
			}
		})
	}
}

// A text of many blocks has each byte once: features, and then targets, join to
// the text.
func TestTextOfManyBlocks(t *testing.T) {
	text := make([]byte, 3*blockBytes+1000)
	for i := range text {
		text[i] = byte(model.Mix(uint64(i)))
	}
	dir := folder(t, map[string][]byte{"train.txt.gz": compress(t, text), "test.txt": bytes.Repeat([]byte("x"), 200)})
	about, features, targets := loadTargets(t, spec.Origin{Format: "text", Path: dir}, Train)
	n := int64(len(text)-1) / 128 * 128
	if about.Records != n/128 || !bytes.Equal(features, text[:n]) || !bytes.Equal(targets, text[1:n+1]) {
		t.Errorf("%d records of %d bytes are other ones", about.Records, n)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), 4, 0.3, false)
	f.Add([]byte{}, 1, 0.5, false)
	f.Add([]byte{0x1f, 0x8b, 8}, -1, 1.5, true)
	f.Fuzz(func(t *testing.T, text []byte, length int, share float64, compressed bool) {
		name := "a.txt"
		if compressed {
			name += ".gz"
		}
		dir := folder(t, map[string][]byte{name: append([]byte{}, text...)})
		m, err := Inspect(context.Background(), spec.Origin{
			Format: "text", Path: filepath.Join(dir, name), Text: &spec.Text{Length: length, TestShare: share},
		})
		if n := m.Train.Records + m.Test.Records; err == nil && !compressed && (n < 2 || n > int64(len(text))) {
			t.Errorf("%d bytes gave %d records", len(text), n)
		}
	})
}
