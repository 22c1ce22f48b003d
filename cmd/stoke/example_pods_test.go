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
	"testing"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// benchmark is the experiment of examples/mlbench.
const benchmark = "module.benchmark.train_experiment.this"

// TestExampleRealPods runs examples/mlbench as its README says: to its end, and
// rescaled while it goes on. What a worker gets is what one of two busy cores can
// give to all of them.
func TestExampleRealPods(t *testing.T) {
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	trainer := filepath.Join(releasedTrainer(t), "stoke-trainer")
	lab := func(t *testing.T, arguments string) (dir string, run func(want int, args ...string) string) {
		t.Helper()
		dir = t.TempDir()
		if err := copyConfiguration(dir, filepath.Join(moduleRoot, "examples", "mlbench")); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"lab.tf":          fmt.Sprintf("provider \"train\" {\n  trainer = %q\n}\n", trainer),
			"lab.auto.tfvars": fmt.Sprintf("kubeconfig = %q\nlimits = { cpu = \"100m\", memory = \"256Mi\", gpus = 0, bandwidth_mbps = 100 }\n", c.Kubeconfig()),
			"lab_override.tf": "module \"benchmark\" {\n  train_records = 2000\n  test_records = 500\n" + arguments + "}\n",
		} {
			write(t, filepath.Join(dir, name), []byte(text))
		}
		run = clusterRun(t, dir)
		run(0, "init")
		return dir, run
	}
	gone := func(t *testing.T, namespace string) {
		t.Helper()
		if left := strings.TrimSpace(c.Kubectl(t, "", "get", "namespace", namespace, "--ignore-not-found", "-o", "name")); left != "" {
			t.Errorf("destroy left %s", left)
		}
	}

	t.Run("to its end", func(t *testing.T) {
		dir, run := lab(t, "")
		run(0, "apply", "-auto-approve", "-target=module.benchmark.train_image.this")
		c.Load(t, filepath.Join(dir, "mlbench.tar"))
		t.Log(run(0, "apply", "-auto-approve"))
		accuracy, err := strconv.ParseFloat(strings.TrimSpace(run(0, "output", "-raw", "accuracy")), 64)
		if err != nil || accuracy < 0.5 || accuracy > 1 {
			t.Errorf("accuracy %v, %v", accuracy, err)
		}
		var metrics map[string]float64
		if err := json.Unmarshal([]byte(run(0, "output", "-json", "metrics")), &metrics); err != nil || metrics["accuracy"] != accuracy || metrics["samples_per_second"] <= 0 {
			t.Errorf("the metrics are %v, %v", metrics, err)
		}
		logs := strings.TrimSpace(run(0, "output", "-raw", "logs"))
		for _, role := range []string{"coordinator", "worker"} { // on a busy machine one worker may come after the end
			if found, err := filepath.Glob(filepath.Join(logs, role+"-*.log")); err != nil || len(found) == 0 {
				t.Errorf("no log of a %s was collected: %v", role, err)
			}
		}
		run(0, "plan", "-detailed-exitcode")
		run(0, "destroy", "-auto-approve")
		gone(t, "mlbench")
		if _, err := os.Stat(filepath.Join(dir, "mlbench.tar")); !os.IsNotExist(err) {
			t.Errorf("destroy left the image: %v", err)
		}
	})

	// Equal inputs give an equal image, which the nodes have by now.
	t.Run("rescaled", func(t *testing.T) {
		_, run := lab(t, fmt.Sprintf("  namespace = \"rescaled\"\n  wait = false\n  hyperparameters = { epochs = %d }\n", forever))
		var first providers.RunStatus
		goesOn := func(workers int, step int64) (is providers.RunStatus) {
			c.Wait(t, fmt.Sprintf("%d workers train beyond step %d", workers, step), func(context.Context) (bool, error) {
				if err := json.Unmarshal([]byte(run(0, "status", "-json", benchmark)), &is); err != nil {
					return false, err
				}
				return is.Phase == "running" && is.Workers == workers && is.Step > step, fmt.Errorf("it is %+v", is)
			})
			return is
		}
		run(0, "apply", "-auto-approve")
		first = goesOn(2, 0)
		plan := run(2, "plan", "-detailed-exitcode", "-var", "workers=4")
		for line := range strings.Lines(rescaling(t)) {
			if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "…" && !strings.Contains(plan, line) {
				t.Errorf("the README shows a line that the plan does not have: %q\n%s", line, plan)
			}
		}
		run(0, "apply", "-auto-approve", "-var", "workers=4")
		if again := goesOn(4, first.Step); again.Run != first.Run {
			t.Errorf("rescaling made another run: %s, %s", first.Run, again.Run)
		}
		if out := run(1, "plan", "-var", "workers=9"); !strings.Contains(out, "1 to 8 workers") {
			t.Errorf("too many workers are planned:\n%s", out)
		}
		run(0, "destroy", "-auto-approve", "-var", "workers=4")
		gone(t, "rescaled")
	})
}

// rescaling is what the README shows of a plan with more workers.
func rescaling(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(moduleRoot, "examples", "mlbench", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```text\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !strings.Contains(shown, "0 to add, 1 to change, 0 to destroy") {
		t.Fatalf("the README shows no change in place:\n%s", shown)
	}
	return shown
}
