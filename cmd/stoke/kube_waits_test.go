package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// TestKubernetesRunsThatWait applies runs that something in the cluster keeps
// from beginning: apply says what, the state has the run, and the next apply goes
// on with that run.
func TestKubernetesRunsThatWait(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}})
	trainer := filepath.Join(releasedTrainer(t), "stoke-trainer")
	for _, test := range []struct {
		name          string
		prepare, mend []string // arguments of kubectl, in the namespace
		prepared      []string // what says something once the preparation counts
		coordinator   string   // its arguments
		want          string
	}{
		{
			name:     "quota",
			prepare:  []string{"create", "quota", "few", "--hard=pods=0"},
			prepared: []string{"get", "quota", "few", "-o", "jsonpath={.status.hard.pods}"},
			mend:     []string{"delete", "quota", "few"},
			want:     "exceeded quota: few",
		},
		{
			name:        "claim",
			coordinator: `storage = "1Gi", storage_class = "none-such"`,
			want:        `storageclass.storage.k8s.io "none-such" not found`,
		},
		{
			name:        "room",
			prepare:     []string{"run", "other", "--image=x", `--overrides={"spec": {"containers": [{"name": "other", "image": "x", "resources": {"requests": {"cpu": "40"}}}]}}`},
			prepared:    []string{"get", "pod", "other", "-o", "jsonpath={.spec.nodeName}"},
			mend:        []string{"delete", "pod", "other", "--force"},
			coordinator: `cpu = "40"`,
			want:        "Insufficient cpu",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ns := "wait-" + test.name
			kubectl := func(args ...string) string {
				t.Helper()
				return c.Kubectl(t, "", append([]string{"-n", ns}, args...)...)
			}
			kubectl("create", "namespace", ns)
			if test.prepare != nil {
				kubectl(test.prepare...)
				c.Eventually(t, "the preparation counts", func(context.Context) (bool, error) {
					return kubectl(test.prepared...) != "", nil
				})
			}
			dir := t.TempDir()
			declare := func(wait bool) {
				t.Helper()
				write(t, filepath.Join(dir, "main.tf"), fmt.Appendf(nil, `
terraform {
  required_providers { train = { source = "stokehq/train" } }
}
provider "train" {
  trainer       = %q
  trainer_image = "stoke.test/trainer:1"
}
output "run" {
  value = train_experiment.digits.id
}
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 200
  test   = 50
}
resource "train_experiment" "digits" {
  cluster      = { credential = { kubeconfig = { path = %q } } }
  namespace    = %q
  model        = "mlp"
  dataset      = train_dataset.digits.uri
  dataset_path = "/data"
  parameter_server { replicas = 1 }
  worker { replicas = 1 }
  coordinator {
    %s
  }
  wait = %t
  timeouts { update = "20s" }
}
`, trainer, c.Kubeconfig(), ns, strings.ReplaceAll(test.coordinator, ", ", "\n    "), wait))
			}
			run := clusterRun(t, dir)
			says := func(what, said string, wants ...string) {
				t.Helper()
				plain := strings.Join(strings.Fields(strings.ReplaceAll(said, "│", " ")), " ")
				for _, want := range wants {
					if !strings.Contains(plain, want) {
						t.Errorf("%s does not say %q:\n%s", what, want, said)
					}
				}
			}
			declare(false)
			run(0, "init")
			run(0, "apply", "-auto-approve")
			began := run(0, "output", "-raw", "run")
			c.Eventually(t, "status says why the run waits", func(context.Context) (bool, error) {
				said := run(0, "status", "train_experiment.digits")
				return strings.Contains(said, "pending") && strings.Contains(said, test.want), errors.New(said)
			})
			says("plan", run(0, "plan", "-detailed-exitcode"), "Not all of the experiment runs", test.want)
			declare(true)
			says("apply", run(1, "apply", "-auto-approve"), "The experiment is not done yet", "It has not begun after 20s", test.want)
			if now := run(0, "output", "-raw", "run"); now != began || now == "" {
				t.Errorf("the run was %q and is %q", began, now)
			}
			if runs := kubectl("get", "configmaps", "-l", "stoke.dev/run", "-o", "name"); strings.Count(runs, "configmap/") != 1 {
				t.Errorf("there are these runs: %s", runs)
			}
			if test.mend != nil {
				kubectl(test.mend...)
				c.Eventually(t, "the run has its pods", func(context.Context) (bool, error) {
					return strings.Count(kubectl("get", "pods", "-l", "stoke.dev/run", "-o", "name"), "pod/") == 3, nil
				})
			}
			run(0, "destroy", "-auto-approve")
		})
	}
}
