package facts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestScript runs the script by this machine's own shells: it has to be one
// that every POSIX shell takes, and its answer one that is understood.
func TestScript(t *testing.T) {
	ran := 0
	for _, shell := range [][]string{{"dash", "-s"}, {"bash", "--posix", "-s"}, {"busybox", "sh", "-s"}, {"sh", "-s"}} {
		if _, err := exec.LookPath(shell[0]); err != nil {
			continue
		}
		cmd := exec.Command(shell[0], shell[1:]...)
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", shell[0], err)
			continue
		}
		ran++
		f, a, err := parse(out)
		if err != nil {
			t.Errorf("%s: %v", shell[0], err)
			continue
		}
		if len(f.Unread) > 0 {
			t.Errorf("%s: not understood: %q", shell[0], f.Unread)
		}
		begin, end, err := a.span()
		if err != nil || end.Before(begin) || time.Since(end) > time.Hour {
			t.Errorf("%s: from %s to %s, %v", shell[0], begin, end, err)
		}
		fit(t, f)
	}
	if ran == 0 {
		t.Skip("no shell")
	}
}

// machine answers the script with a captured answer, and sudo as it is told.
func machine(t *testing.T, name string, sudo error) *hosttest.Machine {
	out := string(captured(t)[name])
	return &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
		switch {
		case sudo != nil && !cmd.Unprivileged:
			return hosttest.Answer{Err: sudo}, true
		case cmd.Args[0] == "sh" && cmd.Unprivileged:
			return hosttest.Answer{Stdout: strings.Replace(out, " uid=0\n", " uid=1000\n", 1)}, true
		case cmd.Args[0] == "sh":
			return hosttest.Answer{Stdout: out}, true
		case cmd.Args[0] == "date" && cmd.Unprivileged: // sudo is run twice in a look at most
			return hosttest.Answer{Stdout: "1795257590.200000000\n"}, true
		}
		return hosttest.Answer{}, false
	}}
}

// clockOf is our clock: each look at it takes the next of the seconds after
// 1795257580.
func clockOf(seconds ...float64) func() time.Time {
	return func() time.Time {
		s := seconds[0]
		seconds = seconds[1:]
		return time.Unix(1795257580, 0).Add(time.Duration(s * float64(time.Second)))
	}
}

func TestGather(t *testing.T) {
	ctx := context.Background()
	// The machine's clock shows …582.266 to …583.113 while the script runs.
	for _, tt := range []struct {
		name               string
		ours               []float64
		offset, resolution float64
		commands           int
	}{
		{"in step", []float64{2.256, 3.123}, 0, 0.1, 1},
		{"half a second behind is not worth a word", []float64{2.656, 3.523}, 0, 0.1, 1},
		{"ahead by three", []float64{-0.744, 0.123}, 3, 0.1, 1},
		{"behind by ten", []float64{12.256, 13.123}, -10, 0.1, 1},
		{"a slow connection is asked again", []float64{-4, 3.2, 10.15, 10.21}, 0, 0.1, 2},
		{"a slow machine, however often", []float64{-4, 3.2, 6, 16}, 0, 3.2, 2},
	} {
		m := machine(t, "ubuntu2404-hgx", nil)
		f, err := gather(ctx, m, clockOf(tt.ours...))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		// The readings of a slow machine differ; what they say may not.
		if f.Clock.Offset != tt.offset || f.Clock.Resolution > tt.resolution+0.5 || len(m.Ran) != tt.commands {
			t.Errorf("%s: offset %v ± %v after %d commands; want %v ± %v after %d", tt.name, f.Clock.Offset, f.Clock.Resolution, len(m.Ran), tt.offset, tt.resolution, tt.commands)
		}
		if !f.Sudo.Works {
			t.Errorf("%s: no sudo: %s", tt.name, f.Sudo.Error)
		}
	}
}

func TestGatherWithoutRoot(t *testing.T) {
	denied := ssh.Permanent{Err: errors.New("192.0.2.1: ops cannot become root by sudo; it said:\n  sudo: a password is required\nset sudo_password")}
	f, err := Gather(context.Background(), machine(t, "debian12", denied))
	if err != nil {
		t.Fatal(err)
	}
	if f.Sudo.Works || !strings.Contains(f.Sudo.Error, "it said: sudo: a password is required; set sudo_password") || f.CPUs != 2 {
		t.Errorf("got %+v and %d CPUs", f.Sudo, f.CPUs)
	}
	for _, gone := range []error{errors.New("dial 192.0.2.1:22: connection refused"), ssh.Permanent{Err: &ssh.HostKeyError{Address: "192.0.2.1"}}} {
		if _, err := Gather(context.Background(), machine(t, "debian12", gone)); !errors.Is(err, gone) {
			t.Errorf("%v became %v", gone, err)
		}
	}
	odd := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) { return hosttest.Answer{Stdout: "hello\n"}, true }}
	if _, err := Gather(context.Background(), odd); err == nil || !strings.Contains(err.Error(), "hello") {
		t.Errorf("a machine that answers something else: %v", err)
	}
}

// TestNothingSecret: what a machine's proxy is logged in with does not get into
// the facts.
func TestNothingSecret(t *testing.T) {
	out := captured(t)["ubuntu2404-hgx"]
	if !strings.Contains(string(out), "s3cr3t") || !strings.Contains(string(out), "hunter2") {
		t.Fatal("there is no secret to be left out")
	}
	f, _, err := parse(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range f.Proxy {
		if strings.Contains(v, "s3cr3t") || strings.Contains(v, "hunter2") || strings.Contains(v, "@") {
			t.Errorf("%q", v)
		}
	}
}

// A kernel that modprobe has no modules of has nf_tables nevertheless where nft works.
func TestFeatureOfNft(t *testing.T) {
	for status, want := range map[string]string{"0": "nf_tables=present", "1": "nf_tables=missing"} {
		m := hosttest.NewTree(t)
		if err := os.WriteFile(m.Root+"/bin/nft", []byte("#!/bin/sh\n[ \"$*\" = 'list tables' ] && exit "+status+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		out := m.Sh(`: >/proc/filesystems; mkdir -p /lib/modules/6; : >/lib/modules/6/modules.builtin; : >/lib/modules/all; kernel=6; t() { timeout -k 1 10 "$@"; }` + featureScript)
		if lines := strings.Fields(out); len(lines) != len(FeatureNames()) || !slices.Contains(lines, want) || !slices.Contains(lines, "vxlan=missing") {
			t.Errorf("nft ends with %s: %s", status, out)
		}
	}
}
