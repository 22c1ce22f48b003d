package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHarmless(t *testing.T) {
	for line, want := range map[string]string{
		"\x1b[31mred\x1b[0m":            "red",
		"\x1b]0;title\x07text":          "text",
		"\x1b]0;title\x1b\\text":        "text",
		"\x1b(Btext\x1b7":               "text",
		"a\tb\x00\x07\x08":              "a b???",
		"\xff\xfeü":                     "?ü",
		"abc\u202edef\u2066":            "abcdef",
		"open \x1b[":                    "open",
		"\u009b31m":                     "?31m",
		strings.Repeat("é", 1000):       strings.Repeat("é", tailColumn-1) + "…",
		strings.Repeat("é", tailColumn): strings.Repeat("é", tailColumn),
	} {
		if got := harmless([]byte(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func split(parts ...string) []string {
	var lines []string
	s := splitter{take: func(line []byte, cut bool) { lines = append(lines, fmt.Sprintf("%d %v %.9s", len(line), cut, line)) }}
	for _, part := range parts {
		s.Write([]byte(part))
	}
	s.flush()
	return lines
}

func TestLines(t *testing.T) {
	for _, test := range []struct{ parts, want []string }{
		{[]string{"a\nb", "c\n\nd"}, []string{"1 false a", "2 false bc", "1 false d"}},
		{[]string{"a\r\nb\r", "\nc"}, []string{"1 false a", "1 false b", "1 false c"}},
		{[]string{"10%\r20%", "\r30%\r\n", "x"}, []string{"3 false 30%", "1 false x"}},
		{[]string{strings.Repeat("x", lineBytes), "yz\rshort"}, []string{"5 false short"}},
		{[]string{strings.Repeat("x", lineBytes), "y\nz"}, []string{"65536 true xxxxxxxxx", "1 false z"}},
		{[]string{strings.Repeat("x", lineBytes+5)}, []string{"65536 true xxxxxxxxx"}},
	} {
		if diff := cmp.Diff(test.want, split(test.parts...)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var tail tail
	for i := range 3*tailLines + 1 {
		tail.add(fmt.Appendf(nil, "\x1b[1m%d", i))
		tail.add([]byte(" \t"))
	}
	lines := tail.read()
	if len(lines) != tailLines || lines[0] != fmt.Sprint(2*tailLines+1) || lines[tailLines-1] != fmt.Sprint(3*tailLines) {
		t.Errorf("%q", lines)
	}
	tail.add(bytes.Repeat([]byte{'x'}, lineBytes))
	if got := len(tail.lines[(tail.next+tailLines-1)%tailLines]); got != tailBytes {
		t.Errorf("%d bytes of a line are kept", got)
	}
}

// disk is a log file that may be full.
type disk struct {
	bytes.Buffer
	full   bool
	opened int
}

func (d *disk) Close() error { return nil }

func (d *disk) Write(p []byte) (int, error) {
	if d.full {
		return 0, errors.New("no space left on device")
	}
	return d.Buffer.Write(p)
}

func TestFullDiskDropsOutput(t *testing.T) {
	d := &disk{}
	var events []string
	l := &rankLog{path: "p", limit: 1 << 20, report: func(kind Kind, text string) { events = append(events, string(kind)) },
		open: func(string) (io.WriteCloser, int64, error) { d.opened++; return d, 0, nil }}
	l.write(0, []byte("one\n"))
	d.full = true
	l.write(0, []byte("two\n"))
	l.write(0, []byte("three\n"))
	d.full = false
	l.write(0, []byte("four\n"))
	l.write(0, []byte("five\n"))
	if dropped := l.close(); dropped != 10 || d.opened != 1 {
		t.Errorf("%d bytes dropped, opened %d times", dropped, d.opened)
	}
	want := "one\n\n[stoke: 10 bytes of output could not be written here]\nfour\nfive\n"
	if d.String() != want {
		t.Errorf("%q", d.String())
	}
	if diff := cmp.Diff([]string{"unwritten"}, events); diff != "" {
		t.Error(diff)
	}
}

func TestStreamsDoNotMixWithinALine(t *testing.T) {
	d := &disk{}
	l := &rankLog{path: "p", limit: 1 << 20, open: func(string) (io.WriteCloser, int64, error) { return d, 0, nil }}
	l.write(0, []byte("out"))
	l.write(0, []byte("put\nmore"))
	l.write(1, []byte("error\n"))
	l.write(0, nil)
	l.write(0, []byte("end\n"))
	if want := "output\nmore\nerror\nend\n"; d.String() != want {
		t.Errorf("%q", d.String())
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank-0.log")
	if err := os.WriteFile(path, []byte("earlier generation\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rotated := 0
	l := &rankLog{path: path, limit: 100, open: openAppending, report: func(kind Kind, text string) {
		if kind != Rotated {
			t.Error(kind, text)
		}
		rotated++
	}}
	line := []byte(strings.Repeat("x", 29) + "\n")
	for i := range 10 {
		l.write(0, line)
		for _, name := range []string{path, path + ".1"} {
			if info, err := os.Stat(name); err == nil && info.Size() > 100 {
				t.Errorf("%s has %d bytes after %d lines", name, info.Size(), i+1)
			}
		}
	}
	l.close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if rotated != 3 || len(text) != 60 { // 19+60 bytes, 90, 90, 60
		t.Errorf("%d rotations, %d bytes", rotated, len(text))
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}

// A log that cannot be renamed stays within its limit.
func TestRotationThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank-0.log")
	if err := os.MkdirAll(filepath.Join(path+".1", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := &rankLog{path: path, limit: 100, open: openAppending, report: func(Kind, string) {}}
	for range 100 {
		l.write(0, []byte("0123456789"))
	}
	dropped := l.close()
	if info, err := os.Stat(path); err != nil || info.Size() != 100 || dropped != 900 {
		t.Errorf("%v, %v, %d dropped", info.Size(), err, dropped)
	}
}

func TestReports(t *testing.T) {
	for line, want := range map[string]reported{
		`{"step": 3, "loss": 0.5, "name": "x", "ok": true}`: {3, map[string]float64{"loss": 0.5, "ok": 1}, ""},
		`{"step": 3.0, "loss": 1e3}`:                        {3, map[string]float64{"loss": 1000}, ""},
		`{"step": 7}`:                                       {7, map[string]float64{}, ""},
		`{"loss": 1}`:                                       {-1, map[string]float64{"loss": 1}, ""},
		`{"checkpoint": "step-1", "step": 4}`:               {4, map[string]float64{}, "step-1"},
		` {"a": 1, "b": {"c": 2}, "d": null} `:              {-1, map[string]float64{"a": 1}, ""},
		`{"loss": Infinity, "x": -Infinity, "s": 1}`:        {-1, map[string]float64{"loss": math.Inf(1), "x": math.Inf(-1), "s": 1}, ""},
	} {
		got, err := parseReport([]byte(line))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(reported{})); err != nil || diff != "" {
			t.Errorf("%s: %v %s", line, err, diff)
		}
	}
	got, err := parseReport([]byte(`{"loss": NaN, "step": 1}`))
	if err != nil || !math.IsNaN(got.values["loss"]) || got.step != 1 {
		t.Error(got, err)
	}
	var many strings.Builder
	for i := range maxValues + 1 {
		fmt.Fprintf(&many, `,"v%d":1`, i)
	}
	for _, line := range []string{
		"", "loss 3", "[1]", "null", "1", `{"a":1}{"a":1}`, `{"a":1`, `{"step": "1", "a": 1}`, `{"step": -1, "a": 1}`,
		`{"step": 0.5, "a": 1}`, `{"checkpoint": 1}`, `{"checkpoint": ""}`, `{"name": "x"}`, `{"a": NaNs}`, "{" + many.String()[1:] + "}", `{"step": 1e400, "a": 1}`,
	} {
		if got, err := parseReport([]byte(line)); err == nil {
			t.Errorf("%.60s is accepted: %+v", line, got)
		}
	}
}

func FuzzReports(f *testing.F) {
	f.Add([]byte(`{"step": 3, "loss": NaN}`))
	f.Add([]byte("\x1b]0;x\x07{\"a\":1e999}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseReport(line)
		if err == nil && len(r.values) == 0 && r.checkpoint == "" && r.step < 0 {
			t.Error("a report of nothing")
		}
		for _, c := range harmless(line) {
			if c < ' ' || c == 0x7f {
				t.Errorf("%q", c)
			}
		}
	})
}

func TestMetricsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics")
	var lines []string
	f := follower{path: path}
	f.lines.take = func(line []byte, _ bool) { lines = append(lines, string(line)) }
	step := func(text string, flag int, want ...string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		file.WriteString(text)
		file.Close()
		lines = nil
		if err := f.read(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Error(diff)
		}
	}
	if err := f.read(); err != nil { // missing
		t.Fatal(err)
	}
	step("a\nb", os.O_APPEND, "a")
	step("c\n", os.O_APPEND, "bc")
	step("", os.O_APPEND)
	step("x\n", os.O_TRUNC, "x") // cut
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if err := f.read(); err == nil {
		t.Error("a link is followed")
	}
	if err := f.read(); err != nil {
		t.Error("the error is returned twice")
	}
}

func TestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	if all, err := Checkpoints(filepath.Join(dir, "none")); err != nil || all != nil {
		t.Error(all, err)
	}
	for _, name := range []string{"step-1", "step-2", "step-3"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("step-3/.complete") // of an earlier generation
	w := newWatcher(dir)
	if got := w.look(); got != nil {
		t.Errorf("%v is not new", got)
	}
	write("step-1/.complete")
	write("model.pt")
	write("stray.complete")
	if diff := cmp.Diff([]string{filepath.Join(dir, "step-1")}, w.look()); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"model.pt", filepath.Join(dir, "step-2") + "/"} {
		if _, err := w.mark(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.look(); got != nil {
		t.Errorf("%v was reported by its rank", got)
	}
	for _, name := range []string{"gone", "../x", "/etc/passwd", ".", "step-1/x", "model.pt.complete"} {
		if path, err := w.mark(name); err == nil {
			t.Errorf("%s is marked as %s", name, path)
		}
	}
	all, err := Checkpoints(dir)
	if err != nil || len(all) != 4 {
		t.Error(all, err)
	}
	if _, err := newWatcher("").mark("x"); err == nil {
		t.Error("a checkpoint without a folder")
	}
}
