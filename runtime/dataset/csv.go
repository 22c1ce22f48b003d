package dataset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/stokehq/stoke/runtime/engine"
)

const (
	maxLine    = 16 << 20 // bytes of one line
	maxColumns = maxLine / 2
)

// table reads the records of one CSV file of numbers, line by line.
type table struct {
	path   string
	in     *input
	lines  *bufio.Scanner
	line   int64
	label  int // column
	width  int // columns of a line
	values []float64
	class  int32
}

// openTable opens a file and takes the header away. label and width are what
// the first file settled on, or -1 and 0.
func openTable(path string, o CSV, label, width int) (*table, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	t := &table{path: path, in: in, label: label, width: width}
	if err := t.begin(o); err != nil {
		in.Close()
		return nil, err
	}
	return t, nil
}

// begin looks at the first line and settles which column is the label.
func (t *table) begin(o CSV) error {
	first, err := t.scan()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file has no lines", t.path)
	}
	if err != nil {
		return err
	}
	fields := bytes.Split(first, []byte(","))
	header := o.Header == "yes"
	if o.Header == "" {
		for _, f := range fields {
			if _, err := strconv.ParseFloat(string(bare(f)), 64); err != nil {
				header = true
			}
		}
	}
	if t.width == 0 {
		t.width = len(fields)
	}
	if t.label < 0 {
		if t.label, err = labelColumn(o.Label, fields, header); err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
	}
	if t.width < 2 {
		return fmt.Errorf("%s: line %d has one column: want a label and at least one value, separated by commas", t.path, t.line)
	}
	t.values = make([]float64, 0, t.width-1)
	if header {
		return nil
	}
	// The first line is a record: start again.
	t.line, t.lines = 0, nil
	again, err := openInput(t.path)
	if err != nil {
		return err
	}
	t.in.Close()
	t.in = again
	return nil
}

// labelColumn finds the column that an option names.
func labelColumn(name string, fields [][]byte, header bool) (int, error) {
	want := name
	if want == "" {
		want = "label"
	}
	if header {
		for i, f := range fields {
			if string(bare(f)) == want {
				return i, nil
			}
		}
	}
	if name == "" {
		return 0, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(fields) {
		return n, nil
	}
	return 0, fmt.Errorf("there is no label column %q among its %d columns", name, len(fields))
}

// bare takes white space and quotes away.
func bare(field []byte) []byte {
	return bytes.Trim(bytes.TrimSpace(field), `"`)
}

// scan returns the next line that is not blank, or io.EOF.
func (t *table) scan() ([]byte, error) {
	if t.lines == nil {
		t.lines = bufio.NewScanner(t.in)
		t.lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	}
	for t.lines.Scan() {
		t.line++
		b := t.lines.Bytes()
		if t.line == 1 {
			b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		}
		if len(bytes.TrimSpace(b)) > 0 {
			return b, nil
		}
	}
	switch err := t.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s: line %d is longer than %d bytes: this is no CSV file of numbers", t.path, t.line+1, maxLine)
	case err != nil:
		return nil, fmt.Errorf("%s: after line %d: %w", t.path, t.line, truncated(err))
	}
	return nil, io.EOF
}

// next reads one record into values and class; io.EOF ends it.
func (t *table) next() error {
	line, err := t.scan()
	if err != nil {
		return err
	}
	t.values = t.values[:0]
	for column := 0; ; column++ {
		field, rest, more := bytes.Cut(line, []byte(","))
		if column == t.width {
			return fmt.Errorf("%s: line %d has more than the %d columns of the first", t.path, t.line, t.width)
		}
		v, err := number(bare(field))
		if err != nil {
			return fmt.Errorf("%s: line %d, column %d: %q is not a finite number", t.path, t.line, column, clip(field))
		}
		if column == t.label {
			if v != math.Trunc(v) || v < 0 || v >= maxClasses {
				return fmt.Errorf("%s: line %d: label %q: want a whole number from 0 to %d", t.path, t.line, clip(field), maxClasses-1)
			}
			t.class = int32(v)
		} else {
			t.values = append(t.values, v)
		}
		if !more {
			if column != t.width-1 {
				return fmt.Errorf("%s: line %d has %d columns, the first has %d", t.path, t.line, column+1, t.width)
			}
			return nil
		}
		line = rest
	}
}

func clip(field []byte) []byte { return field[:min(len(field), 40)] }

// number is quick for the small whole numbers that pixels are.
func number(b []byte) (float64, error) {
	if len(b) >= 1 && len(b) <= 3 {
		n := 0
		for _, c := range b {
			if c < '0' || c > '9' {
				n = -1
				break
			}
			n = 10*n + int(c-'0')
		}
		if n >= 0 {
			return float64(n), nil
		}
	}
	v, err := strconv.ParseFloat(string(b), 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, errors.New("not a finite number")
	}
	return v, nil
}

// survey is what a first reading of a file finds out.
type survey struct {
	train, test int64 // records by split, when one file holds both
	pixels      bool  // all values are whole numbers from 0 to 255
	classes     int   // of the training records
}

