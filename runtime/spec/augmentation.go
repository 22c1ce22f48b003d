package spec

import (
	"fmt"
	"slices"
)

// Augmentation changes the pictures of training records at random, in each epoch
// in another way. The zero value changes none.
type Augmentation struct {
	// Crop pads a picture with so many black pixels on each side, and takes a part
	// of its size at a random place.
	Crop int  `json:"crop,omitempty"`
	Flip bool `json:"flip,omitempty"` // mirrors half of the pictures, left to right
}

const maxCrop = 1 << 12

func (s *Spec) validateAugmentation(c *checks) {
	c.checkRange("augmentation.crop", s.Augmentation.Crop, 0, maxCrop)
}

// Check returns an error where records of a type and shape are not pictures that
// can be changed.
func (a Augmentation) Check(dtype string, shape []int) error {
	switch {
	case a == Augmentation{}:
		return nil
	case dtype != "u8" || len(shape) != 2 && len(shape) != 3:
		return fmt.Errorf("the records are %s %v: want pictures of u8, height × width or height × width × channels", dtype, shape)
	case a.Crop >= slices.Min(shape[:2]):
		return fmt.Errorf("the pictures are %d × %d pixels: want a padding of less than that, not %d", shape[0], shape[1], a.Crop)
	}
	return nil
}
