//go:build e2e && linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/podtest"
)

// experimentOnPods is a run that its coordinator, one server and its workers
// train in pods.
var experimentOnPods = podtest.Digits + podtest.Experiment("digits", `
  WAIT

  hyperparameters = {
    learning_rate = 0.05
    momentum      = 0.9
    epochs        = EPOCHS
  }
  checkpoint {
    every_seconds = 2
  }
  coordinator {
    memory = "128Mi"
    STORAGE
  }
  STRATEGY
  worker {
    replicas = WORKERS
    cpu      = "CORES"
    priority = "PRIORITY"
    memory   = "256Mi"
  }
`) + `
output "accuracy" {
  value = try(train_experiment.digits.metrics["accuracy"], 0) # a run that goes on has none yet
}
`

// trainerImage builds an image with the trainer and its dataset, and gives it to
// all nodes. trainer is the program's path.
func trainerImage(t *testing.T, c *podtest.Cluster) (trainer string) {
	t.Helper()
	trainer = filepath.Join(releasedTrainer(t), "stoke-trainer")
	c.LoadTrainer(t, trainer)
	return trainer
}

// TestExperimentRealPods trains in real pods by one apply: the accuracy is an
// output, the second plan is empty although the pods are gone, what the run left
// is here, and destroy leaves nothing.
func TestExperimentRealPods(t *testing.T) {
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	trainer := trainerImage(t, c)
	l := newPodLab(t, c, trainer, "lab")
	l.wait, l.epochs = "", 3
	l.write()
	run := l.run
	out := run(0, "apply", "-auto-approve")
	t.Log(out)
	accuracy, err := strconv.ParseFloat(strings.TrimSpace(run(0, "output", "-raw", "accuracy")), 64)
	if err != nil || accuracy < 0.5 || accuracy > 1 {
		t.Errorf("accuracy %v, %v", accuracy, err)
	}
	var state struct {
		Resources []struct {
			Type      string
			Instances []struct{ Attributes map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(run(0, "state", "pull")), &state); err != nil {
		t.Fatal(err)
	}
	var logs string
	for _, r := range state.Resources {
		if r.Type == "train_experiment" {
			logs = r.Instances[0].Attributes["logs_dir"].(string)
		}
	}
	for _, name := range []string{"logs/coordinator-0.log", "logs/worker-0.log", "metrics.jsonl", "status.json"} {
		if info, err := os.Stat(filepath.Join(filepath.Dir(logs), name)); err != nil || info.Size() == 0 {
			t.Errorf("%s was not collected: %v", name, err)
		}
	}
	if models, err := filepath.Glob(filepath.Join(filepath.Dir(logs), "checkpoints", "final-*", "manifest.json")); err != nil || len(models) != 1 {
		t.Errorf("the model was not collected: %v, %v", models, err)
	}
	run(0, "plan", "-detailed-exitcode")
	c.Kubectl(t, "", "-n", "lab", "delete", "jobs", "--all", "--wait=true")
	run(0, "plan", "-detailed-exitcode") // a finished run stays finished
	run(0, "destroy", "-auto-approve", "-target=train_experiment.digits")
	if left := c.Kubectl(t, "", "-n", "lab", "get", "jobs,pods,services,secrets,networkpolicies,persistentvolumeclaims", "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("destroy left %s", left)
	}
	run(0, "destroy", "-auto-approve")
}
