//go:build e2e && linux

package metal_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// project is a folder with a configuration, and the program to use there.
type project struct {
	t       testing.TB
	dir     string
	program string
	lab     *lab.Lab
	env     []string // more of it, as NAME=value
}

// newProject writes the provider block; the resources come with write.
func newProject(t testing.TB, l *lab.Lab) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), program: programtest.Path(t, "stoke"), lab: l}
	p.file("id", l.Key)
	if err := os.Chmod(filepath.Join(p.dir, "id"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.file("provider.tf", `terraform {
  required_providers {
    metal = { source = "stokehq/metal" }
  }
}
provider "metal" {
  ssh {
    user             = "ops"
    private_key_file = "${path.module}/id"
  }
}
`)
	p.ok("init")
	return p
}

func (p *project) file(name, content string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// write writes main.tf.
func (p *project) write(format string, args ...any) {
	p.t.Helper()
	p.file("main.tf", fmt.Sprintf(format, args...))
}

// command is the program with arguments, not started.
func (p *project) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.program, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "HOME="+filepath.Join(p.dir, ".home"), "XDG_STATE_HOME=")
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

// run returns what the program said and its exit status.
func (p *project) run(args ...string) (string, int) {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	status := 0
	if exit != nil {
		status = exit.ExitCode()
	}
	return string(out), status
}

// ok is run for what has to succeed.
func (p *project) ok(args ...string) string {
	p.t.Helper()
	out, status := p.run(args...)
	if status != 0 {
		p.t.Fatalf("stoke %s: exit status %d\n%s", strings.Join(args, " "), status, out)
	}
	return out
}

// killed starts the program, kills it after a while and reports whether it had
// not ended by then.
func (p *project) killed(after time.Duration, args ...string) bool {
	p.t.Helper()
	cmd := p.command(args...)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	return errors.As(err, &exit) && !exit.Exited()
}

// apply applies, and returns the plan that it showed and what came of it.
func (p *project) apply() string { p.t.Helper(); return p.ok("apply", "-auto-approve") }

// settled fails unless a plan is empty.
func (p *project) settled() {
	p.t.Helper()
	if out, status := p.run("plan", "-detailed-exitcode"); status != 0 {
		p.t.Fatalf("a plan that should be empty: exit status %d\n%s", status, out)
	}
}

// retaken loses a resource from the state and takes it over again: then it is as
// it is declared.
func (p *project) retaken(address string, m *lab.Machine) {
	p.t.Helper()
	p.ok("state", "rm", address)
	out, status := p.run("plan")
	if status != 1 {
		p.t.Errorf("a machine that is managed is planned as new: exit status %d", status)
	}
	p.has(out, "is managed already", fmt.Sprintf("  stoke import %s '%s %s'\n", address, m.Address, m.HostKey))
	p.ok("import", address, m.Address+" "+m.HostKey)
	p.settled()
}

// differs plans, which must have changes, and returns what it shows.
func (p *project) differs() string {
	p.t.Helper()
	out, status := p.run("plan", "-detailed-exitcode")
	if status != 2 {
		p.t.Fatalf("a plan that should have changes: exit status %d\n%s", status, out)
	}
	return out
}

// unwrapped undoes what the view does to long lines.
func unwrapped(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(s)), " ")
}

// has fails unless text has all parts, which a frame may have wrapped.
func (p *project) has(text string, parts ...string) {
	p.t.Helper()
	flat := unwrapped(text)
	for _, part := range parts {
		if !strings.Contains(text, part) && !strings.Contains(flat, part) {
			p.t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}
