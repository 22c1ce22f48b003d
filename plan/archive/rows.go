package archive

import (
	"bufio"
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Header returns the first line of comma-separated values: the names of the columns.
func Header() string { return rowOf("number", "time", "type", "epoch", "step", "name", "value") }

// Rows returns an event as lines of comma-separated values, one for each value. An
// event without values is one line whose name and value are empty, so that the column
// of values stays numeric.
func Rows(e providers.RunEvent) string {
	var b strings.Builder
	row := func(name, value string) {
		b.WriteString(rowOf(strconv.FormatInt(e.Number, 10), e.Time.UTC().Format(time.RFC3339Nano), e.Type,
			strconv.Itoa(e.Epoch), strconv.FormatInt(e.Step, 10), name, value))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		row(name, strconv.FormatFloat(e.Values[name], 'g', -1, 64))
	}
	if len(e.Values) == 0 {
		row("", "")
	}
	return b.String()
}

func rowOf(fields ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // a strings.Builder does not fail
	w.Flush()
	return b.String()
}

// buffered writes texts, and holds the first error.
type buffered struct {
	w   io.Writer
	b   *bufio.Writer
	err error
}

func (b *buffered) add(text string) {
	if b.b == nil {
		b.b = bufio.NewWriter(b.w)
	}
	if _, err := b.b.WriteString(text); err != nil && b.err == nil {
		b.err = err
	}
}

func (b *buffered) flush() error {
	if b.b == nil || b.err != nil {
		return b.err
	}
	return b.b.Flush()
}
