# MLBench's tutorial: a benchmark on so many workers, each with so much CPU,
# memory, bandwidth and so many GPUs, in any cluster of a kubeconfig.

variable "kubeconfig" {
  type    = string
  default = "~/.kube/config"
}

variable "push" {
  description = "Where the image goes: REGISTRY/REPOSITORY:TAG. Default: mlbench.tar, for you to load onto the nodes."
  type        = string
  default     = null
}

variable "pictures" {
  description = "Folder with the pictures of CIFAR-10, as train_dataset reads them: ResNet-20 is trained on them. Default: a small network on drawn digits."
  type        = string
  default     = null
}

variable "workers" {
  description = "How many workers train. A change rescales the running benchmark."
  type        = number
  default     = 2

  validation {
    condition     = var.workers >= 1 && var.workers <= 8
    error_message = "This benchmark is for 1 to 8 workers."
  }
}

variable "limits" {
  description = "What each worker gets."
  type        = object({ cpu = string, memory = string, gpus = number, bandwidth_mbps = number })
  default     = { cpu = "1", memory = "512Mi", gpus = 0, bandwidth_mbps = 1000 }
}

locals {
  digits = { learning_rate = 0.05, momentum = 0.9, batch_size = 64, epochs = 10 }
  pictures = {
    learning_rate = 0.1
    momentum      = 0.9
    nesterov      = true
    weight_decay  = 0.0001
    batch_size    = 128
    epochs        = 164
    schedule      = "step"
    decay_epochs  = [82, 109]
  }
}

module "benchmark" {
  source          = "library//cluster-training"
  cluster         = { credential = { kubeconfig = { path = var.kubeconfig } } }
  namespace       = "mlbench"
  name            = "mlbench"
  format          = var.pictures == null ? "synthetic-digits" : "images"
  path            = var.pictures
  model           = var.pictures == null ? "mlp" : "resnet20"
  hyperparameters = var.pictures == null ? local.digits : local.pictures
  push            = var.push
  tarball         = var.push == null ? "mlbench.tar" : null
  worker          = merge(var.limits, { replicas = var.workers })
  evaluate_every  = 200
}

output "accuracy" {
  value = module.benchmark.accuracy
}

output "metrics" {
  value = module.benchmark.metrics
}

output "metrics_file" {
  value = module.benchmark.metrics_file
}

output "logs" {
  value = module.benchmark.logs_dir
}
