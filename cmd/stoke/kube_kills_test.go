package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// kills is how often stoke is killed; STOKE_KILLS says another number.
const kills = 10

// TestKubernetesKills kills stoke at random moments while it launches, rescales
// and destroys a run on a cluster: never are there two runs, the next apply
// finishes the job, and nothing is left in the end. No pod ever gets a node.
func TestKubernetesKills(t *testing.T) {
	want, seed := kills, uint64(time.Now().UnixNano())
	for name, into := range map[string]func(string) error{
		"STOKE_KILLS": func(s string) (err error) { want, err = strconv.Atoi(s); return err },
		"STOKE_SEED":  func(s string) (err error) { seed, err = strconv.ParseUint(s, 10, 64); return err },
	} {
		if text := os.Getenv(name); text != "" {
			if err := into(text); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	w := &killedRuns{T: t, Cluster: kubetest.Start(t, kubetest.Options{}), dir: t.TempDir(), trainer: filepath.Join(releasedTrainer(t), "stoke-trainer")}
	w.Kubectl(t, "", "create", "namespace", "lab")
	run := clusterRun(t, w.dir)
	w.declare(2)
	run(0, "init")
	began := time.Now()
	run(0, "apply", "-auto-approve")
	took := time.Since(began)
	w.check(2)

	t.Logf("STOKE_SEED=%d repeats the order; an apply took %v", seed, took)
	random := rand.New(rand.NewPCG(seed, 0))
	done := map[string]int{}
	for workers, killed := 2, 0; killed < want; {
		was := workers
		for workers == was {
			workers = random.IntN(4)
		}
		w.declare(workers)
		for range 1 + random.IntN(3) {
			cmd := exec.CommandContext(t.Context(), "stoke", "-chdir="+w.dir, "apply", "-auto-approve")
			cmd.Env = append(os.Environ(), "HOME="+w.dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.Int64N(int64(took))))
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if !cmd.ProcessState.Exited() {
				killed++
				done[phase(was, workers)]++
			}
			if runs := w.runs(); len(runs) > 1 {
				t.Fatalf("there are two runs: %v", runs)
			}
		}
		run(0, "apply", "-auto-approve")
		run(0, "plan", "-detailed-exitcode")
		w.check(workers)
	}
	run(0, "destroy", "-auto-approve")
	w.check(0)
	t.Logf("killed: %v", done)
}

// phase is what is under way between two numbers of workers.
func phase(was, is int) string {
	switch {
	case was == 0:
		return "launch"
	case is == 0:
		return "destroy"
	}
	return "rescale"
}

// killedRuns is a configuration with a run, or without one.
type killedRuns struct {
	*testing.T
	*kubetest.Cluster
	dir, trainer string
}

// declare writes the configuration: 0 workers are no run.
func (w *killedRuns) declare(workers int) {
	w.Helper()
	text := fmt.Sprintf(`
terraform {
  required_providers { train = { source = "stokehq/train" } }
}
provider "train" {
  trainer       = %q
  trainer_image = "stoke.test/trainer:1"
  datasets_dir  = "${path.cwd}/datasets"
}
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 200
  test   = 50
}
`, w.trainer)
	if workers > 0 {
		text += fmt.Sprintf(`
resource "train_experiment" "digits" {
  cluster      = { credential = { kubeconfig = { path = %q } } }
  namespace    = "lab"
  model        = "mlp"
  dataset      = train_dataset.digits.uri
  dataset_path = "/data"
  wait         = false
  parameter_server { replicas = 1 }
  coordinator { storage = "1Gi" }
  worker { replicas = %d }
}
`, w.Kubeconfig(), workers)
	}
	write(w.T, filepath.Join(w.dir, "main.tf"), []byte(text))
}

// runs are the names of all runs that have a coordinator, a token, or a record.
func (w *killedRuns) runs() (names []string) {
	w.Helper()
	out := w.Kubectl(w.T, "", "-n", "lab", "get", "jobs,secrets,configmaps", "-l", "stoke.dev/run", "-o", `jsonpath={range .items[*]}{.metadata.labels.stoke\.dev/run}{"\n"}{end}`)
	seen := map[string]bool{}
	for _, name := range strings.Fields(out) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// check compares what there is with what was applied.
func (w *killedRuns) check(workers int) {
	w.Helper()
	if workers == 0 {
		w.Eventually(w.T, "nothing of the runs is left", func(context.Context) (bool, error) {
			left := w.Kubectl(w.T, "", "-n", "lab", "get", "jobs,pods,secrets,configmaps,services,networkpolicies,persistentvolumeclaims", "-l", "stoke.dev/run", "-o", "name")
			return left == "", errors.New(left)
		})
		return
	}
	if runs := w.runs(); len(runs) != 1 {
		w.Errorf("the runs are %v", runs)
	}
	jobs := w.Kubectl(w.T, "", "-n", "lab", "get", "jobs", "-l", "stoke.dev/run", "-o", `jsonpath={range .items[*]}{.metadata.labels.stoke\.dev/role}={.spec.parallelism}{"\n"}{end}`)
	all := strings.Fields(jobs)
	slices.Sort(all)
	if want := []string{"coordinator=1", "ps=1", fmt.Sprintf("worker=%d", workers)}; !slices.Equal(all, want) {
		w.Errorf("the Jobs are %v, not %v", all, want)
	}
}
