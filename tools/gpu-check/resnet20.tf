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
  name   = "resnet20"
  format = "images"
  path   = "${path.module}/../data/cifar10"
}

resource "train_experiment" "model" {
  name         = basename(abspath(path.module))
  model        = "resnet20"
  dataset      = train_dataset.data.uri
  compute_type = "bf16"

  hyperparameters = {
    learning_rate = 0.1
    momentum      = 0.9
    nesterov      = true
    weight_decay  = 0.0005
    schedule      = "cosine"
    batch_size    = 128
    micro_batch   = 128
    epochs        = 30
    random_crop   = 4
    random_flip   = true
  }

  worker {
    gpus = 1
  }

  checkpoint {
    every_seconds = 5
  }

  lifecycle {
    postcondition {
      condition     = self.status != "succeeded" || self.metrics["accuracy"] >= 0.80
      error_message = "The accuracy is below 0.80."
    }
  }
}

output "accuracy" {
  description = "On the test images."
  value       = train_experiment.model.metrics["accuracy"]
}
