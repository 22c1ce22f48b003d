# Runs a PyTorch program with DistributedDataParallel: two workers of two processes
# each, on this machine.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

variable "python" {
  description = "Python with PyTorch."
  type        = string
  default     = "python3"
}

variable "workers" {
  type    = number
  default = 2
}

variable "processes" {
  description = "Processes of each worker: a number, or \"gpu\" for one on each of its GPUs."
  type        = string
  default     = "2"
}

variable "gpus" {
  description = "GPUs of each worker."
  type        = number
  default     = 0
}

variable "parameters" {
  description = "Arguments of the program."
  type = object({
    epochs        = optional(number, 6)
    learning_rate = optional(number, 0.2)
    seed          = optional(number, 0)
  })
  default = {}
}

provider "train" {}

resource "train_experiment" "ddp" {
  name = "ddp"

  program {
    code      = "${path.module}/program"
    command   = [var.python, "train.py", "--epochs={{epochs}}", "--learning-rate={{learning_rate}}", "--seed={{seed}}"]
    framework = "torch"
    processes = var.processes

    parameters = var.parameters
  }

  worker {
    replicas = var.workers
    gpus     = var.gpus
  }

  lifecycle {
    postcondition {
      condition     = self.status != "succeeded" || self.metrics["accuracy"] >= 0.9
      error_message = "Accuracy regressed."
    }
  }
}

output "accuracy" {
  description = "On 2,048 records that it was not trained on."
  value       = train_experiment.ddp.metrics["accuracy"]
}

output "loss" {
  value = train_experiment.ddp.metrics["loss"]
}

output "logs" {
  value = train_experiment.ddp.logs_dir
}
