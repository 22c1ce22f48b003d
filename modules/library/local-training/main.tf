# A dataset and one training run on it, on the machine where stoke runs.
#
#   module "digits" {
#     source = "library//local-training"
#     format = "synthetic-digits"
#     model  = "mlp"
#   }

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

resource "train_dataset" "this" {
  name   = var.name
  format = var.format
  path   = var.path
  train  = var.train_records
  test   = var.test_records
}

resource "train_experiment" "this" {
  name            = var.name
  model           = var.model
  dataset         = train_dataset.this.uri
  hyperparameters = var.hyperparameters
  compute_type    = var.compute_type
  deadline        = var.deadline
  wait            = var.wait

  parameter_server {
    replicas = var.parameter_servers
  }

  worker {
    replicas = var.workers
    gpus     = var.gpus
    threads  = var.threads
  }

  evaluation {
    every_steps = var.evaluate_every
  }

  checkpoint {
    every_steps = var.checkpoint_every
  }

  lifecycle {
    postcondition {
      condition     = var.minimum_accuracy == null || self.status != "succeeded" || try(self.metrics["accuracy"] >= var.minimum_accuracy, false)
      error_message = "The run ended below the accuracy that minimum_accuracy asks for."
    }
  }
}
