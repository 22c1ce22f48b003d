package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// TestKubernetesRoomAtPlan plans runs for which their cluster has no room, or that
// go beyond the provider's limits: an error before anything is made. What comes with
// the same plan may bring room.
func TestKubernetesRoomAtPlan(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}})
	trainer := filepath.Join(releasedTrainer(t), "stoke-trainer")
	const never = "The pods of the role worker would wait for a node for ever: each pod asks for "
	plugin := `resource "kube_manifest" "plugin" {
  cluster = { credential = { kubeconfig = { path = "CONFIG" } } }
  yaml    = <<-EOT
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: plugin, namespace: default}
    spec:
      selector: {matchLabels: {app: p}}
      template: {metadata: {labels: {app: p}}, spec: {containers: [{name: p, image: x}]}}
  EOT
}`
	dir := t.TempDir()
	run := clusterRun(t, dir)
	for i, test := range []struct {
		limits, worker, more string
		status               int
		want                 string
	}{
		{"", "memory = \"600Gi\"", "", 1, never + "600Gi memory, and the largest node, gpu-1, has 512Gi"},
		{"", "gpus = 2", "", 1, "A worker uses one GPU"},
		{"", "gpus = 1\n gpu_resource = \"nvidia.com/mig-1g.10gb\"", "", 1, never + "1 nvidia.com/mig-1g.10gb, and no node has any"},
		{"", "gpus = 1\n gpu_resource = \"nvidia.com/mig-1g.10gb\"", plugin, 0, ": each pod asks for 1 nvidia.com/mig-1g.10gb, and no node has any now, and DaemonSet default/plugin of kube_manifest.plugin may bring it"},
		{"", "node_selector = { pool = \"b\" }", "", 1, "no node has the label pool"},
		{"", "replicas = 9\n gpus = 1", "", 0, "the role worker has 9 pods; even if nothing else ran, its cluster has room for 8 of them at a time"},
		{"workers = 2", "replicas = 3", "", 1, "worker.replicas is 3; the provider block allows 2"},
		{"gpus = 0", "gpus = 1", "", 1, "worker.gpus is 1; the provider block allows 0"},
		{`cpu = "1500m"`, `cpu = "2"`, "", 1, "worker.cpu is 2; the provider block allows 1500m"},
		{`cpu = "2"`, "", "", 1, "worker.cpu is not given, so that nothing limits it; the provider block allows 2"},
		{"bandwidth_mbps = 100", "bandwidth_mbps = 1000", "", 1, "worker.bandwidth_mbps is 1000; the provider block allows 100"},
		{"workers = 2, gpus = 1, cpu = \"2\", bandwidth_mbps = 100", "replicas = 2\n gpus = 1\n cpu = \"2000m\"\n bandwidth_mbps = 100", "", 0, "Plan:"},
		{"workers = 0", "", "", 1, "it must be between 1"},
	} {
		if !strings.Contains(test.worker, "replicas") {
			test.worker += "\n replicas = 1"
		}
		write(t, filepath.Join(dir, "main.tf"), fmt.Appendf(nil, `
terraform {
  required_providers {
    train = { source = "stokehq/train" }
    kube  = { source = "stokehq/kube" }
  }
}
provider "train" {
  trainer       = %q
  trainer_image = "stoke.test/trainer:1"
  limits        = { %s }
}
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 200
  test   = 50
}
resource "train_experiment" "digits" {
  cluster      = { credential = { kubeconfig = { path = %q } } }
  model        = "mlp"
  dataset      = train_dataset.digits.uri
  dataset_path = "/data"
  parameter_server { replicas = 1 }
  worker {
    %s
  }
}
%s
`, trainer, test.limits, c.Kubeconfig(), test.worker, strings.ReplaceAll(test.more, "CONFIG", c.Kubeconfig())))
		if i == 0 {
			run(0, "init")
		}
		said := run(test.status, "plan")
		if plain := unwrap(said); !strings.Contains(plain, test.want) {
			t.Errorf("limits = { %s }, worker { %s } %s: the plan does not say %q:\n%s", test.limits, test.worker, test.more, test.want, said)
		}
	}
}
