package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
)

// tool is a program that takes Terraform's command line.
type tool struct {
	name string
	path string   // "": this process, which is stoke
	env  []string // besides what every tool gets
}

// walk is one case on its way with one tool.
type walk struct {
	t     *testing.T
	tool  *tool
	dir   string
	env   []string
	facts facts
}

// run takes the steps of a case in a folder of its own and returns the facts.
func (c *parityCase) run(t *testing.T, with *tool) string {
	t.Helper()
	// The folder's name must be no longer than it has to be: it is part of
	// values that are compared by their size.
	dir, err := os.MkdirTemp("", "parity")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of the test's own
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range c.files {
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	w := &walk{t: t, tool: with, dir: dir}
	w.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(),
		"CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "NO_COLOR=1"}, with.env...)
	for i, s := range c.steps {
		w.facts.add(fmt.Sprintf("> %d: %s", i+1, s.text))
		if !w.take(s) {
			break
		}
	}
	return w.facts.normal(dir)
}

// take does one step and reports whether the next makes sense.
func (w *walk) take(s step) bool {
	args := s.words[1:]
	switch s.words[0] {
	case "env":
		w.env = append(w.env, args...)
	case "cp":
		text, err := os.ReadFile(w.path(args[0]))
		w.must(err)
		write(w.t, w.path(args[1]), text)
	case "rm":
		w.must(os.RemoveAll(w.path(args[0])))
	case "edit":
		text, err := os.ReadFile(w.path(args[0]))
		w.must(err)
		edited := bytes.ReplaceAll(text, []byte(args[1]), []byte(args[2]))
		if bytes.Equal(text, edited) {
			w.t.Fatalf("%s: %q does not occur", s.text, args[1])
		}
		write(w.t, w.path(args[0]), edited)
	case "plan":
		return w.plan(s, args)
	case "apply", "destroy":
		if s.words[0] == "destroy" {
			args = append([]string{"-destroy"}, args...)
		}
		return w.apply(s, args)
	case "validate":
		code, out, errs := w.exec(append([]string{"validate", "-json"}, args...)...)
		w.facts.validation(w.t, out)
		return w.expect(s, code == 1, errs)
	case "run": // what it does to the state counts
		code, out, errs := w.exec(args...)
		w.facts.add(fmt.Sprintf("exit %d", code))
		w.state()
		return w.expect(s, code == 1, out+errs)
	case "out": // what it says counts
		code, out, errs := w.exec(args...)
		w.facts.add(fmt.Sprintf("exit %d", code))
		w.facts.text(out)
		return w.expect(s, code == 1, out+errs)
	case "init":
		code, out, errs := w.exec(append([]string{"init", "-input=false"}, args...)...)
		w.facts.add(fmt.Sprintf("exit %d", code))
		return w.expect(s, code == 1, out+errs)
	default:
		w.t.Fatalf("%q is no step", s.text)
	}
	return true
}

// plan makes a plan, and tells what is in it. It fails, as a step, when no
// plan comes out.
func (w *walk) plan(s step, args []string) bool {
	code := w.planned(s, args)
	return w.expect(s, code == 1, "")
}

// apply makes a plan and carries it out; failing means that either fails.
func (w *walk) apply(s step, args []string) bool {
	if code := w.planned(s, args); code == 1 {
		return w.expect(s, true, "")
	}
	w.facts.add("> and carry it out")
	code, out, errs := w.exec("apply", "-json", "-input=false", "tfplan")
	w.facts.add(fmt.Sprintf("exit %d", code))
	w.facts.stream(w.t, out)
	w.state()
	return w.expect(s, code == 1, out+errs)
}

func (w *walk) planned(s step, args []string) int {
	code, out, errs := w.exec(append([]string{"plan", "-json", "-input=false", "-detailed-exitcode", "-out=tfplan"}, args...)...)
	w.facts.add(fmt.Sprintf("exit %d", code))
	w.facts.stream(w.t, out)
	if code == 1 {
		if !s.fails && !s.either {
			w.t.Errorf("%s %s:\n%s%s", w.tool.name, s.text, out, errs)
		}
		return code
	}
	shown, out, errs := w.exec("show", "-json", "tfplan")
	if shown != 0 {
		w.t.Fatalf("%s show -json: %s%s", w.tool.name, out, errs)
	}
	var read tfjson.Plan // as the tools around Terraform read it
	if err := json.Unmarshal([]byte(out), &read); err != nil {
		w.t.Errorf("%s show -json: terraform-json: %v", w.tool.name, err)
	}
	w.facts.plan(w.t, out)
	return code
}

// expect ends the case where a step failed, or should have and did not. Of
// stoke, the comparison of the facts says so.
func (w *walk) expect(s step, failed bool, said string) bool {
	w.t.Helper()
	if s.either {
		return true
	}
	if failed != s.fails && w.tool.name == "terraform" {
		w.t.Errorf("%s: %q fails: %v, should fail: %v\n%s", w.tool.name, s.text, failed, s.fails, said)
	}
	return failed == s.fails
}

func (w *walk) state() {
	text, err := os.ReadFile(w.path("terraform.tfstate"))
	if errors.Is(err, os.ErrNotExist) {
		w.facts.add("state: none")
		return
	}
	w.must(err)
	w.facts.state(w.t, text)
}

func (w *walk) exec(args ...string) (code int, out, errs string) {
	if w.tool.path == "" {
		at, err := os.Getwd()
		w.must(err)
		w.must(os.Chdir(w.dir))
		defer func() { w.must(os.Chdir(at)) }()
		return executeHere(w.t, "", stage{environ: w.env}, args...)
	}
	cmd := exec.Command(w.tool.path, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if code = cmd.ProcessState.ExitCode(); code < 0 || strings.Contains(stderr.String(), "panic:") {
		w.t.Fatalf("%s %v: %s", w.tool.name, args, stderr.String())
	}
	return code, stdout.String(), stderr.String()
}

func (w *walk) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *walk) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
