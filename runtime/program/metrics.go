package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/stokehq/stoke/runtime/pattern"
)

// reportPrefix begins the lines of the standard output that are for stoke.
const reportPrefix = "stoke: "

// maxValues is the number of values that a line may have.
const maxValues = 256

// reported is one line of a rank.
type reported struct {
	step       int64 // -1: none
	values     map[string]float64
	checkpoint string
}

// notFinite are the numbers that Python's json writes and JSON does not have. In
// an object such a word follows a colon; as a part of a text it may be changed
// too, which no caller sees: texts are dropped.
var notFinite = pattern.New(`:\s*(?:NaN|-?Infinity)\b`)

// parseReport reads a line of JSON. Fields that are not numbers are dropped,
// except "checkpoint".
func parseReport(line []byte) (reported, error) {
	var fields map[string]any
	if err := decodeLine(line, &fields); err != nil {
		quoted := notFinite.ReplaceAllStringFunc(string(line), func(found string) string {
			return `:"` + string(bytes.TrimSpace([]byte(found[1:]))) + `"`
		})
		if decodeLine([]byte(quoted), &fields) != nil {
			return reported{}, err
		}
	}
	r := reported{step: -1, values: make(map[string]float64)}
	for name, field := range fields {
		switch {
		case name == "step":
			n, ok := field.(json.Number)
			f, err := n.Float64()
			if !ok || err != nil || f != math.Trunc(f) || f < 0 || f >= 1<<53 {
				return reported{}, errors.New(`"step" is not a whole number`)
			}
			r.step = int64(f)
		case name == "checkpoint":
			text, ok := field.(string)
			if !ok || text == "" {
				return reported{}, errors.New(`"checkpoint" is not the name of a file or folder`)
			}
			r.checkpoint = text
		default:
			if f, ok := floatOf(field); ok {
				if err := checkName(name); err != nil {
					return reported{}, err
				}
				r.values[name] = f
			}
		}
	}
	switch {
	case len(r.values) > maxValues:
		return reported{}, fmt.Errorf("the line has %d values, at most %d are allowed", len(r.values), maxValues)
	case len(r.values) == 0 && r.checkpoint == "" && r.step < 0:
		return reported{}, errors.New("the line has no number")
	}
	return r, nil
}

// longestName is the length of a metric's name in bytes.
const longestName = 128

// checkName rejects names that are hard to print or to store.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > longestName:
		return fmt.Errorf("the name of a metric has %d bytes: it must have 1 to %d", len(name), longestName)
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) || c == utf8.RuneError }):
		return fmt.Errorf("the name %q of a metric cannot be printed", name)
	}
	return nil
}

func decodeLine(line []byte, to *map[string]any) error {
	*to = nil
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return errors.New("the line is not a JSON object")
	}
	if _, err := d.Token(); err != io.EOF || *to == nil {
		return errors.New("the line is not one JSON object")
	}
	return nil
}

func floatOf(field any) (float64, bool) {
	switch v := field.(type) {
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case string:
		switch v {
		case "NaN", "Infinity", "-Infinity":
			f, err := strconv.ParseFloat(v, 64)
			return f, err == nil
		}
	}
	return 0, false
}

// follower reads new lines of a file that a program writes.
type follower struct {
	path   string
	offset int64
	lines  splitter
	failed bool // an error was returned once
}

// read takes all lines that were added. A missing file has no lines; a file that was
// cut is read from its start. A link or a pipe in its place is not opened. Only the
// first error is returned.
func (f *follower) read() error {
	err := f.readAdded()
	if err == nil || f.failed {
		return nil
	}
	f.failed = true
	return fmt.Errorf("read metrics: %w", err)
}

func (f *follower) readAdded() error {
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", f.path)
	case info.Size() < f.offset:
		f.offset, f.lines.line = 0, nil
	case info.Size() == f.offset:
		return nil
	}
	if _, err := file.Seek(f.offset, io.SeekStart); err != nil {
		return err
	}
	n, err := io.Copy(&f.lines, io.LimitReader(file, info.Size()-f.offset)) // a writer that is faster has to wait for the next time
	f.offset += n
	return err
}
