package dataset

import (
	"context"
	"errors"

	"github.com/stokehq/stoke/runtime/model"
)

// Split is one part of a dataset.
type Split string

// The two splits of a prepared dataset.
const (
	Train Split = "train"
	Test  Split = "test"
)

// Info describes one split.
type Info struct {
	Records int64       `json:"records"`
	Type    model.DType `json:"type"`    // of a feature's elements
	Shape   []int       `json:"shape"`   // of one record's features
	Classes int         `json:"classes"` // labels are 0 … Classes-1; 0: they are numbers
	Target  Target      `json:"target,omitzero"`
	Hash    string      `json:"hash"` // "sha256:…" of shape, type, classes, target and all records in order
}

// Target is what a model is to tell of one record. The zero value is one class
// as an i32, which records of the first version have.
type Target struct {
	Type  model.DType `json:"type"` // u8 or i32: classes; f32: numbers
	Shape []int       `json:"shape"`
}

// IsZero reports whether the target is one class.
func (t Target) IsZero() bool { return t.Type == 0 && len(t.Shape) == 0 }

// Batch returns type and shape of the targets of n records.
func (t Target) Batch(n int) (model.DType, []int) {
	if t.IsZero() {
		return model.I32, []int{n}
	}
	return t.Type, append([]int{n}, t.Shape...)
}

// FeatureBytes is the size of one record's features.
func (i Info) FeatureBytes() int {
	n := i.Type.Size()
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// TargetBytes is the size of one record's target.
func (i Info) TargetBytes() int {
	dtype, shape := i.Target.Batch(1)
	n := dtype.Size()
	for _, d := range shape {
		n *= d
	}
	return n
}

// Source reads records of one split. It may be used by several goroutines.
type Source interface {
	Info() Info
	// Read fills features (FeatureBytes each) and labels (TargetBytes each,
	// little-endian) with the records of the given numbers, in their order. A record that fails its checksum is an error that names it.
	Read(ctx context.Context, records []int64, features, labels []byte) error
	// Prefetch makes the kernel read the records [start, end) ahead, where it can.
	// It returns before they are read.
	Prefetch(start, end int64)
	Close() error
}

// ErrDamaged is about data that are not what they were when they were prepared.
var ErrDamaged = errors.New("the data are damaged: prepare them again")

// Manifest describes a prepared folder; it is its manifest.json.
type Manifest struct {
	Format string `json:"format"` // of the origin, e.g. "idx"
	Train  Info   `json:"train"`
	Test   Info   `json:"test"`
	Hash   string `json:"hash"` // "sha256:…" of both splits' hashes: equal hashes, equal data
	// ClassNames has the name of each class where the origin has names. The
	// hash does not cover them: training reads numbers.
	ClassNames []string `json:"class_names,omitempty"`
}
