package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/stoke/dashboard"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/filetest"
)

// tellingRun is a run that has a secret in all its texts.
type tellingRun struct{ secret string }

func (r tellingRun) Status(context.Context) (providers.RunStatus, error) {
	return providers.RunStatus{Message: r.secret, Progress: r.secret, Roles: []providers.RunRole{
		{Reason: r.secret, Usage: &providers.RunUsage{Partly: r.secret}}}}, nil
}

func (r tellingRun) Logs(_ context.Context, _ providers.RunLogs, line func(providers.RunLine) error) error {
	return errors.Join(line(providers.RunLine{Text: "says " + r.secret}), errors.New("lost "+r.secret))
}

func (r tellingRun) Metrics(_ context.Context, _ providers.RunMetrics, event func(providers.RunEvent) error) error {
	err := event(providers.RunEvent{Message: r.secret, JSON: json.RawMessage(`{"message":"` + r.secret + `"}`)})
	return errors.Join(err, &providers.RunError{Summary: "Gone", Detail: r.secret})
}

func TestDashboardHidesSecrets(t *testing.T) {
	const secret = "open-sesame-please"
	run := &cleanRun{tellingRun{secret}, func(text string) string { return strings.ReplaceAll(text, secret, "(hidden)") }}
	var told strings.Builder
	is, err := run.Status(t.Context())
	fmt.Fprintf(&told, "%+v %+v %v\n", is, *is.Roles[0].Usage, err)
	err = run.Logs(t.Context(), providers.RunLogs{}, func(l providers.RunLine) error { fmt.Fprintln(&told, l); return nil })
	fmt.Fprintln(&told, err)
	err = run.Metrics(t.Context(), providers.RunMetrics{}, func(e providers.RunEvent) error { fmt.Fprintln(&told, e.Message, string(e.JSON)); return nil })
	fmt.Fprintln(&told, err)
	if n := strings.Count(told.String(), "(hidden)"); strings.Contains(told.String(), secret) || n != 9 {
		t.Errorf("%d texts are hidden, want 9: %s", n, told.String())
	}
}

// A run that takes long to open does not keep the list from its readers.
func TestDashboardListsWhileRunsOpen(t *testing.T) {
	w := &shownRuns{s: &session{}, now: new(runs), read: time.Now()}
	begun, end := make(chan struct{}), make(chan struct{})
	open := w.guarded(&runs{secrets: new(redact.Secrets)}, func(context.Context) (providers.Run, error) {
		close(begun)
		<-end
		return nil, providers.ErrNoRun
	})
	opened := make(chan error)
	go func() {
		_, err := open(t.Context())
		opened <- err
	}()
	<-begun
	if _, err := w.Runs(t.Context()); err != nil { // would never end
		t.Error(err)
	}
	close(end)
	if err := <-opened; !errors.Is(err, providers.ErrNoRun) {
		t.Error(err)
	}
}

func TestDashboardSavesOnlyNewFiles(t *testing.T) {
	w := &shownRuns{s: &session{configDir: t.TempDir()}}
	if _, err := w.Save(t.Context(), "x.tf", "a"); err == nil {
		t.Error("it writes without -allow-write")
	}
	w.mayWrite = true
	path, err := w.Save(t.Context(), "../x.tf", "a")
	if err != nil || !strings.HasPrefix(path, w.s.configDir) {
		t.Errorf("saved as %s, %v", path, err)
	}
	if _, err := w.Save(t.Context(), "x.tf", "b"); err == nil {
		t.Error("it replaces a file")
	}
}

