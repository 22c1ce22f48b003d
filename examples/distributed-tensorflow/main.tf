# Trains with parameter servers, as Helm's chart distributed-tensorflow does: two
# servers and two workers run one script, on this machine. The run ends when the
# workers have ended, once.

terraform {
  required_providers {
    train = {
      source = "stokehq/train"
    }
  }
}

variable "python" {
  description = "Python, with TensorFlow or without."
  type        = string
  default     = "python3"
}

# The names are the chart's.
variable "hyperparams" {
  type = object({
    batchsize    = optional(number, 20)
    learningrate = optional(number, 0.01)
    trainsteps   = optional(number, 200)
  })
  default = {}
}

provider "train" {}

resource "train_experiment" "linear" {
  name = "distributed-tf"

  program {
    code       = "${path.module}/program"
    command    = [var.python, "deploy.py"]
    framework  = "tensorflow"
    parameters = var.hyperparams
  }

  parameter_server {
    replicas = 2
  }

  worker {
    replicas     = 2
    min_replicas = 2
  }

  lifecycle {
    postcondition {
      condition     = self.status != "succeeded" || self.metrics["loss"] < 0.01
      error_message = "The loss regressed."
    }
  }
}

output "loss" {
  value = train_experiment.linear.metrics["loss"]
}

output "logs" {
  value = train_experiment.linear.logs_dir
}
