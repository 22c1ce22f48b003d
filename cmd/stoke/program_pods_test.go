//go:build e2e && linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// programOnPods is a run of a program, whose image has the program only: an image of
// the trainer brings the agent. Its checkpoints are in a folder of the nodes.
const programOnPods = `
resource "train_experiment" "mine" {
  cluster   = local.lab
  namespace = kube_namespace.lab.name
  image     = "stoke.test/program:1"
  WAIT

  program {
    code       = "code"
    command    = ["/rank"]
    processes  = 2
    parameters = { steps = STEPS, pause = 0.1, every = 5 }
    stop_grace = "5s"
  }
  coordinator {
    memory = "128Mi"
  }
  checkpoint {
    place = "/saved"
  }
  volumes = [{ mount_path = "/saved", host_path = "SAVED" }]
  worker {
    replicas = WORKERS
    memory   = "128Mi"
  }
}
output "sum" {
  value = try(train_experiment.mine.metrics["sum"], 0)
}
`

// programLab is a namespace for a run of a program, with the images that it needs.
type programLab struct {
	*podLab
	saved string // folder of checkpoints
}

// newProgramLab returns a lab on a control plane of its own.
func newProgramLab(t *testing.T) programLab {
	t.Helper()
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	dir, saved := t.TempDir(), t.TempDir()
	program, err := programtest.Rank(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(saved, 0o777); err != nil {
		t.Fatal(err)
	}
	trainer := trainerImage(t, c)
	c.Load(t, podtest.Archive(t, podtest.Image{Ref: "stoke.test/program:1", Files: map[string]string{"/rank": program}, Command: []string{"/rank"}}))
	l := programLab{newPodLab(t, c, trainer, "lab"), saved}
	write(t, filepath.Join(l.dir, "code", "notes.txt"), []byte("some code"))
	return l
}

// configure writes the configuration of a run of so many steps.
func (l programLab) configure(steps, workers int, wait string) {
	l.t.Helper()
	l.declare("privileged", strings.NewReplacer("SAVED", l.saved, "STEPS", strconv.Itoa(steps),
		"WORKERS", strconv.Itoa(workers), "WAIT", wait).Replace(programOnPods))
}

// runs waits until so many ranks of the program have come beyond a step.
func (l programLab) runs(ranks int, step int64) (is providers.RunStatus) {
	l.t.Helper()
	l.Wait(l.t, fmt.Sprintf("%d ranks beyond step %d", ranks, step), func(context.Context) (bool, error) {
		if err := json.Unmarshal([]byte(l.run(0, "status", "-json", "train_experiment.mine")), &is); err != nil {
			return false, err
		}
		return is.Phase == "running" && is.Metrics["world"] == float64(ranks) && is.Step > step, fmt.Errorf("it is %+v", is)
	})
	return is
}

// generations returns the messages of the run's generations.
func (l programLab) generations() (all []string) {
	l.t.Helper()
	for line := range strings.Lines(l.run(0, "metrics", "train_experiment.mine")) {
		if strings.HasPrefix(line, "generation") {
			all = append(all, line)
		}
	}
	return all
}

// killRank kills a rank, as the kernel would for lack of memory.
func (l programLab) killRank(number int) {
	l.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, file := range all {
		env, _ := os.ReadFile(file)
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if string(command) != "/rank\x00" || !strings.Contains("\x00"+string(env), fmt.Sprintf("\x00RANK=%d\x00", number)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		return
	}
	l.t.Fatalf("no process is rank %d", number)
}

// TestProgramRescaledRealPods changes the number of workers of a program in real pods,
// each time after a checkpoint, and ends a rank, an agent and a pod.
func TestProgramRescaledRealPods(t *testing.T) {
	l := newProgramLab(t)
	l.configure(forever, 2, "wait = false")
	l.run(0, "apply", "-auto-approve")
	step := l.runs(4, 5).Step
	for _, workers := range []int{4, 1, 2} {
		l.configure(forever, workers, "wait = false")
		l.run(0, "apply", "-auto-approve")
		step = l.runs(2*workers, step).Step
	}
	all := l.generations()
	for _, change := range []string{"2 workers become 4", "4 workers become 1", "1 workers become 2"} {
		if !strings.Contains(strings.Join(all, ""), change) {
			t.Errorf("no generation ended because %s:\n%s", change, strings.Join(all, ""))
		}
	}
	for _, line := range all[1:] {
		if strings.Contains(line, "begins") && !strings.Contains(line, `from the checkpoint "step-`) {
			t.Errorf("a generation began without a checkpoint: %s", line)
		}
	}
	for what, end := range map[string]func(){
		"rank":  func() { l.killRank(3) },
		"agent": func() { l.kill("worker", "--run="+l.id(), "JOB_COMPLETION_INDEX=1") },
		"pod": func() {
			l.Kubectl(t, "", "-n", "lab", "delete", "pod", "--grace-period=0", "--force", "-l", "stoke.dev/role=worker", "--field-selector", "status.phase=Running")
		},
	} {
		before := len(l.generations())
		end()
		l.Wait(t, "a generation after the end of a "+what, func(context.Context) (bool, error) {
			return len(l.generations()) >= before+2, fmt.Errorf("%v", l.generations())
		})
		if last := l.runs(4, 0); last.Checkpoint < 0 {
			t.Errorf("after the end of a %s: %+v", what, last)
		}
	}
	l.run(0, "destroy", "-auto-approve")
}

// TestProgramRealPods runs a program in real pods by one apply: its code comes from the
// coordinator, its metrics are outputs, its ranks have logs, and destroy leaves nothing.
func TestProgramRealPods(t *testing.T) {
	l := newProgramLab(t)
	l.configure(40, 2, "")
	t.Log(l.run(0, "apply", "-auto-approve"))
	if sum := strings.TrimSpace(l.run(0, "output", "-raw", "sum")); sum != "160" {
		t.Errorf("the sum is %s", sum)
	}
	if out := l.run(0, "logs", "-rank=0", "train_experiment.mine"); !strings.Contains(out, `"sum": 160`) || strings.Contains(out, "level=INFO") {
		t.Errorf("the log of rank 0:\n%s", out)
	}
	l.run(0, "plan", "-detailed-exitcode")
	write(t, filepath.Join(l.dir, "code", "notes.txt"), []byte("other code"))
	if out := l.run(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "~ notes.txt") {
		t.Error(out)
	}
	l.run(0, "destroy", "-auto-approve", "-target=train_experiment.mine")
	if left := l.Kubectl(t, "", "-n", "lab", "get", "jobs,pods,services,secrets,networkpolicies", "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("destroy left %s", left)
	}
	l.run(0, "destroy", "-auto-approve")
}
