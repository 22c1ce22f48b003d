package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// TestKubernetesRightsOfTraining has somebody who may do what the task "training"
// of kube_rbac grants, and nothing else, start a run, look at it, change it and
// destroy it. The nodes run nothing.
func TestKubernetesRightsOfTraining(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	const user = "alice"
	admin := t.TempDir()
	write(t, filepath.Join(admin, "main.tf"), fmt.Appendf(nil, `
terraform {
  required_providers { kube = { source = "stokehq/kube" } }
}
provider "kube" { config_path = %q }
resource "kube_namespace" "lab" {
  name   = "lab"
  labels = { "pod-security.kubernetes.io/enforce" = "restricted" }
}
resource "kube_rbac" "alice" {
  name       = "alice"
  task       = "training"
  namespaces = [kube_namespace.lab.name]
  users      = [%q]
}
`, c.Kubeconfig(), user))
	grant := clusterRun(t, admin)
	grant(0, "init")
	grant(0, "apply", "-auto-approve")

	lab := t.TempDir()
	declare := func(workers int) {
		write(t, filepath.Join(lab, "main.tf"), fmt.Appendf(nil, `
terraform {
  required_providers { train = { source = "stokehq/train" } }
}
provider "train" {
  trainer       = %q
  trainer_image = "stoke.test/trainer:1"
}
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 200
  test   = 50
}
resource "train_experiment" "digits" {
  cluster      = { credential = { kubeconfig = { path = %q } } }
  namespace    = "lab"
  model        = "mlp"
  dataset      = train_dataset.digits.uri
  dataset_path = "/data"
  wait         = false
  parameter_server { replicas = 1 }
  coordinator {
    storage = "1Gi"
  }
  worker { replicas = %d }
}
`, filepath.Join(releasedTrainer(t), "stoke-trainer"), c.KubeconfigFor(t, kubetest.Login{User: user}), workers))
	}
	declare(2)
	run := clusterRun(t, lab)
	run(0, "init")
	run(0, "apply", "-auto-approve")
	run(0, "plan", "-detailed-exitcode")
	if out := run(0, "status", "train_experiment.digits"); !strings.Contains(out, "worker-1") {
		t.Errorf("status does not know the workers:\n%s", out)
	}
	declare(1)
	run(0, "apply", "-auto-approve")
	run(0, "destroy", "-auto-approve")
	for _, a := range c.Audit(t, user) {
		if a.Code == http.StatusForbidden {
			t.Errorf("%s is refused", a)
		}
	}
	// What only a node that is lost asks for.
	for _, of := range [][]string{{"delete", "pods"}, {"patch", "pods", "--subresource=status"}} {
		may := append([]string{"auth", "can-i"}, of...)
		if out := c.Kubectl(t, "", append(may, "-n", "lab", "--as", user)...); strings.TrimSpace(out) != "yes" {
			t.Errorf("%s: %s", strings.Join(may, " "), out)
		}
	}
}
