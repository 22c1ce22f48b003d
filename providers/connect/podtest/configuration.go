//go:build e2e && linux

package podtest

import "fmt"

// Image and records of the runs of tests: LoadTrainer gives both to the nodes.
const (
	trainerRef = "stoke.test/trainer:1"
	origin     = `{"format":"synthetic-digits","train":2000,"test":500}`

	// Digits declares these records, as train_dataset.digits.
	Digits = `
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 2000
  test   = 500
}
`
)

// Configuration returns the beginning of a configuration whose runs train in the cluster: the
// providers kube and train with a program stoke-trainer of this machine, local.lab, which has
// the cluster's credential, and kube_namespace.lab, where a pod may do what a level of the Pod
// Security Standards allows, such as "restricted".
func (c *Cluster) Configuration(trainer, namespace, level string) string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    kube  = { source = "stokehq/kube" }
    train = { source = "stokehq/train" }
  }
}
locals {
  lab = { credential = { kubeconfig = { path = %q } } }
}
provider "train" {
  trainer       = %q
  trainer_image = %q
}
resource "kube_namespace" "lab" {
  cluster = local.lab
  name    = %q
  labels  = { "pod-security.kubernetes.io/enforce" = %q }
}
`, c.Kubeconfig(), trainer, trainerRef, namespace, level)
}

// Experiment declares a run, with more arguments and blocks, that trains with Digits in the
// namespace of Configuration.
func Experiment(label, more string) string {
	return fmt.Sprintf(`
resource "train_experiment" %q {
  cluster      = local.lab
  namespace    = kube_namespace.lab.name
  model        = "mlp"
  dataset      = train_dataset.digits.uri
  dataset_path = "/data"
%s}
`, label, more)
}
