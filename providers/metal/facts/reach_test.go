package facts

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

func TestReachable(t *testing.T) {
	ctx := context.Background()
	m := &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
		if !cmd.Unprivileged || cmd.Args[0] != "sh" {
			return hosttest.Answer{}, false
		}
		return hosttest.Answer{Stdout: "Welcome\npeer\t10.0.0.2\treached\npeer\t10.0.0.3\tsmall\npeer\t10.0.0.6\tsmaller\npeer\t10.0.0.4\tsilent\npeer\t10.9.9.9\tsilent\npeer\t10.0.0.5\tmaybe\nname\tregistry.k8s.io\tunknown\nname\ta.example\tsilent\n"}, true
	}}
	r, err := Reachable(ctx, m, 1500, []string{"10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.2", "10.0.0.6"}, []string{"registry.k8s.io", "a.example", "b.example"})
	if err != nil {
		t.Fatal(err)
	}
	want := Reach{
		Peers: map[string]Answer{"10.0.0.2": Through, "10.0.0.3": OnlySmall, "10.0.0.4": Silent, "10.0.0.5": Untold, "10.0.0.6": Smaller},
		Names: map[string]Answer{"registry.k8s.io": Unknown, "a.example": Silent, "b.example": Untold},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	problems := r.Problems(map[string]string{"10.0.0.3": "node-3"})
	say(hosttest.NewChecks(t, "reach"), problems)
	if diff := cmp.Diff([]string{"error : Full-size packets do not arrive", "warning : Packets must be smaller on the way", "warning : Peers do not answer", "error : Names are not known here", "error : Name servers do not answer"}, heads(problems)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(problems[0].Detail, "node-3 (10.0.0.3)") {
		t.Error(problems[0].Detail)
	}
	if n := strings.Count(m.Ran[0], "peer 10.0.0.2 1500"); n != 1 || len(m.Ran) != 1 {
		t.Errorf("asked %d times in %d commands", n, len(m.Ran))
	}
	for _, bad := range [][2][]string{{{"10.0.0.2; reboot"}, nil}, {nil, {"$(reboot)"}}, {{"-f"}, nil}, {nil, {"--help"}}} {
		if _, err := Reachable(ctx, m, 1500, bad[0], bad[1]); err == nil {
			t.Errorf("%q is asked for", bad)
		}
	}
	if r, err := Reachable(ctx, m, 1500, nil, nil); err != nil || len(m.Ran) != 1 || len(r.Problems(nil)) != 0 {
		t.Errorf("nothing to ask: %v, %d commands", err, len(m.Ran))
	}
	lost := &hosttest.Machine{Answer: func(host.Command) (hosttest.Answer, bool) {
		return hosttest.Answer{Err: &ssh.LostError{Host: "x"}}, true
	}}
	if _, err := Reachable(ctx, lost, 1500, []string{"10.0.0.2"}, nil); err == nil {
		t.Error("a lost connection is no error")
	}
}

// TestReachScript runs the script here, for what can be told without a network.
func TestReachScript(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, and perhaps no ping")
	}
	for _, shell := range []string{"dash", "bash"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		out, err := exec.Command(shell, "-c", reachScript, "sh", "peer", "127.0.0.1", "65535", "name", "localhost", "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		r := Reach{Peers: map[string]Answer{"127.0.0.1": ""}, Names: map[string]Answer{"localhost": ""}}
		r.read(out)
		if r.Peers["127.0.0.1"] != Through || r.Names["localhost"] != Through {
			t.Errorf("%s: %+v of %q", shell, r, out)
		}
	}
}
