package dataset

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

func augmenter(t *testing.T, a spec.Augmentation, seed uint64, shape ...int) *Augmenter {
	t.Helper()
	s := spec.Default()
	s.Augmentation, s.Seed = a, seed
	got, err := NewAugmenter(&s, Info{Type: model.U8, Shape: shape})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Every picture is one of the crops of the padded picture, mirrored or not, and
// all of them come about equally often.
func TestAugmentation(t *testing.T) {
	const height, width, pad, n = 4, 5, 2, 25 * 2 * 200
	for _, channels := range []int{1, 3} {
		picture := make([]byte, height*width*channels)
		for i := range picture {
			picture[i] = byte(i + 1)
		}
		// crop takes a part of the padded picture, pixel by pixel.
		crop := func(down, right int, flip bool) (out []byte) {
			for y := range height {
				for x := range width {
					if flip {
						x = width - 1 - x
					}
					y, x := y+down, x+right
					for c := range channels {
						if y < 0 || y >= height || x < 0 || x >= width {
							out = append(out, 0)
						} else {
							out = append(out, picture[(y*width+x)*channels+c])
						}
					}
				}
			}
			return out
		}
		a := augmenter(t, spec.Augmentation{Crop: pad, Flip: true}, 7, height, width, channels)
		counts := make(map[string]int)
		var scratch []byte
		for record := range int64(n) {
			got := bytes.Clone(picture)
			scratch = a.Apply(got, 3, record, scratch)
			counts[string(got)]++
		}
		if len(counts) != 50 {
			t.Errorf("%d channels: %d different pictures, want 50", channels, len(counts))
		}
		for down := -pad; down <= pad; down++ {
			for right := -pad; right <= pad; right++ {
				for _, flip := range []bool{false, true} {
					if got := counts[string(crop(down, right, flip))]; got < 130 || got > 270 { // five standard deviations
						t.Errorf("%d channels: crop (%d, %d), mirrored %v: %d times of %d, want about 200", channels, down, right, flip, got, n)
					}
				}
			}
		}
	}
}

// The change follows from seed, epoch and record, in any order of calls.
func TestAugmentationIsDeterministic(t *testing.T) {
	picture := make([]byte, 28*28)
	for i := range picture {
		picture[i] = byte(model.Mix(uint64(i)))
	}
	apply := func(a *Augmenter, epoch int, record int64) string {
		got := bytes.Clone(picture)
		a.Apply(got, epoch, record, nil)
		return string(got)
	}
	a, b := augmenter(t, spec.Augmentation{Crop: 4}, 1, 28, 28), augmenter(t, spec.Augmentation{Crop: 4}, 1, 28, 28)
	var same [3]int
	const n = 500
	for record := int64(n) - 1; record >= 0; record-- {
		first := apply(a, 0, record)
		if first != apply(b, 0, record) || first != apply(a, 0, record) {
			t.Fatalf("record %d is changed in two ways", record)
		}
		for i, other := range []string{apply(a, 1, record), apply(a, 0, record+1), apply(augmenter(t, a.Augmentation, 2, 28, 28), 0, record)} {
			if first == other {
				same[i]++
			}
		}
	}
	for i, name := range []string{"epoch", "record", "seed"} { // one of 81 crops
		if same[i] > 25 {
			t.Errorf("another %s: %d of %d pictures are changed in the same way", name, same[i], n)
		}
	}
	// The first numbers are golden: a run that is resumed by another version goes on as it began.
	want := []int{-2, 4, 4, 3, 3, -2}
	var got []int
	for record := range int64(3) {
		line := make([]byte, 9*9)
		line[4*9+4] = 1
		augmenter(t, spec.Augmentation{Crop: 4}, 0, 9, 9).Apply(line, 0, record, nil)
		at := bytes.IndexByte(line, 1)
		got = append(got, 4-at/9, 4-at%9)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("crops at %v, want %v", got, want)
		}
	}
}

func TestAugmentationRefusals(t *testing.T) {
	s := spec.Default()
	if a, err := NewAugmenter(&s, Info{Type: model.F32, Shape: []int{3}}); a != nil || err != nil {
		t.Errorf("no augmentation gives %v, %v", a, err)
	}
	s.Augmentation.Crop = 4
	for want, about := range map[string]Info{
		"the records are f32 [8 8]: want pictures":                {Type: model.F32, Shape: []int{8, 8}},
		"the records are u8 [64]: want pictures":                  {Type: model.U8, Shape: []int{64}},
		"the pictures are 8 × 4 pixels: want a padding of less t": {Type: model.U8, Shape: []int{8, 4, 3}},
	} {
		if _, err := NewAugmenter(&s, about); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func BenchmarkAugment(b *testing.B) {
	a := &Augmenter{spec.Augmentation{Crop: 4, Flip: true}, 1, 32, 32, 3}
	picture, scratch := make([]byte, 3072), []byte(nil)
	b.SetBytes(3072)
	for i := range b.N {
		scratch = a.Apply(picture, 0, int64(i), scratch)
	}
}
