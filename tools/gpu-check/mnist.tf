# A run of gpu-check on one GPU of this machine.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

provider "train" {}

resource "train_dataset" "data" {
  name   = "mnist"
  format = "idx"
  path   = "${path.module}/../data/mnist"
}

resource "train_experiment" "model" {
  name         = basename(abspath(path.module))
  model        = "mnist-cnn"
  dataset      = train_dataset.data.uri
  compute_type = "tf32"
  gpu_health   = "required"

  hyperparameters = {
    learning_rate = 0.01
    momentum      = 0.9
    schedule      = "cosine"
    batch_size    = 64
    micro_batch   = 64
    epochs        = 4
  }

  worker {
    gpus = 1
  }

  checkpoint {
    every_seconds = 5
  }

  lifecycle {
    postcondition {
      condition     = self.status != "succeeded" || self.metrics["accuracy"] >= 0.985
      error_message = "The accuracy is below 0.985."
    }
  }
}

output "accuracy" {
  description = "On the test images."
  value       = train_experiment.model.metrics["accuracy"]
}

output "gpu_health" {
  description = "The worst health of the GPUs during the run."
  value       = train_experiment.model.gpu_health_worst
}
