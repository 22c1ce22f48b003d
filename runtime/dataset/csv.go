package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// survey is what a first reading of a file finds out.
type survey struct {
	train, test int64      // records by split, when one file holds both
	pixels      bool       // all values are whole numbers from 0 to 255
	classes     int        // of the training records
	names       classNames // of the training records, where labels are texts
	text        bool       // labels are texts
}

// share says which split the record at a place of a single file belongs to.
type share struct {
	seed  uint64
	below uint64
}

func newShare(from spec.Origin, o spec.CSV) share {
	part := o.TestShare
	if part == 0 {
		part = 1.0 / 6
	}
	return share{from.Seed, uint64(part * (1 << 53))}
}

// test spreads records by a hash of their number (SplitMix64's finaliser).
func (s share) test(record int64) bool {
	return model.Mix(s.seed*model.Golden+uint64(record)+0x632be59bd9b4e019)>>11 < s.below
}

// tableSplit is one split of a table; its share is nil where the file is the
// whole split.
type tableSplit struct {
	*table
	about Info
	split Split
	share *share
	at    int64 // record of the file
}

func openCSV(ctx context.Context, from spec.Origin) (opened, error) {
	var o spec.CSV
	if from.CSV != nil {
		o = *from.CSV
	}
	if err := checkCSV(o); err != nil {
		return opened{}, err
	}
	files, err := splitFiles(from.Path, ".csv")
	if err != nil {
		return opened{}, err
	}
	train, test := files.train, files.test
	parts := newShare(from, o)
	single := &parts
	if test != "" {
		single = nil
	}
	label, width, found, err := inspectCSV(ctx, train, o, -1, 0, single)
	if err != nil {
		return opened{}, err
	}
	testFile := train
	if test != "" {
		testFile = test
		_, _, other, err := inspectCSV(ctx, test, o, label, width, nil)
		if err != nil {
			return opened{}, err
		}
		if other.text != found.text && other.train > 0 && found.train > 0 {
			return opened{}, fmt.Errorf("labels are numbers in one of %s and %s, and text in the other: want one kind", train, test)
		}
		found.test, found.pixels = other.train, found.pixels && other.pixels
	}
	about, err := describeValues(o.Shape, o.Type, width-1, found.pixels)
	if err != nil {
		return opened{}, fmt.Errorf("%s: %w", train, err)
	}
	about.Classes = found.classes
	if o.LabelType == "number" {
		about.Classes, about.Target = 0, Target{Type: model.F32, Shape: []int{1}}
	}
	if found.train == 0 || found.test == 0 {
		return opened{}, fmt.Errorf("%s: %d training and %d test records: want at least one of each", train, found.train, found.test)
	}
	var names []string
	var classes map[string]int32
	if found.text {
		names, classes = found.names.sorted()
	}
	splits := [2]*tableSplit{}
	for i, s := range []tableSplit{{split: Train, share: single}, {split: Test, share: single}} {
		t, err := openTable([]string{train, testFile}[i], o, label, width)
		if err != nil {
			if i == 1 {
				splits[0].close()
			}
			return opened{}, err
		}
		t.labels.classes = classes
		s.table, s.about = t, about
		splits[i] = &s
	}
	splits[0].about.Records = limit(from.Train, found.train)
	splits[1].about.Records = limit(from.Test, found.test)
	return opened{train: splits[0], test: splits[1], classes: names}, nil
}

// checkCSV refuses options that are not known.
func checkCSV(o spec.CSV) error {
	if !slices.Contains([]string{"", "yes", "no"}, o.Header) {
		return fmt.Errorf("csv header %q: want \"yes\", \"no\" or nothing", o.Header)
	}
	if !slices.Contains([]string{"", "u8", "f32"}, o.Type) {
		return fmt.Errorf("csv type %q: want \"u8\", \"f32\" or nothing", o.Type)
	}
	if !slices.Contains([]string{"", "class", "number"}, o.LabelType) {
		return fmt.Errorf("csv label_type %q: want \"class\", \"number\" or nothing", o.LabelType)
	}
	if !(o.TestShare >= 0 && o.TestShare < 1) {
		return fmt.Errorf("csv test_share %v: want at least 0 and below 1", o.TestShare)
	}
	return nil
}

// inspectCSV reads a whole file once.
func inspectCSV(ctx context.Context, path string, o spec.CSV, label, width int, parts *share) (int, int, survey, error) {
	t, err := openTable(path, o, label, width)
	if err != nil {
		return 0, 0, survey{}, err
	}
	defer t.close()
	s := survey{pixels: true, names: make(classNames)}
	for record := int64(0); ; record++ {
		if record%256 == 0 && ctx.Err() != nil {
			return 0, 0, survey{}, ctx.Err()
		}
		err := t.next()
		if errors.Is(err, io.EOF) {
			return t.label, t.width, s, nil
		}
		if err != nil {
			return 0, 0, survey{}, err
		}
		for _, v := range t.values {
			s.pixels = s.pixels && v == math.Trunc(v) && v >= 0 && v <= 255
		}
		s.text = t.labels.text
		if parts != nil && parts.test(record) {
			s.test++
			continue
		}
		s.train++
		if t.labels.numbers {
			continue
		}
		if !s.text {
			s.classes = max(s.classes, int(t.labels.class)+1)
			continue
		}
		if err := s.names.add(t.labels.name); err != nil {
			return 0, 0, survey{}, fmt.Errorf("%s: line %d: %w", path, t.line(), err)
		}
		s.classes = len(s.names)
	}
}

func (s *tableSplit) info() Info { return s.about }

func (s *tableSplit) fill(ctx context.Context, features, labels []byte) error {
	size := s.about.FeatureBytes()
	for i := 0; i < len(labels)/4; {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.table.next(); err != nil {
			if errors.Is(err, io.EOF) {
				return fmt.Errorf("%s: it has become shorter while it was read", s.path)
			}
			return err
		}
		mine := s.share == nil || s.share.test(s.at) == (s.split == Test)
		s.at++
		if !mine {
			continue
		}
		out := features[i*size : (i+1)*size]
		for j, v := range s.values {
			if s.about.Type == model.U8 {
				out[j] = byte(v)
			} else {
				binary.LittleEndian.PutUint32(out[4*j:], math.Float32bits(float32(v)))
			}
		}
		label := uint32(s.labels.class)
		if s.labels.numbers {
			label = math.Float32bits(s.labels.value)
		}
		binary.LittleEndian.PutUint32(labels[4*i:], label)
		i++
	}
	return nil
}

// finish has nothing to check: the first reading saw the whole file.
func (s *tableSplit) finish(context.Context) error { return nil }
