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
	Classes int         `json:"classes"` // labels are 0 … Classes-1
	Hash    string      `json:"hash"`    // "sha256:…" of shape, type, classes and all records in order
}

// FeatureBytes is the size of one record's features.
func (i Info) FeatureBytes() int {
	n := i.Type.Size()
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// Source reads records of one split. It may be used by several goroutines.
type Source interface {
	Info() Info
	// Read fills features (FeatureBytes each) and labels (little-endian
	// int32, 4 bytes each) with the records of the given numbers, in their
	// order. A record that fails its checksum is an error that names it.
	Read(ctx context.Context, records []int64, features, labels []byte) error
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
