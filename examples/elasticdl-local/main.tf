# ElasticDL's tutorial on this machine: a CNN on MNIST with two workers, by both
# of its strategies.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

variable "strategy" {
  description = "parameter_server or all_reduce."
  type        = string
  default     = "all_reduce"
}

variable "recordio_dir" {
  description = "Folder with ElasticDL's RecordIO files of MNIST: train/data-00000, …, test/data-00000. Default: drawn digits."
  type        = string
  default     = null
}

variable "records" {
  description = "How many digits are drawn for training, where there are no files."
  type        = number
  default     = 12800
}

provider "train" {}

resource "train_dataset" "mnist" {
  format = var.recordio_dir != null ? "tf-examples" : "synthetic-digits"
  path   = var.recordio_dir
  train  = var.recordio_dir != null ? null : var.records
  test   = var.recordio_dir != null ? null : ceil(var.records / 5)
}

resource "train_experiment" "mnist" {
  name     = "test-mnist"
  model    = "mnist-cnn"
  dataset  = train_dataset.mnist.uri
  strategy = var.strategy

  hyperparameters = {
    learning_rate = 0.05
    batch_size    = 128 # 64 for each of two workers
    epochs        = 1
  }

  worker {
    replicas = 2
  }

  evaluation {
    every_steps = 50
  }
}

output "accuracy" {
  description = "On held-out digits."
  value       = train_experiment.mnist.metrics["accuracy"]
}

output "samples_per_second" {
  value = train_experiment.mnist.metrics["samples_per_second"]
}
