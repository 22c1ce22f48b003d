package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/stokehq/stoke/runtime/model"
)

const (
	maxDimension   = 1 << 24
	maxRecordBytes = 1 << 28
	maxClasses     = 1 << 16
)

// validate checks sizes so that products of them cannot overflow.
func (i Info) validate() error {
	if err := validateShape("record", i.Type, i.Shape); err != nil {
		return err
	}
	if !i.Target.IsZero() {
		if err := validateShape("target", i.Target.Type, i.Target.Shape); err != nil {
			return err
		}
	}
	if err := i.validateClasses(); err != nil {
		return err
	}
	if i.Records < 1 {
		return errors.New("no records")
	}
	return nil
}

func validateShape(of string, dtype model.DType, shape []int) error {
	if dtype.Size() == 0 {
		return fmt.Errorf("unknown element type %s", dtype)
	}
	if len(shape) == 0 || len(shape) > 4 {
		return fmt.Errorf("%s shape %v: want one to four dimensions", of, shape)
	}
	bytes := dtype.Size()
	for _, d := range shape {
		if d < 1 || d > maxDimension {
			return fmt.Errorf("%s shape %v: want dimensions of 1 to %d", of, shape, maxDimension)
		}
		if bytes > maxRecordBytes/d {
			return fmt.Errorf("%s shape %v: more than %d bytes per record", of, shape, maxRecordBytes)
		}
		bytes *= d
	}
	return nil
}

// validateClasses checks the number of classes: a target of numbers has none, a
// target of bytes at most 256.
func (i Info) validateClasses() error {
	most := maxClasses
	switch {
	case i.Target.IsZero() || i.Target.Type == model.I32:
	case i.Target.Type == model.U8:
		most = 1 << 8
	case i.Target.Type == model.F32 && i.Classes == 0:
		return nil
	case i.Target.Type == model.F32:
		return fmt.Errorf("%d classes of a target of numbers: want 0", i.Classes)
	default:
		return fmt.Errorf("target of type %s: want u8, i32 or f32", i.Target.Type)
	}
	if i.Classes < 2 || i.Classes > most {
		return fmt.Errorf("%d classes: want 2 to %d", i.Classes, most)
	}
	return nil
}

// checkLabels checks the targets of records. The number of the first record is
// given.
func checkLabels(labels []byte, first int64, about Info, split Split) error {
	record := func(at int) int64 { return first + int64(at/about.TargetBytes()) }
	switch dtype, _ := about.Target.Batch(1); dtype {
	case model.U8:
		for at, l := range labels {
			if int(l) >= about.Classes {
				return labelError(split, record(at), int32(l), about.Classes)
			}
		}
	case model.F32:
		for at := 0; at < len(labels); at += 4 {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(labels[at:])))
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s record %d has target %v: want a finite number", split, record(at), v)
			}
		}
	default:
		for at := 0; at < len(labels); at += 4 {
			if l := int32(binary.LittleEndian.Uint32(labels[at:])); l < 0 || int(l) >= about.Classes {
				return labelError(split, record(at), l, about.Classes)
			}
		}
	}
	return nil
}

func labelError(split Split, record int64, label int32, classes int) error {
	return fmt.Errorf("%s record %d has label %d, but the training labels are 0 to %d", split, record, label, classes-1)
}

// describeValues returns type and shape of records with so many values. Without
// a shape it is one row; without a type it is u8 where all are pixels: whole
// numbers from 0 to 255.
func describeValues(shape []int, dtype string, values int, pixels bool) (Info, error) {
	i := Info{Type: model.F32, Shape: slices.Clone(shape)}
	if dtype == "u8" && !pixels {
		return Info{}, errors.New("the options say type \"u8\", but some value is not a whole number from 0 to 255")
	}
	if dtype != "f32" && pixels {
		i.Type = model.U8
	}
	if len(i.Shape) == 0 {
		i.Shape = []int{values}
	}
	product := 1
	for _, d := range i.Shape {
		if d < 1 || product > maxColumns/d {
			return Info{}, fmt.Errorf("shape %v: want positive dimensions of at most %d values", i.Shape, maxColumns)
		}
		product *= d
	}
	if product != values {
		return Info{}, fmt.Errorf("a record has %d values without its label, but shape %v has %d", values, i.Shape, product)
	}
	return i, nil
}
