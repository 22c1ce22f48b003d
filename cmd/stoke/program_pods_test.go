//go:build e2e && linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// programOnPods is a run of a program, whose image has the program only: an image of
// the trainer brings the agent. Its checkpoints are in a folder of the nodes.
const programOnPods = `
terraform {
  required_providers {
    kube  = { source = "stokehq/kube" }
    train = { source = "stokehq/train" }
  }
}
locals {
  lab = { credential = { kubeconfig = { path = "KUBECONFIG" } } }
}
provider "train" {
  trainer       = "TRAINER"
  trainer_image = "stoke.test/trainer:1"
}
resource "kube_namespace" "lab" {
  cluster = local.lab
  name    = "lab"
}
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
    replicas = 2
    memory   = "128Mi"
  }
}
output "sum" {
  value = try(train_experiment.mine.metrics["sum"], 0)
}
`

// TestProgramRealPods runs a program in real pods by one apply: its code comes from the
// coordinator, its metrics are outputs, its ranks have logs, and destroy leaves nothing.
func TestProgramRealPods(t *testing.T) {
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
	l := newPodLab(t, c, trainer, "lab")
	write(t, filepath.Join(l.dir, "code", "notes.txt"), []byte("some code"))
	configure := func(steps, wait string) {
		text := strings.NewReplacer("KUBECONFIG", l.Kubeconfig(), "TRAINER", trainer, "SAVED", saved, "STEPS", steps, "WAIT", wait).Replace(programOnPods)
		write(t, filepath.Join(l.dir, "main.tf"), []byte(text))
	}
	configure("40", "")
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
	if left := c.Kubectl(t, "", "-n", "lab", "get", "jobs,pods,services,secrets,networkpolicies", "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("destroy left %s", left)
	}
	l.run(0, "destroy", "-auto-approve")
}
