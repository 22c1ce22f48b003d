# A run of gpu-check whose speed is measured: ResNet-20 with its data from disk.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

provider "train" {}

resource "train_dataset" "data" {
  name   = "speed"
  format = "images"
  path   = "${path.module}/../data/cifar10"
}

resource "train_experiment" "model" {
  name         = basename(abspath(path.module))
  model        = "resnet20"
  dataset      = train_dataset.data.uri
  compute_type = "bf16"
  strategy     = "all_reduce"

  hyperparameters = {
    learning_rate = 0.01
    momentum      = 0.9
    batch_size    = 128
    micro_batch   = 128
    epochs        = 1000
    max_steps     = 1000
  }

  worker {
    gpus = 1
  }
}

output "samples_per_second" {
  description = "Of the training records, without evaluation and waiting."
  value       = train_experiment.model.metrics["samples_per_second"]
}
