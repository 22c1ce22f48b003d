package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// trial is one run of a program of tests.
type trial struct {
	ok              bool
	passed, skipped int
	ended           int // tests that passed, failed or skipped themselves
	failed          []string
	reason          string // of the last skip
}

func (t *trial) counts() string {
	text := fmt.Sprintf("%d passed", t.passed)
	if len(t.failed) > 0 {
		text += fmt.Sprintf(", %d failed", len(t.failed))
	}
	if t.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", t.skipped)
	}
	return text
}

// event is one line of go tool test2json.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// start runs a program of tests in its package's folder and reads its events.
// The whole output goes to a log of its own, which is named after the package and the try;
// the output of tests that fail is printed.
func (r *runner) start(s *suite, env []string, pkg, try, program, pattern string, parallel int) *trial {
	t := &trial{}
	timeout := s.timeout
	if timeout == 0 {
		timeout = 30 * time.Minute
	}
	args := []string{"tool", "test2json", "-p", path.Join(module, pkg), program, "-test.v=test2json", "-test.paniconexit0",
		"-test.run", pattern, "-test.timeout", timeout.String()}
	if parallel > 0 {
		args = append(args, "-test.parallel", strconv.Itoa(parallel))
	}
	if s.short {
		args = append(args, "-test.short")
	}
	name := r.cache.path("logs", s.name, strings.ReplaceAll(pkg, "/", "-")+try+".log")
	if again, _ := filepath.Glob(strings.TrimSuffix(name, ".log") + "-again-*"); try == "" {
		for _, old := range again {
			_ = os.Remove(old)
		}
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.printf("%s\n", err)
		return t
	}
	log, err := os.Create(name)
	if err != nil {
		r.printf("%s\n", err)
		return t
	}
	defer log.Close() //nolint:errcheck // it is for people
	dir := filepath.Join(r.root, pkg)
	cmd := r.command("go", args...)
	cmd.Dir, cmd.Env = dir, append(env, "PWD="+dir)
	cmd.Stderr = log
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.printf("%s\n", err)
		return t
	}
	texts := make(map[string]*strings.Builder)
	for lines := bufio.NewReader(pipe); ; {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			_, _ = io.WriteString(log, e.Output)
			r.event(t, texts, e)
		}
		if err != nil {
			break
		}
	}
	t.ok = cmd.Wait() == nil
	r.killLeft(cmd)
	r.count(cmd)
	if !t.ok {
		for _, name := range slices.Sorted(maps.Keys(texts)) { // of tests that did not end, and of the program itself
			r.printf("%s", tail(texts[name].String()))
		}
		r.printf("the whole output is in %s\n", name)
	}
	return t
}

// event takes one event of a test. Subtests count as part of their test.
func (r *runner) event(t *trial, texts map[string]*strings.Builder, e event) {
	name, _, sub := strings.Cut(e.Test, "/")
	if e.Output != "" {
		if texts[name] == nil {
			texts[name] = &strings.Builder{}
		}
		texts[name].WriteString(e.Output)
	}
	if sub || name == "" {
		return
	}
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		t.ended++
	}
	switch e.Action {
	case "pass":
		t.passed++
		if e.Elapsed >= 30 {
			r.printf("\t%s passed in %.0f s\n", name, e.Elapsed)
		}
	case "skip":
		t.skipped++
		if text := texts[name]; text != nil {
			t.reason = reason(text.String())
		}
	case "fail":
		t.failed = append(t.failed, name)
		if text := texts[name]; text != nil {
			r.printf("%s", tail(text.String()))
		}
	default:
		return
	}
	delete(texts, name)
}

// reason is the line in which a test says why it skips itself.
func reason(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line
		}
	}
	return ""
}

// tail is the end of a long output, after the output before the first subtest that failed: the
// subtests after it may have filled the end.
func tail(text string) string {
	const maxTail, before = 16 << 10, 4 << 10
	last := len(text) - maxTail
	if last <= 0 {
		return text
	}
	at := strings.Index(text, "\n--- FAIL: ")
	from := max(0, at-before)
	switch {
	case at < 0 || from >= last:
		return "…" + text[last:]
	case at >= last:
		return "…" + text[from:]
	}
	line, _, _ := strings.Cut(text[at+1:], "\n")
	return "…" + text[from:at+1] + line + "\n…" + text[last:]
}
