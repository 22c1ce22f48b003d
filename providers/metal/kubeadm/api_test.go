package kubeadm

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestReady: an API server that is not ready is told from a machine that cannot
// be asked.
func TestReady(t *testing.T) {
	if err := Ready(t.Context(), answers(hosttest.Answer{Stdout: "ok"}, nil)); err != nil {
		t.Error(err)
	}
	var not *NotReadyError
	if err := Ready(t.Context(), answers(hosttest.Answer{Stdout: "E1\nrefused abcdef.0123456789abcdef", Status: 1}, nil)); !errors.As(err, &not) || not.Said != "refused (token)" {
		t.Errorf("%v", err)
	}
	lost := errors.New("the connection broke")
	if err := Ready(t.Context(), answers(hosttest.Answer{Err: lost}, nil)); !errors.Is(err, lost) || errors.As(err, &not) {
		t.Errorf("%v", err)
	}
}

// TestAwaitServer: the rights of the administrator come after the API server.
func TestAwaitServer(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	pod := encode([]byte("spec: {containers: [{command: [kube-apiserver, --a=1]}]}"))
	m := &hosttest.Machine{Answer: func(cmd host.Command) (hosttest.Answer, bool) {
		switch script := cmd.Args[2]; {
		case script == running:
			return hosttest.Answer{Stdout: "file\t" + pod + "\nprocess\t" + encode([]byte("kube-apiserver\n--a=1\n")) + "\nend\n"}, true
		case script == ready:
			return hosttest.Answer{Stdout: "ok"}, true
		}
		return hosttest.Answer{Stderr: "Error from server (Forbidden)", Status: 1}, true
	}}
	if err := AwaitServer(t.Context(), m, 0); err != nil {
		t.Error(err)
	}
	if err := AwaitReady(t.Context(), m, 0); !errors.As(err, new(*NotReadyError)) {
		t.Errorf("an administrator without rights: %v", err)
	}
}

// TestRuns: the API server that runs is the one of its static pod, or an older
// one.
func TestRuns(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	pod := "file\t" + encode([]byte("spec: {containers: [{command: [kube-apiserver, --a=1, '--b=x: y']}]}")) + "\n"
	process := func(args ...string) string {
		return "process\t" + encode([]byte(strings.Join(args, "\n")+"\n")) + "\n"
	}
	for out, want := range map[string]string{
		pod + process("/usr/bin/kube-apiserver", "--a=1", "--b=x: y"): "",
		pod + process("kube-apiserver", "--a=2", "--b=x: y"):          "other arguments",
		pod:                                "does not run",
		process("kube-apiserver", "--a=1"): "there is no",
	} {
		err := runs(t.Context(), answers(hosttest.Answer{Stdout: out + "end\n"}, nil))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestMembers: nodes, and which of them pods are kept from.
func TestMembers(t *testing.T) {
	all, err := Members(t.Context(), answers(hosttest.Answer{Stdout: "node\thead\tTrue\tnode-role.kubernetes.io/control-plane a/b\nnode\tworker\tUnknown\t\nend\n"}, nil))
	if err != nil || len(all) != 2 || !all[0].Ready || !all[0].Reserved() || all[1].Ready || all[1].Reserved() || !slices.Equal(all[1].Taints, nil) {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestPatchesAreNamed: kubeadm is told where patches are, and of none otherwise.
func TestPatchesAreNamed(t *testing.T) {
	n := fullNode()
	n.Patches = "/var/lib/stoke/cluster/patches"
	text, err := fullCluster().Init(n, NewToken())
	if err != nil || !strings.Contains(string(text), "patches:\n  directory: /var/lib/stoke/cluster/patches\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
