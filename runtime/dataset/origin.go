package dataset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/stokehq/stoke/runtime/spec"
)

// stream gives one split's records in order, once.
type stream interface {
	// info has everything but the hash, before the first record is read.
	info() Info
	// fill reads the next len(labels)/TargetBytes records; never more than info says.
	fill(ctx context.Context, features, labels []byte) error
	// finish checks what must follow the last record, e.g. nothing.
	finish(ctx context.Context) error
	close() error
}

// opened is an origin whose headers have been read and found consistent.
type opened struct {
	train, test stream
	classes     []string // names of the classes, where they have some
}

func (o opened) close() error { return errors.Join(o.train.close(), o.test.close()) }

// openOrigin checks an origin as far as that is cheap and opens both splits.
func openOrigin(ctx context.Context, from spec.Origin) (opened, error) {
	if from.Train < 0 || from.Test < 0 {
		return opened{}, fmt.Errorf("record limits %d and %d: want 0 (all) or more", from.Train, from.Test)
	}
	if from.CSV != nil && from.Format != spec.FormatCSV {
		return opened{}, fmt.Errorf("csv options given for format %q", from.Format)
	}
	if from.Example != nil && from.Format != spec.FormatExamples {
		return opened{}, fmt.Errorf("example options given for format %q", from.Format)
	}
	if from.Text != nil && from.Format != spec.FormatText {
		return opened{}, fmt.Errorf("text options given for format %q", from.Format)
	}
	if from.Format == spec.FormatSynthetic {
		return openDigits(from)
	}
	var open func(context.Context, spec.Origin) (opened, error)
	switch from.Format {
	case spec.FormatCIFAR:
		open = openCIFAR
	case spec.FormatCSV:
		open = openCSV
	case spec.FormatIDX:
		open = openIDX
	case spec.FormatImages:
		open = openImages
	case spec.FormatRecordIO:
		open = openStored
	case spec.FormatExamples:
		open = openExamples
	case spec.FormatText:
		open = openText
	default:
		return opened{}, unknownFormat(from.Format)
	}
	if from.Path == "" {
		return opened{}, fmt.Errorf("format %q needs a path", from.Format)
	}
	o, err := open(ctx, from)
	if err != nil {
		return opened{}, err
	}
	for split, s := range map[Split]stream{Train: o.train, Test: o.test} {
		if err := s.info().validate(); err != nil {
			o.close()
			return opened{}, fmt.Errorf("%s: %s split: %w", from.Path, split, err)
		}
	}
	return o, nil
}

func unknownFormat(name string) error {
	for _, f := range spec.DatasetFormats() {
		if levenshtein.Distance(strings.ToLower(name), f, nil) <= 2 {
			return fmt.Errorf("unknown dataset format %q: did you mean %q?", name, f)
		}
	}
	return fmt.Errorf("unknown dataset format %q: want one of %s", name, strings.Join(spec.DatasetFormats(), ", "))
}

// limit is how many of the records there are a split takes.
func limit(most, there int64) int64 {
	if most == 0 {
		return there
	}
	return min(most, there)
}
