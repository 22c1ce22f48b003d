# ElasticDL's tutorial as one apply: two parameter servers and four workers of
# low priority, of which one is safe from preemption, in any cluster that a
# kubeconfig leads to.

variable "kubeconfig" {
  type    = string
  default = "~/.kube/config"
}

variable "push" {
  description = "Where the image goes: REGISTRY/REPOSITORY:TAG."
  type        = string
}

variable "data_dir" {
  description = "Folder with MNIST's four IDX files. Default: drawn digits."
  type        = string
  default     = null
}

variable "recordio_dir" {
  description = "Folder with ElasticDL's RecordIO files of MNIST: train/data-00000, …, test/data-00000. Default: none, see data_dir."
  type        = string
  default     = null
}

locals {
  cluster = { credential = { kubeconfig = { path = var.kubeconfig } } }
}

module "mnist" {
  source          = "library//cluster-training"
  cluster         = local.cluster
  namespace       = "elasticdl"
  name            = "test-mnist"
  format          = var.recordio_dir != null ? "tf-examples" : var.data_dir != null ? "idx" : "synthetic-digits"
  path            = var.recordio_dir != null ? var.recordio_dir : var.data_dir
  model           = "mnist-cnn"
  hyperparameters = { learning_rate = 0.05, batch_size = 64, epochs = 5 }
  push            = var.push

  coordinator      = { cpu = "1", memory = "1Gi", storage = "1Gi" }
  parameter_server = { replicas = 2, cpu = "1", memory = "1Gi" }
  worker           = { replicas = 4, min_replicas = 1, priority = "low", high_priority_replicas = 1, cpu = "2", memory = "2Gi" }

  evaluate_every   = 50
  checkpoint_every = 100
}

output "accuracy" {
  value = module.mnist.accuracy
}

output "pods" {
  value = module.mnist.pods
}

output "logs" {
  value = module.mnist.logs_dir
}