// Other users see command lines: the browser gets a file that leads to the link, and that
// only its owner can read.
func TestLinkIsInNoCommandLine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program has another name")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s' \"$*\" > " + dir + "/given.new && mv " + dir + "/given.new " + dir + "/given\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	const link = "http://127.0.0.1:1/login?token=abc&x=1"
	remove := openBrowser(link)
	var given []byte
	for len(given) == 0 {
		given, _ = os.ReadFile(filepath.Join(dir, "given"))
		time.Sleep(time.Millisecond)
	}
	if strings.Contains(string(given), "abc") {
		t.Errorf("the command line has the token: %s", given)
	}
	text, err := os.ReadFile(string(given))
	info, statErr := os.Stat(string(given))
	folder, folderErr := os.Stat(filepath.Dir(string(given)))
	if err := errors.Join(err, statErr, folderErr); err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700 || !strings.Contains(string(text), `0;url=http://127.0.0.1:1/login?token=abc&amp;x=1"`) {
		t.Errorf("%s in %s: %s", info.Mode(), folder.Mode(), text)
	}
	remove()
	if _, err := os.Stat(string(given)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// openFolder returns the runs of a folder with an object, for drafts.
func openFolder(t *testing.T) (w *shownRuns, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("resource \"terraform_data\" \"here\" {\n  input = \"one\"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newSession(stage{in: os.Stdin, out: os.Stdout, err: os.Stderr, built: catalogue()})
	s.configDir, s.cli, s.signals = dir, new(cliConfig), &signals{stopping: make(chan struct{})}
	return &shownRuns{s: s, life: t.Context(), flags: &lookFlags{path: filepath.Join(dir, "terraform.tfstate")}}, dir
}

const draftOf = "draft_experiment.tf"

// goodDraft is a configuration that plans in the folder.
const goodDraft = "resource \"terraform_data\" \"draft\" {\n  input = terraform_data.here.input\n}\n"

// Browsers of snap read files of the home directory only.
func TestLinkIsWhereTheBrowserReads(t *testing.T) {
	was := snaps
	defer func() { snaps = was }()
	home := t.TempDir()
	t.Setenv("HOME", home)
	snaps = t.TempDir()
	if at := browserFolder(); at != "" {
		t.Errorf("without snap the folder is %s", at)
	}
	if err := os.WriteFile(filepath.Join(snaps, "firefox"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if at := browserFolder(); at != home {
		t.Errorf("with snap the folder is %s", at)
	}
}

// A provider that is configured while the command ends is closed; later ones are refused.
func TestDashboardClosesProviders(t *testing.T) {
	r := new(runs)
	n := 0
	r.ends = append(r.ends, func() { n++ })
	r.close()
	r.close()
	if n != 1 {
		t.Errorf("closed %d times", n)
	}
	if _, err := r.configured("provider", address.Instance{})(t.Context()); err == nil || !strings.Contains(err.Error(), "look again") {
		t.Errorf("a provider after the end: %v", err)
	}
}

// Drift is what changed outside since the last apply: of the run and what it depends on.
func TestDashboardFindsDrift(t *testing.T) {
	w, dir := openFolder(t)
	w.mayWrite, w.mayApply = true, true
	w.s.built[filetest.Source] = filetest.Entry()
	is, err := w.Plan(t.Context(), draftOf, fmt.Sprintf(`
terraform {
  required_providers {
    test = { source = "stokehq/test" }
  }
}
resource "test_file" "first" {
  directory = %q
  name      = "first"
  content   = "one"
}
`, dir))
	if err == nil {
		err = is.Apply(t.Context(), "x.tf", make(chan struct{}), func(string) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	if d, err := w.Drift(t.Context(), "test_file.first"); err != nil || d.Objects != 0 || d.Warnings != 0 {
		t.Errorf("%v: %+v", err, d)
	}
	before, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "first")); err != nil {
		t.Fatal(err)
	}
	d, err := w.Drift(t.Context(), "test_file.first")
	if err != nil || d.Objects != 1 || !strings.Contains(d.Text, "test_file.first") {
		t.Errorf("%v: %+v", err, d)
	}
	// The provider finds another file there, and warns.
	if err := os.WriteFile(filepath.Join(dir, "first"), []byte("another-mark\none"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err = w.Drift(t.Context(), "test_file.first")
	if err != nil || d.Warnings != 1 || !strings.Contains(d.Text, "Another file took its place") {
		t.Errorf("%v: %+v", err, d)
	}
	if d, err := w.Drift(t.Context(), "terraform_data.here"); err != nil || d.Objects != 0 || d.Warnings != 0 {
		t.Errorf("of another object: %v: %+v", err, d)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate")); err != nil || string(after) != string(before) {
		t.Errorf("%v: the state has changed: %s", err, after)
	}
	w.machine = new(machineFolder)
	if _, err := w.Drift(t.Context(), "test_file.first"); err == nil {
		t.Error("without a state")
	}
}

// The plan of a draft is the plan of the folder with the draft, and leaves no file.
func TestDashboardPlansDrafts(t *testing.T) {
	w, dir := openFolder(t)
	is, err := w.Plan(t.Context(), draftOf, goodDraft)
	if err != nil || !strings.Contains(is.Text, "terraform_data.draft") || !strings.Contains(is.Text, "2 to add") || is.Add != 2 || is.Apply != nil {
		t.Errorf("%v: %+v", err, is)
	}
	is, err = w.Plan(t.Context(), draftOf, "resource \"terraform_data\" \"draft\" {\n  input = terraform_data.none.input\n}\n")
	if err == nil || !strings.Contains(err.Error(), "the plan failed") || !strings.Contains(is.Text, "draft_experiment.tf line 2") || is.Apply != nil {
		t.Errorf("%v: %s", err, is.Text)
	}
	if problems, err := w.Validate(t.Context(), draftOf, "resource \"terraform_data\" \"draft\" {\n  input = terraform_data.none.input\n}\n"); err != nil || len(problems) != 1 || !strings.HasPrefix(problems[0], "Line 2: ") {
		t.Errorf("%v: %q", err, problems)
	}
	// The draft is a new file: it never takes the place of another one, and is no override of one.
	for _, name := range []string{"main.tf", "../main.tf"} {
		_, invalid := w.Validate(t.Context(), name, goodDraft)
		_, unplanned := w.Plan(t.Context(), name, goodDraft)
		if invalid == nil || unplanned == nil || !strings.Contains(unplanned.Error(), "exists already") {
			t.Errorf("%s: %v, %v", name, invalid, unplanned)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v", files, err)
	}
	long := strings.Repeat("a line\n", 100_000) + "the end"
	if end := readEnd(strings.NewReader(long), 1000); string(end) != long[len(long)-1000:] {
		t.Errorf("the end of a text has %d bytes, and ends with %q", len(end), end[max(0, len(end)-20):])
	}
	if end := readEnd(strings.NewReader("short"), 1000); string(end) != "short" {
		t.Errorf("a short text is %q", end)
	}
}

// An apply of the dashboard is the apply of the plan that it showed, of a configuration
// that it saves as a new file.
func TestDashboardAppliesDrafts(t *testing.T) {
	w, dir := openFolder(t)
	w.mayWrite, w.mayApply = true, true
	plan := func(hcl string) dashboard.Plan {
		t.Helper()
		is, err := w.Plan(t.Context(), draftOf, hcl)
		if err != nil || is.Apply == nil {
			t.Fatalf("%v: %+v", err, is)
		}
		return is
	}
	var said []string
	line := func(text string) { said = append(said, text) }
	apply := func(is dashboard.Plan, name string) error {
		said = nil
		return is.Apply(t.Context(), name, make(chan struct{}), line)
	}
	state := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	first, other := plan(goodDraft), plan(strings.ReplaceAll(goodDraft, `"draft"`, `"other"`))
	if err := apply(first, "main.tf"); err == nil || !strings.Contains(err.Error(), "main.tf exists already") || state() != "" {
		t.Errorf("a file that exists: %v, state %s", err, state())
	}
	if text, err := os.ReadFile(filepath.Join(dir, "main.tf")); err != nil || strings.Contains(string(text), "draft") {
		t.Errorf("%v: the file is now %s", err, text)
	}
	if err := apply(first, "experiment_draft.tf"); err != nil {
		t.Fatalf("%v: %q", err, said)
	}
	text := strings.Join(said, "\n")
	if !strings.Contains(text, "Apply complete! Resources: 2 added") || !strings.Contains(text, "terraform_data.draft: Creation complete") || !strings.Contains(text, "Saved ") {
		t.Errorf("the apply says %s", text)
	}
	if saved, err := os.ReadFile(filepath.Join(dir, "experiment_draft.tf")); err != nil || string(saved) != goodDraft {
		t.Errorf("%v: saved %s", err, saved)
	}
	before := state()
	if !strings.Contains(before, `"draft"`) {
		t.Errorf("the state is %s", before)
	}
	// The state is another one now: the other plan is not carried out, and leaves no file.
	if err := apply(other, "experiment_other.tf"); err == nil || !strings.Contains(strings.Join(said, "\n"), "Saved plan is stale") || state() != before {
		t.Errorf("a stale plan: %v: %q", err, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "experiment_other.tf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plan that is not carried out leaves its file: %v", err)
	}
	// Another process holds the state.
	locked := plan(strings.ReplaceAll(goodDraft, `"draft"`, `"third"`))
	o, end, err := w.operate(w.s.signals, nil, func(from io.Reader) { _, _ = io.Copy(io.Discard, from) })
	if err == nil {
		err = o.open(t.Context(), "Test")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(locked, "experiment_third.tf"); err == nil || !strings.Contains(strings.Join(said, "\n"), "ock") || state() != before {
		t.Errorf("a locked state: %v: %q", err, said)
	}
	o.close()
	end()
	if err := apply(locked, "experiment_third.tf"); err != nil {
		t.Errorf("%v: %q", err, said)
	}
}

// An apply that is stopped once finishes its steps; stopped again, it ends them. It begins
// no more steps.
func TestDashboardStopsAnApply(t *testing.T) {
	for _, by := range []string{"button", "Ctrl-C"} {
		t.Run(by, func(t *testing.T) {
			w, dir := openFolder(t)
			life, endLife := context.WithCancel(t.Context())
			defer endLife()
			w.mayWrite, w.mayApply, w.life = true, true, life
			w.s.built[filetest.Source] = filetest.Entry()
			seen := filepath.Join(t.TempDir(), "stderr")
			stderr, err := os.Create(seen)
			if err != nil {
				t.Fatal(err)
			}
			defer stderr.Close()
			w.s.stage.err = stderr
			is, err := w.Plan(t.Context(), draftOf, fmt.Sprintf(`
terraform {
  required_providers {
    test = { source = "stokehq/test" }
  }
}
resource "test_file" "first" {
  directory = %q
  name      = "first"
  delay     = "1h"
}
resource "terraform_data" "second" {
  input = test_file.first.sha256
}
`, dir))
			if err != nil || is.Apply == nil {
				t.Fatalf("%v: %s", err, is.Text)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := make(chan struct{})
			var said []string
			err = is.Apply(ctx, "x.tf", stop, func(text string) {
				said = append(said, text)
				isFirst := strings.Contains(text, "first: Creating") && len(said) < 20
				isSecond := strings.HasSuffix(text, " received.")
				switch {
				case isFirst && by == "button":
					close(stop)
				case isFirst:
					close(w.s.signals.stopping)
				case isSecond && by == "button":
					cancel()
				case isSecond:
					endLife()
				}
			})
			state, readErr := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
			if err == nil || !strings.Contains(err.Error(), "is saved as "+filepath.Join(dir, "x.tf")) || readErr != nil || strings.Contains(string(state), `"second"`) {
				t.Errorf("%v, %v: %q: %s", err, readErr, said, state)
			}
			if text := strings.Join(said, "\n"); !strings.Contains(text, " received.") || strings.Contains(text, "Interrupt received") != (by == "Ctrl-C") || strings.Contains(text, "second: Creating") {
				t.Errorf("the apply says %s", text)
			}
			text, err := os.ReadFile(seen)
			if told := strings.Contains(string(text), "Interrupt received"); err != nil || told != (by == "Ctrl-C") {
				t.Errorf("%v: the terminal says %s", err, text)
			}
		})
	}
}