// share says which split the record at a place of a single file belongs to.
type share struct {
	seed  uint64
	below uint64
}

func newShare(from Origin, o CSV) share {
	part := o.TestShare
	if part == 0 {
		part = 1.0 / 6
	}
	return share{from.Seed, uint64(part * (1 << 53))}
}

// test spreads records by a hash of their number (SplitMix64's finaliser).
func (s share) test(record int64) bool {
	z := s.seed*0x9e3779b97f4a7c15 + uint64(record) + 0x632be59bd9b4e019
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z^z>>31)>>11 < s.below
}

// tableSplit is one split of a table; its share is nil where the file is the
// whole split.
type tableSplit struct {
	*table
	about Info
	split Split
	share *share
	at    int64 // record of the file
	taken int64 // of this split
}

func openCSV(ctx context.Context, from Origin) (opened, error) {
	var o CSV
	if from.CSV != nil {
		o = *from.CSV
	}
	if err := o.check(); err != nil {
		return opened{}, err
	}
	train, test, err := csvFiles(from.Path)
	if err != nil {
		return opened{}, err
	}
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
		found.test, found.pixels = other.train, found.pixels && other.pixels
	}
	about, err := o.describe(found, width, train)
	if err != nil {
		return opened{}, err
	}
	if found.train == 0 || found.test == 0 {
		return opened{}, fmt.Errorf("%s: %d training and %d test records: want at least one of each", train, found.train, found.test)
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
		s.table, s.about = t, about
		splits[i] = &s
	}
	splits[0].about.Records = limit(from.Train, found.train)
	splits[1].about.Records = limit(from.Test, found.test)
	return opened{splits[0], splits[1]}, nil
}

func (o CSV) check() error {
	if !slices.Contains([]string{"", "yes", "no"}, o.Header) {
		return fmt.Errorf("csv header %q: want \"yes\", \"no\" or nothing", o.Header)
	}
	if !slices.Contains([]string{"", "u8", "f32"}, o.Type) {
		return fmt.Errorf("csv type %q: want \"u8\", \"f32\" or nothing", o.Type)
	}
	if !(o.TestShare >= 0 && o.TestShare < 1) {
		return fmt.Errorf("csv test_share %v: want at least 0 and below 1", o.TestShare)
	}
	return nil
}

// csvFiles finds the files: a folder's train.csv and test.csv, or one file.
func csvFiles(path string) (train, test string, err error) {
	status, err := os.Stat(path)
	if err != nil {
		return "", "", fmt.Errorf("the dataset's path: %w", err)
	}
	if !status.IsDir() {
		return path, "", nil
	}
	exists := func(name string) string {
		for _, end := range []string{"", ".gz"} {
			p := filepath.Join(path, name+end)
			if _, err := os.Stat(p); err == nil {
				return p
			}
		}
		return ""
	}
	if train = exists("train.csv"); train == "" {
		return "", "", fmt.Errorf("%s has no file train.csv (or with .gz)", path)
	}
	return train, exists("test.csv"), nil
}

// inspectCSV reads a whole file once.
func inspectCSV(ctx context.Context, path string, o CSV, label, width int, parts *share) (int, int, survey, error) {
	t, err := openTable(path, o, label, width)
	if err != nil {
		return 0, 0, survey{}, err
	}
	defer t.close()
	s := survey{pixels: true}
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
		if parts != nil && parts.test(record) {
			s.test++
			continue
		}
		s.train++
		s.classes = max(s.classes, int(t.class)+1)
	}
}

// describe settles type and shape.
func (o CSV) describe(s survey, width int, path string) (Info, error) {
	i := Info{Type: engine.F32, Shape: slices.Clone(o.Shape), Classes: s.classes}
	if o.Type == "u8" && !s.pixels {
		return Info{}, fmt.Errorf("%s: type \"u8\" was asked for, but not every value is a whole number from 0 to 255", path)
	}
	if o.Type != "f32" && s.pixels {
		i.Type = engine.U8
	}
	if len(i.Shape) == 0 {
		i.Shape = []int{width - 1}
	}
	values := 1
	for _, d := range i.Shape {
		if d < 1 || values > maxColumns/d {
			return Info{}, fmt.Errorf("csv shape %v: want positive dimensions of at most %d values", i.Shape, maxColumns)
		}
		values *= d
	}
	if values != width-1 {
		return Info{}, fmt.Errorf("%s: a record has %d values beside its label, but shape %v has %d", path, width-1, i.Shape, values)
	}
	return i, nil
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
			if s.about.Type == engine.U8 {
				out[j] = byte(v)
			} else {
				binary.LittleEndian.PutUint32(out[4*j:], math.Float32bits(float32(v)))
			}
		}
		binary.LittleEndian.PutUint32(labels[4*i:], uint32(s.class))
		i++
	}
	return nil
}

// finish has nothing to check: the first reading saw the whole file.
func (s *tableSplit) finish(context.Context) error { return nil }

func (t *table) close() error { return t.in.Close() }
