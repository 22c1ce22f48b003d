package dataset

import (
	"fmt"
	"math/bits"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// Augmenter changes pictures as a run's augmentation says. The change of a record
// follows from the seed, the epoch and the record's number only, so that it does
// not depend on the process that reads the record.
type Augmenter struct {
	spec.Augmentation
	seed                    uint64
	height, width, channels int
}

// augmentation gives other random numbers than the order of an epoch has.
const augmentation = 0xa0761d6478bd642f

// NewAugmenter returns nil for a run that changes no pictures.
func NewAugmenter(s *spec.Spec, about Info) (*Augmenter, error) {
	a := s.Augmentation
	if err := a.Check(about.Type.String(), about.Shape); err != nil {
		return nil, fmt.Errorf("augment pictures: %w", err)
	}
	if a == (spec.Augmentation{}) {
		return nil, nil
	}
	channels := 1
	if len(about.Shape) == 3 {
		channels = about.Shape[2]
	}
	return &Augmenter{a, model.Mix(s.Seed ^ augmentation), about.Shape[0], about.Shape[1], channels}, nil
}

// Apply changes the features of one record. scratch is overwritten and returned,
// with room for a record.
func (a *Augmenter) Apply(features []byte, epoch int, record int64, scratch []byte) []byte {
	state := model.Mix(a.seed ^ model.Mix(uint64(epoch)+model.Golden))
	state = model.Mix(state ^ model.Mix(uint64(record)+model.Golden))
	draw := func(n int) int {
		state += model.Golden
		high, _ := bits.Mul64(model.Mix(state), uint64(n))
		return int(high)
	}
	down, right := draw(2*a.Crop+1)-a.Crop, draw(2*a.Crop+1)-a.Crop
	flip := a.Flip && draw(2) == 1
	scratch = append(scratch[:0], features...)
	row := a.width * a.channels
	for y := range a.height {
		out := features[y*row : (y+1)*row]
		from := y + down
		if from < 0 || from >= a.height {
			clear(out)
			continue
		}
		a.shift(out, scratch[from*row:(from+1)*row], right)
		if flip {
			a.mirror(out)
		}
	}
	return scratch
}

// shift writes a row from the pixel right on; pixels beyond its ends are black.
func (a *Augmenter) shift(out, in []byte, right int) {
	first, last := max(0, -right)*a.channels, min(a.width, a.width-right)*a.channels
	clear(out[:first])
	copy(out[first:last], in[first+right*a.channels:])
	clear(out[last:])
}

// mirror turns a row around, pixel by pixel.
func (a *Augmenter) mirror(row []byte) {
	for l, r := 0, a.width-1; l < r; l, r = l+1, r-1 {
		for c := range a.channels {
			i, j := l*a.channels+c, r*a.channels+c
			row[i], row[j] = row[j], row[i]
		}
	}
}
