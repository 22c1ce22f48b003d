package hosttest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Tree is a double of a machine whose files lie in a folder. Scripts do run, with
// all their paths below it, and with nothing to call but what works on files and
// the programs of programs.sh, which keep what they know in files as well.
type Tree struct {
	Root string
	t    testing.TB
}

//go:embed programs.sh
var programs string

// NewTree makes a machine with nothing but folders. It takes Linux: the scripts
// are for its tools.
func NewTree(t testing.TB) *Tree {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("scripts for machines need the tools of Linux")
	}
	m := &Tree{Root: t.TempDir(), t: t}
	for _, dir := range []string{"bin", "etc/modules-load.d", "etc/sysctl.d", "proc/sys/kernel", "sys/module", "run/units", "var/lib", "usr/share/zoneinfo", "lib/modules"} {
		if err := os.MkdirAll(filepath.Join(m.Root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq("awk base64 basename cat chmod chown cp cut dirname env find flock getent grep head id install ln ls mkdir mktemp mv printf readlink rm rmdir sed sha256sum sh sleep sort stat tail tee test timeout touch tr uname wc xargs") {
		real, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(real, filepath.Join(m.Root, "bin", name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	head := "#!/bin/sh\nROOT='" + m.Root + "'\n"
	for part := range strings.SplitSeq(programs, "\n#= ") {
		name, body, _ := strings.Cut(part, "\n")
		for name := range strings.FieldsSeq(name) {
			if err := os.WriteFile(filepath.Join(m.Root, "bin", name), []byte(head+body), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

// Name is the machine's name.
func (m *Tree) Name() string { return "192.0.2.1" }

var absolute = pattern.New(`(^|[\s"'=<>:(;])/(bin|boot|etc|lib|opt|proc|run|sbin|sys|usr|var)\b`)

// below puts the paths of a text below the machine's folder.
func (m *Tree) below(text string) string {
	for range 2 { // neighbouring paths share their parent folders
		text = absolute.ReplaceAllString(text, "${1}"+m.Root+"/$2")
	}
	return text
}

// Put writes a file. Put writes a file. Owners are not simulated.
func (m *Tree) Put(_ context.Context, f ssh.File) error {
	name := filepath.Join(m.Root, f.Path)
	content := f.Content
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		return err
	}
	return errors.Join(os.Chmod(name+".new", f.Mode), os.Rename(name+".new", name))
}

// Run runs a command.
func (m *Tree) Run(ctx context.Context, cmd host.Command) (ssh.Output, error) {
	if err := named(cmd); err != nil {
		return ssh.Output{}, err
	}
	args := make([]string, len(cmd.Args))
	for i, a := range cmd.Args {
		if args[i] = a; i == 2 && args[1] == "-c" || strings.HasPrefix(a, "/") && !strings.Contains(a, "\n") {
			args[i] = m.below(a) // not what is written into files
		}
	}
	c := exec.CommandContext(ctx, filepath.Join(m.Root, "bin", filepath.Base(args[0])), args[1:]...)
	c.Dir = m.Root
	c.Env = []string{"PATH=" + m.Root + "/bin", "HOME=" + m.Root}
	c.Stdin = bytes.NewReader(cmd.Stdin)
	if cmd.Open != nil {
		r, err := cmd.Open()
		if err != nil {
			return ssh.Output{}, err
		}
		defer r.Close()
		c.Stdin = io.Reader(r)
	}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	o := ssh.Output{Stdout: bytes.ReplaceAll(out.Bytes(), []byte(m.Root), nil), Stderr: bytes.ReplaceAll(said.Bytes(), []byte(m.Root), nil)}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return o, &ssh.CommandError{Host: m.Name(), Command: ssh.QuoteAll(cmd.Args...), Status: failed.ExitCode(), Output: string(o.Stderr)}
	}
	return o, err
}

// Sh runs a script that must not fail, and returns what it prints.
func (m *Tree) Sh(script string, args ...string) string {
	m.t.Helper()
	out, err := host.Script(context.Background(), m, "# test\n"+script, args...)
	if err != nil {
		m.t.Fatalf("%s: %v", script, err)
	}
	return string(out)
}
