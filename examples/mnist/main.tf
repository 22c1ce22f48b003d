# Trains a convolutional network on the MNIST files that you have: one
# parameter server, two workers, on this machine.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

variable "data_dir" {
  description = "Folder with MNIST's four IDX files, gzip-compressed or not."
  type        = string
}

provider "train" {}

resource "train_dataset" "mnist" {
  name   = "mnist"
  format = "idx"
  path   = var.data_dir
}

resource "train_experiment" "mnist" {
  model   = "mnist-cnn"
  dataset = train_dataset.mnist.uri

  hyperparameters = {
    learning_rate = 0.05
    batch_size    = 64
    epochs        = 1
  }

  parameter_server {
    replicas = 1
  }

  worker {
    replicas = 2
  }

  evaluation {
    every_steps = 250
  }

  checkpoint {
    every_steps = 250
  }

  lifecycle {
    postcondition {
      condition     = self.status != "succeeded" || self.metrics["accuracy"] >= 0.97
      error_message = "Accuracy regressed."
    }
  }
}

output "accuracy" {
  description = "On the 10,000 test images."
  value       = train_experiment.mnist.metrics["accuracy"]
}

output "loss" {
  value = train_experiment.mnist.metrics["loss"]
}

output "samples_per_second" {
  value = train_experiment.mnist.metrics["samples_per_second"]
}

output "logs" {
  value = train_experiment.mnist.logs_dir
}

output "metrics_file" {
  value = train_experiment.mnist.metrics_file
}
