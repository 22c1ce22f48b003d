# Trains a model on this machine: two workers compute gradients, one parameter
# server holds the parameters. The data is drawn, so nothing is downloaded.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

provider "train" {}

resource "train_dataset" "digits" {
  name   = "digits"
  format = "synthetic-digits" # drawn strokes with distortion, 28 × 28; not MNIST
  train  = 20000
  test   = 2000
}

resource "train_experiment" "digits" {
  model   = "mlp"
  dataset = train_dataset.digits.uri

  hyperparameters = {
    learning_rate = 0.05
    momentum      = 0.9
    batch_size    = 64
    epochs        = 6
  }

  parameter_server {
    replicas = 1
  }

  worker {
    replicas = 2
  }

  evaluation {
    every_steps = 500
  }

  checkpoint {
    every_steps = 500
  }
}

output "accuracy" {
  description = "On held-out digits."
  value       = train_experiment.digits.metrics["accuracy"]
}

output "loss" {
  value = train_experiment.digits.metrics["loss"]
}

output "samples_per_second" {
  value = train_experiment.digits.metrics["samples_per_second"]
}

output "logs" {
  value = train_experiment.digits.logs_dir
}

output "metrics_file" {
  value = train_experiment.digits.metrics_file
}
