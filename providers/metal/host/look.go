package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxLines bounds what a machine may say in one look.
const maxLines = 100_000

// Lines is the parser of a look at a machine. A look is a script that prints
// lines, each a kind and fields with tabs between them, and "end" as the last.
// Texts from elsewhere are in base64, so that nothing in them can pass for a
// line.
type Lines map[string]Line

// Line is one kind of line; see Fields and Data.
type Line struct {
	fields     int
	data, once bool
	take       func(f []string) error
}

// Fields is a line of n fields behind the kind; 0 is any number.
func Fields(n int, take func(f []string) error) Line { return Line{fields: n, take: take} }

// Data is Fields with the last one in base64, which is taken decoded.
func Data(n int, take func(f []string) error) Line { return Line{fields: n, data: true, take: take} }

// ExactlyOnce is a line that occurs exactly once.
func (l Line) ExactlyOnce() Line { l.once = true; return l }

// Look runs a script and parses its output. Errors contain what, the observed
// thing.
func Look(ctx context.Context, m Machine, what, script string, lines Lines, args ...string) error {
	out, err := LookScript(ctx, m, script, args...)
	if err != nil {
		return fmt.Errorf("look at %s: %w", what, err)
	}
	if err := lines.Read(out); err != nil {
		return &AnswerError{Host: m.Name(), What: what, Err: err}
	}
	return nil
}

// AnswerError: a machine's answer cannot be parsed.
type AnswerError struct {
	Host, What string
	Err        error
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("look at %s of %s: %v", e.What, e.Host, e.Err)
}

func (e *AnswerError) Unwrap() error { return e.Err }

// Read reads what a look printed.
func (l Lines) Read(out []byte) error {
	body, whole := strings.CutSuffix("\n"+string(bytes.ToValidUTF8(out, []byte("?"))), "\nend\n")
	if !whole {
		return errors.New("only a part of the answer arrived")
	}
	times, n := map[string]int{}, 0
	for text := range strings.Lines(body) {
		if text = strings.TrimSuffix(text, "\n"); text == "" {
			continue
		}
		f := strings.Split(text, "\t")
		line, known := l[f[0]]
		if n++; !known || line.fields > 0 && len(f) != line.fields+1 || n > maxLines {
			return fmt.Errorf("line %d of the answer, %.80q with %d fields, is not a requested one", n, f[0], len(f)-1)
		}
		times[f[0]]++
		if last := len(f) - 1; line.data {
			b, err := base64.StdEncoding.DecodeString(f[last])
			if err != nil {
				return fmt.Errorf("line %d of the answer, %s: %w", n, f[0], err)
			}
			f[last] = string(b)
		}
		if err := line.take(f[1:]); err != nil {
			return fmt.Errorf("line %d of the answer, %s: %w", n, f[0], err)
		}
	}
	for kind, line := range l {
		if line.once && times[kind] != 1 {
			return fmt.Errorf("%d answers about %s", times[kind], kind)
		}
	}
	return nil
}

// Text takes a line's first field.
func Text(to *string) func([]string) error {
	return func(f []string) error { *to = f[0]; return nil }
}

// FirstFieldIs takes whether a line's first field is one of some words; without any, that
// there is such a line.
func FirstFieldIs(to *bool, words ...string) func([]string) error {
	return func(f []string) error { *to = *to || len(words) == 0 || slices.Contains(words, f[0]); return nil }
}

// Append takes the first field of several lines.
func Append(to *[]string) func([]string) error {
	return func(f []string) error { *to = append(*to, f[0]); return nil }
}

// Unit is a unit of systemd as `systemctl show` and `systemctl is-enabled` tell.
type Unit struct {
	Load, Active string // such as loaded, active
	File         string // such as enabled or static
}

// ReadUnits reads blocks of the properties Id, LoadState, ActiveState and
// UnitFileState as systemctl show prints them. Several may be about one unit.
func ReadUnits(text string) map[string]Unit {
	units := map[string]Unit{}
	for block := range strings.SplitSeq(text, "\n\n") {
		is := map[string]string{}
		for line := range strings.SplitSeq(block, "\n") {
			if k, v, ok := strings.Cut(line, "="); ok {
				is[k] = v
			}
		}
		u := units[is["Id"]]
		for k, to := range map[string]*string{"LoadState": &u.Load, "ActiveState": &u.Active, "UnitFileState": &u.File} {
			if v, ok := is[k]; ok {
				*to = v
			}
		}
		units[is["Id"]] = u
	}
	delete(units, "")
	return units
}
