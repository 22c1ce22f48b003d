package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a module with one package, whose tests end as the variable TRIES and
// the file tries in their folder say.
const small = `package p

import (
	"os"
	"strings"
	"testing"
)

func TestGood(t *testing.T) {}

func TestBad(t *testing.T) {
	if os.Getenv("BAD") != "" {
		t.Run("part", func(t *testing.T) { t.Error("as told") })
		t.Log(strings.Repeat("much more\n", 2000))
	}
}

// TestFlaky fails as long as there is a file that it can remove.
func TestFlaky(t *testing.T) {
	if os.Remove(os.Getenv("FLAKY")) == nil {
		t.Error("not this time")
	}
}

func TestLab(t *testing.T) {
	if os.Getenv("LAB") == "" {
		t.Skip("there is not a lab")
	}
}

func TestPanic(t *testing.T) {
	if name := os.Getenv("PANIC"); name != "" && (name == "1" || os.Remove(name) == nil) {
		panic("as told")
	}
}

func TestUnrun(t *testing.T) {}
`

// smallRunner returns a runner of that module, and its output.
func smallRunner(t *testing.T) (*runner, *strings.Builder) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module " + module + "\n\ngo 1.26.0\n", "p/doc.go": "package p\n", "p/p_test.go": small} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CI_ALL", "")
	c, err := openCache()
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"init", "-q"}, {"add", "."}} {
		if _, err := output(root, "git", words...); err != nil {
			t.Fatal(err)
		}
	}
	r, err := newRunner(t.Context(), root, c)
	if err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	r.out = out
	return r, out
}

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	cache, err := output(".", "go", "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(cache))
	r, out := smallRunner(t)
	p := module + "/p"
	marker := filepath.Join(t.TempDir(), "flaky")
	unit := suite{name: "unit", packages: []string{"p"}}
	machine := suite{name: "machine", packages: []string{"p"}, real: true, skip: "Lab"}
	lab := suite{name: "lab", packages: []string{"p"}, tags: e2e, run: "Lab"}
	tests := []struct {
		about  string
		suite  suite
		env    []string
		flaky  bool // TestFlaky fails once
		want   outcome
		detail string
	}{
		{"all pass", unit, nil, false, passed, ""},
		{"the same again", unit, nil, false, unchanged, ""},
		{"another recipe", unit, []string{"BAD=1"}, false, failed, p + " TestBad"},
		{"a failure is not kept", unit, []string{"BAD=1"}, false, failed, p + " TestBad"},
		{"a unit test has one try", unit, []string{"FLAKY=" + marker}, true, failed, p + " TestFlaky"},
		{"a panic", unit, []string{"PANIC=1"}, false, failed, p + " TestPanic"},
		{"on a machine one try more", machine, []string{"FLAKY=" + marker}, true, flaky, p + " TestFlaky"},
		{"and then it has passed", machine, []string{"FLAKY=" + marker}, false, unchanged, ""},
		{"a panic on a machine, which leaves tests unrun", machine, []string{"PANIC=" + marker}, true, failed, p + " TestPanic"},
		{"on a machine a test that fails twice", machine, []string{"BAD=1"}, false, failed, p + " TestBad"},
		{"nothing but skips", lab, nil, false, skipped, "every test skipped itself: p_test.go:27: there is not a lab"},
		{"skips are not kept", lab, []string{"X=1"}, false, skipped, "every test skipped itself: p_test.go:27: there is not a lab"},
		{"a second flaky test of the run is too many, after two tries", machine, []string{"N=1", "FLAKY=" + marker}, true, failed, p + " TestFlaky"},
	}
	for _, test := range tests {
		out.Reset()
		if test.flaky {
			if err := os.WriteFile(marker, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s := test.suite
		s.env = test.env
		_ = os.Remove(r.cache.path("costs", s.name))
		res := r.run(&s)
		if _, _, day := r.cache.cost(s.name); (day != "") != (test.want == passed || test.want == flaky) {
			t.Errorf("%s: its cost is of %q", test.about, day)
		}
		if res.outcome != test.want || res.detail != test.detail {
			t.Errorf("%s: %s %q, want %s %q; it printed\n%s", test.about, res.outcome, res.detail, test.want, test.detail, out)
		}
		part := strings.Contains(out.String(), "as told\n--- FAIL: TestBad/part")
		if test.want == flaky {
			for try, says := range map[string]string{"": "FAIL: TestFlaky", "-again-TestFlaky": "PASS: TestFlaky"} {
				if log, err := os.ReadFile(r.cache.path("logs", "machine", "p"+try+".log")); err != nil || !strings.Contains(string(log), says) {
					t.Errorf("the log of try %q: %v: want %q in\n%s", try, err, says, log)
				}
			}
		}
		if test.want == failed && (!strings.Contains(out.String(), "FAIL\t"+p) || part != strings.Contains(test.detail, "TestBad")) {
			t.Errorf("%s: it printed\n%s", test.about, out)
		}
	}
	r.partial = true
	if res := r.run(&suite{name: "partial", packages: []string{"p"}}); res.outcome != passed {
		t.Errorf("a part: %s %q", res.outcome, res.detail)
	}
	if _, _, day := r.cache.cost("partial"); day != "" {
		t.Error("the cost of a part was kept")
	}
	if names := r.cache.flaky(); len(names) != 1 || !strings.HasSuffix(names[0], p+" TestFlaky") {
		t.Errorf("the log of flaky tests has %q", names)
	}
}

// TestCommandNamesTheTest finds the failure in the output of a stage that is a
// command.
func TestCommandNamesTheTest(t *testing.T) {
	var c culprit
	for line := range strings.Lines("ok  \tx/a\t0.1s\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/part (0.00s)\n        b_test.go:1: as told\nFAIL\nFAIL\tx/b\t0.1s\n" +
		"--- FAIL: TestC (0.00s)\nFAIL\tx/c\t0.1s\n") {
		c.read(line)
	}
	if got := c.String(); got != "x/b TestB/part" {
		t.Errorf("got %q", got)
	}
}

// TestSkipped has the gate leave out what needs things that take minutes to build.
func TestSkipped(t *testing.T) {
	r, _ := smallRunner(t)
	script := filepath.Join(r.root, "install")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho "+filepath.Join(r.root, "none")+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := suite{name: "unit", packages: []string{"p"}, needs: []need{{name: "things", script: []string{"install"}, where: true}}}
	res := r.run(&s)
	if res.outcome != skipped || !strings.Contains(res.detail, "make nightly") {
		t.Errorf("%s %q", res.outcome, res.detail)
	}
}

// TestRequiredTags tells tests of suites from tests that are the platform's.
func TestRequiredTags(t *testing.T) {
	_, all := read(t)
	for _, test := range []struct {
		folder, name string
		want         []string
	}{
		{"providers/metal", "TestVirtualHost", []string{"e2e", "e2evm"}},
		{"providers/metal/host", "TestSSH", []string{"e2e"}},
		{"providers/gke", "TestFaults", nil},
	} {
		for _, got := range all[test.folder].tests {
			if got.name == test.name && !slices.Equal(got.tags, test.want) {
				t.Errorf("%s %s needs %q, want %q", test.folder, test.name, got.tags, test.want)
			}
		}
	}
}
