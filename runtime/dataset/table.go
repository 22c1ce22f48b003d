package dataset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/runtime/spec"
)

const (
	maxLine    = 16 << 20 // bytes of one record
	maxColumns = maxLine / 2
)

// table reads the records of one CSV file of numbers, one by one.
type table struct {
	path   string
	in     *input
	rows   *csv.Reader
	bound  *bounded
	label  int // column
	width  int // columns of a record
	values []float64
	labels labels
}

// bounded ends reading where one record has too many bytes: encoding/csv takes
// records of any length.
type bounded struct {
	io.Reader
	left int
}

var errTooLong = errors.New("too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// openTable opens a file and takes the header away. label and width are what
// the first file settled on, or -1 and 0.
func openTable(path string, o spec.CSV, label, width int) (*table, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	t := &table{path: path, in: in, label: label, width: width, labels: labels{numbers: o.LabelType == "number"}}
	if err := t.begin(o); err != nil {
		in.Close()
		return nil, err
	}
	return t, nil
}

// begin looks at the first line and settles which column is the label.
func (t *table) begin(o spec.CSV) error {
	first, err := t.scan()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file has no lines", t.path)
	}
	if err != nil {
		return err
	}
	if t.width == 0 {
		t.width = len(first)
	}
	if t.width < 2 {
		return fmt.Errorf("%s: line %d has one column: want a label and at least one value, separated by commas", t.path, t.line())
	}
	first = slices.Clone(first)
	header, ahead := o.Header == "yes", false
	if o.Header == "" {
		if header, ahead, err = t.detectHeader(first, o.Label); err != nil {
			return err
		}
	}
	if t.label < 0 {
		if t.label, err = labelColumn(o.Label, first, header); err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
	}
	t.values = make([]float64, 0, t.width-1)
	if header && !ahead {
		return nil
	}
	// A record has been read: start again.
	t.rows = nil
	again, err := openInput(t.path)
	if err != nil {
		return err
	}
	t.in.Close()
	t.in = again
	if header {
		_, err = t.scan()
	}
	return err
}

// detectHeader reports whether the first line is a header: it is where a column
// except the label's has text. If only the label has, the labels may be text,
// and the second line decides; ahead reports that it was read.
func (t *table) detectHeader(first []string, name string) (header, ahead bool, err error) {
	label := t.label
	if label < 0 {
		if label, err = labelColumn(name, first, false); err != nil {
			label = -1 // a name, which only a header has
		}
	}
	text := false
	for i, f := range first {
		if _, err := strconv.ParseFloat(strings.TrimSpace(f), 64); err == nil {
			continue
		}
		if i != label {
			return true, false, nil
		}
		text = true
	}
	if !text || t.labels.numbers || strings.TrimSpace(first[label]) == "label" {
		return text, false, nil
	}
	second, err := t.scan()
	if errors.Is(err, io.EOF) {
		return true, true, nil
	}
	if err == nil && label < len(second) && isText(strings.TrimSpace(second[label])) {
		err = fmt.Errorf("%s: the first line may be a header or a record with label %q: set header to \"yes\" or \"no\" in the csv options",
			t.path, clip(first[label]))
	}
	return true, true, err
}

// labelColumn finds the column that an option names.
func labelColumn(name string, fields []string, header bool) (int, error) {
	want := name
	if want == "" {
		want = "label"
	}
	if header {
		for i, f := range fields {
			if strings.TrimSpace(f) == want {
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
	return 0, fmt.Errorf("it has no label column %q among its %d columns", name, len(fields))
}

// line is where the last record began.
func (t *table) line() int {
	line, _ := t.rows.FieldPos(0)
	return line
}

// scan returns the fields of the next record, valid until the one after, or
// io.EOF.
func (t *table) scan() ([]string, error) {
	if t.rows == nil {
		in := bufio.NewReader(t.in)
		if start, _ := in.Peek(3); bytes.Equal(start, []byte("\xef\xbb\xbf")) {
			in.Discard(3) // it was peeked at
		}
		t.bound = &bounded{Reader: in}
		t.rows = csv.NewReader(t.bound)
		t.rows.FieldsPerRecord, t.rows.ReuseRecord, t.rows.TrimLeadingSpace = -1, true, true
	}
	for {
		t.bound.left = maxLine
		fields, err := t.rows.Read()
		var syntax *csv.ParseError
		switch {
		case err == io.EOF:
			return nil, err
		case errors.Is(err, errTooLong):
			return nil, fmt.Errorf("%s: a line is longer than %d bytes: this is not a CSV file of numbers", t.path, maxLine)
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("%s: line %d, byte %d: %w", t.path, syntax.Line, syntax.Column, syntax.Err)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", t.path, truncated(err))
		case len(fields) == 1 && strings.TrimSpace(fields[0]) == "":
			continue // a blank line
		}
		return fields, nil
	}
}

// next reads one record into values and class; io.EOF ends it.
func (t *table) next() error {
	fields, err := t.scan()
	switch {
	case err != nil:
		return err
	case len(fields) > t.width:
		return fmt.Errorf("%s: line %d has more than the %d columns of the first", t.path, t.line(), t.width)
	case len(fields) < t.width:
		return fmt.Errorf("%s: line %d has %d columns, the first has %d", t.path, t.line(), len(fields), t.width)
	}
	t.values = t.values[:0]
	for column, field := range fields {
		field = strings.TrimSpace(field)
		if column == t.label {
			if err := t.labels.read(field); err != nil {
				return fmt.Errorf("%s: line %d: label %q: %w", t.path, t.line(), clip(field), err)
			}
			continue
		}
		v, err := number(field)
		if err != nil {
			return fmt.Errorf("%s: line %d, column %d: %q is not a finite number", t.path, t.line(), column, clip(field))
		}
		t.values = append(t.values, v)
	}
	return nil
}

func clip(field string) string { return field[:min(len(field), 40)] }

// number is quick for the small whole numbers that pixels are.
func number(b string) (float64, error) {
	if len(b) >= 1 && len(b) <= 3 {
		n := 0
		for _, c := range []byte(b) {
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
	v, err := strconv.ParseFloat(b, 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, errors.New("not a finite number")
	}
	return v, nil
}

func (t *table) close() error { return t.in.Close() }
