package kubernetes

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/spec"
)

// programRun is a run of a program with code in two parts, in an image of the user's.
func programRun(workers, servers int) *layout {
	s := spec.DefaultProgram()
	s.Name, s.Worker.Replicas, s.ParameterServer.Replicas = "mine", workers, servers
	s.Program.Command, s.Program.Code = `["python3","train.py"]`, strings.Repeat("0123456789abcdef", 4)
	p := small()
	p.Image, p.AgentImage, p.Dataset, p.Program = "registry.example/pytorch:2", "registry.example/trainer:1", "", true
	p.Worker.Memory = "4Gi"
	return &layout{"run-0000000000000006", s, p, 2}
}

// codeOf gives a run of a program some code, in place of the code that it names.
func codeOf(t *testing.T, l *layout) launch.Code {
	t.Helper()
	if !l.spec.HasProgram() {
		return launch.Code{}
	}
	dir := t.TempDir()
	text := make([]byte, 2*code.PartBytes) // of which compression makes no less
	rand.Read(text)
	if err := os.WriteFile(filepath.Join(dir, "train.py"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := code.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	l.spec.Program.Code = s.Hash()
	return launch.Code{Snapshot: s, Folder: dir}
}

// Agents run in the user's image, with stoke-trainer from the trainer's. What they
// may do passes the Pod Security level restricted.
func TestPodsOfAProgram(t *testing.T) {
	l := programRun(2, 1)
	for _, role := range []string{coordinator, worker, server} {
		pod := l.template(role).Spec
		c := pod.Containers[0]
		if role == coordinator {
			if c.Image != l.AgentImage || len(pod.InitContainers) > 0 || c.Command != nil || !slices.Contains(c.Args, "--code="+codeFolder) {
				t.Errorf("%s: %+v", role, pod)
			}
			continue
		}
		if c.Image != l.Image || !slices.Equal(c.Command, []string{agentProgram}) || len(pod.InitContainers) != 1 || len(c.Ports) > 0 {
			t.Errorf("%s: %+v", role, pod)
		}
		first := pod.InitContainers[0]
		if first.Image != l.AgentImage || !slices.Equal(first.Args, []string{"install", agentProgram}) || *first.SecurityContext.AllowPrivilegeEscalation {
			t.Errorf("%s: %+v", role, first)
		}
		if *pod.TerminationGracePeriodSeconds != grace {
			t.Errorf("%s ends within %d s", role, *pod.TerminationGracePeriodSeconds)
		}
		for _, v := range pod.Volumes {
			if v.Secret != nil && slices.ContainsFunc(v.Secret.Items, func(k core.KeyToPath) bool { return k.Key == keyIdentity }) {
				t.Errorf("%s has the run's key", role)
			}
		}
	}
	l.spec.Program.StopGrace = spec.Duration(300e9)
	if got := l.grace(worker); got != 315 {
		t.Errorf("a worker ends within %d s", got)
	}
	if got := l.sharedMemory(worker); got != "2Gi" {
		t.Errorf("/dev/shm has %s", got)
	}
}

// Without servers, there is no Job of servers. Ranks listen on any port.
func TestObjectsOfAProgram(t *testing.T) {
	var names []string
	l := programRun(2, 0)
	for _, j := range l.jobs() {
		names = append(names, strings.TrimPrefix(j.Name, l.id+"-"))
	}
	if !slices.Equal(names, []string{worker, coordinator}) {
		t.Errorf("Jobs %v", names)
	}
	if in := l.policy().Spec.Ingress; len(in) != 1 || len(in[0].Ports) > 0 || len(in[0].From) != 1 {
		t.Errorf("policy %+v", in)
	}
	if in := (&layout{l.id, someRun(1, 1), small(), 0}).policy().Spec.Ingress; len(in[0].Ports) != 2 {
		t.Errorf("policy of a model %+v", in)
	}
}

// An image that has the trainer needs no other one.
func TestOneImageOfAProgram(t *testing.T) {
	l := programRun(1, 0)
	l.AgentImage = ""
	for _, role := range []string{coordinator, worker} {
		if pod := l.template(role).Spec; len(pod.InitContainers) > 0 || pod.Containers[0].Image != l.Image || pod.Containers[0].Command != nil {
			t.Errorf("%s: %+v", role, pod)
		}
	}
}

// The lines of one rank are the marked ones of agents, without their mark.
func TestLinesOfARank(t *testing.T) {
	var got []string
	o := launch.LogOptions{Role: "rank-1"}
	give := rankLines(&o, func(l launch.Line) error { got = append(got, l.Role+" "+l.Text); return nil })
	for _, l := range []launch.Line{
		{Role: "worker-0", Text: "[rank 1] one"}, {Role: "worker-0", Text: "[rank 10] ten"}, {Role: "worker-1", Text: "level=INFO"},
		{Role: "coordinator", Text: "[rank 1] a report"}, {Role: "ps-0", Text: "[rank 1] "},
	} {
		if err := give(l); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []string{"rank-1 one", "rank-1 "}) || o.Role != "" {
		t.Errorf("%q, role %q", got, o.Role)
	}
}
