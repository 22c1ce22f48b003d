# MLBench's tutorial: a benchmark on so many workers with so much of a cluster each.

variable "kubeconfig" {
  type    = string
  default = "~/.kube/config"
}

variable "push" {
  description = "Where the image goes: REGISTRY/REPOSITORY:TAG. Default: mlbench.tar, for you to load onto the nodes."
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

variable "task" {
  description = "What is trained: a small network on drawn digits; resnet20.tfvars has MLBench's own task."
  type        = any
  default = {
    format          = "synthetic-digits"
    model           = "mlp"
    hyperparameters = { learning_rate = 0.05, momentum = 0.9, batch_size = 64, epochs = 10 }
  }
}

module "benchmark" {
  source          = "library//cluster-training"
  cluster         = { credential = { kubeconfig = { path = var.kubeconfig } } }
  namespace       = "mlbench"
  name            = "mlbench"
  format          = var.task.format
  path            = try(var.task.path, null)
  model           = var.task.model
  strategy        = "all_reduce"
  hyperparameters = var.task.hyperparameters
  push            = var.push
  tarball         = var.push == null ? "mlbench.tar" : null
  worker          = merge(var.limits, { replicas = var.workers })
  evaluate_every  = 200
}

output "accuracy" { value = module.benchmark.accuracy }
output "metrics" { value = module.benchmark.metrics }
output "metrics_file" { value = module.benchmark.metrics_file }
output "logs" { value = module.benchmark.logs_dir }
