# Trains ResNet-20 on the pictures of CIFAR-10 that you have, on this machine.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

variable "pictures" {
  description = "Folder with train/CLASS/… and test/CLASS/… of PNG or JPEG files, or with train.zip and test.zip."
  type        = string
}

variable "epochs" {
  description = "Passes over the training pictures."
  type        = number
  default     = 4
}

provider "train" {}

resource "train_dataset" "cifar10" {
  format = "images"
  path   = var.pictures
}

resource "train_experiment" "resnet20" {
  name    = "cifar10-resnet20"
  model   = "resnet20"
  dataset = train_dataset.cifar10.uri

  hyperparameters = {
    epochs        = var.epochs
    batch_size    = 64
    learning_rate = 0.1
    momentum      = 0.9
    nesterov      = true
    weight_decay  = 0.0005
    schedule      = "cosine"
    warmup_epochs = 0.25
  }

  worker {
    replicas = 2
    threads  = 1
  }

  evaluation {
    every_steps = 782
  }
}

output "accuracy" {
  description = "On the test pictures."
  value       = train_experiment.resnet20.metrics["accuracy"]
}
