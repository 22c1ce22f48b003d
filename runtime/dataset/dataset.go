package dataset

import (
	"context"
	"errors"

	"github.com/stokehq/stoke/runtime/engine"
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
	Records int64        `json:"records"`
	Type    engine.DType `json:"type"`    // of a feature's elements
	Shape   []int        `json:"shape"`   // of one record's features
	Classes int          `json:"classes"` // labels are 0 … Classes-1
	Hash    string       `json:"hash"`    // "sha256:…" of shape, type, classes and all records in order
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
}

// Origin says where records come from.
type Origin struct {
	Format string `json:"format"`         // "idx", "csv", "recordio" or "synthetic-digits"
	Path   string `json:"path,omitempty"` // folder (idx, recordio, csv) or file (csv)
	Train  int64  `json:"train,omitempty"`
	Test   int64  `json:"test,omitempty"` // most records of a split, 0: all; synthetic: how many (0: 10,000 and 2,000)
	Seed   uint64 `json:"seed,omitempty"` // of synthetic digits and of a CSV file's split
	CSV    *CSV   `json:"csv,omitempty"`
}

// CSV says how to read comma-separated values. The zero value reads what most
// public sets are: the label first, then values 0–255.
type CSV struct {
	Label     string  `json:"label,omitempty"`      // column: its name in the header, or its number from 0; default: "label" if the header has it, else 0
	Header    string  `json:"header,omitempty"`     // "yes", "no" or "" (looks whether the first line is numbers)
	Shape     []int   `json:"shape,omitempty"`      // of one record, default: one row of all columns
	Type      string  `json:"type,omitempty"`       // "u8", "f32" or "" (u8 if every value is a whole number of 0–255)
	TestShare float64 `json:"test_share,omitempty"` // of the records when there is no test.csv; 0: 1/6
}
