package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
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

func (t *table) close() error { return t.in.Close() }
