variable "cluster" {
  description = "Connection to the cluster, such as { credential = { kubeconfig = { path = \"~/.kube/config\" } } }, or the access of a cluster in this configuration."
  type        = any
  nullable    = false
}

variable "namespace" {
  description = "Namespace of the run."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "A namespace has at most 63 lower-case letters, digits and hyphens, and a hyphen is neither its first nor its last character."
  }
}

variable "create_namespace" {
  description = "Whether the namespace is made here, under the Pod Security level restricted, and removed with all that is in it by destroy."
  type        = bool
  default     = true
  nullable    = false
}

variable "name" {
  description = "What people call the dataset and the run."
  type        = string
  default     = "training"
}

variable "format" {
  description = "Where records come from: images, cifar, idx, csv, text, tf-examples, recordio, or synthetic-digits, which needs no files."
  type        = string
}

variable "path" {
  description = "Folder or file to read the records from; none for synthetic-digits."
  type        = string
  default     = null
}

variable "train_records" {
  description = "Most training records to take, or how many to draw."
  type        = number
  default     = null
}

variable "test_records" {
  description = "Most held-out records to take, or how many to draw."
  type        = number
  default     = null
}

variable "model" {
  description = "Built-in model: softmax, linear, mlp, mnist-cnn, cifar-cnn, resnet20, resnet18 or transformer."
  type        = string
}

variable "hyperparameters" {
  description = "What the result depends on; what is left out has the provider's defaults."
  type = object({
    learning_rate         = optional(number)
    batch_size            = optional(number)
    epochs                = optional(number)
    max_steps             = optional(number)
    shuffle_block         = optional(number)
    micro_batch           = optional(number)
    momentum              = optional(number)
    nesterov              = optional(bool)
    weight_decay          = optional(number)
    seed                  = optional(number)
    optimizer             = optional(string)
    beta1                 = optional(number)
    beta2                 = optional(number)
    epsilon               = optional(number)
    clip_norm             = optional(number)
    random_crop           = optional(number)
    random_flip           = optional(bool)
    schedule              = optional(string)
    warmup_epochs         = optional(number)
    decay_epochs          = optional(list(number))
    decay_every           = optional(number)
    decay_factor          = optional(number)
    minimum_learning_rate = optional(number)
  })
  default  = {}
  nullable = false
}

variable "push" {
  description = "Where the image is pushed to: REGISTRY/REPOSITORY:TAG."
  type        = string
  default     = null
}

variable "tarball" {
  description = "File to write the image to, for clusters whose nodes are given images without a registry."
  type        = string
  default     = null

  validation {
    condition     = var.tarball != null || var.push != null
    error_message = "Pods need an image: give push, a name in a registry, or tarball, a file that you load onto the nodes."
  }
}

variable "delete_image" {
  description = "Whether destroy deletes the pushed image from the registry, with all tags of its digest. Default: it stays."
  type        = bool
  default     = null
}

variable "image_pull_secrets" {
  description = "Secrets of the namespace with which the image is pulled."
  type        = list(string)
  default     = null
}

variable "trainer" {
  description = "Path of a stoke-trainer for the platform that needs no libraries. Default: the one beside stoke."
  type        = string
  default     = null
}

variable "base" {
  description = "Base of the image; with worker.gpus one with glibc, such as debian:13-slim. Default: none."
  type        = string
  default     = null

  validation {
    condition     = var.base != null || coalesce(var.worker.gpus, 0) == 0
    error_message = "Workers with GPUs need libraries: give base, such as debian:13-slim."
  }
}

variable "gpu_trainer" {
  description = "With worker.gpus: path of a stoke-trainer-gpu for the platform. Default: the one next to stoke."
  type        = string
  default     = null
}

variable "gpu_files" {
  description = "With worker.gpus: folder of XLA's plugin, CUDA's libraries, ptxas and libdevice.10.bc. Default: the base has them."
  type        = string
  default     = null
}

variable "compute_type" {
  description = "Type of products and convolutions: f32, tf32 or bf16. Default: tf32 on GPUs, else f32."
  type        = string
  default     = null
}

variable "platform" {
  description = "What the nodes are: linux/amd64 or linux/arm64."
  type        = string
  default     = "linux/amd64"
}

variable "coordinator" {
  description = "The pod that hands out records and keeps the run's log. With storage, such as 1Gi, log and checkpoints are on a claim and outlive it."
  type = object({
    cpu               = optional(string)
    memory            = optional(string)
    ephemeral_storage = optional(string)
    bandwidth_mbps    = optional(number)
    node_selector     = optional(map(string))
    spread_over       = optional(string)
    storage           = optional(string)
    storage_class     = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.coordinator.storage_class == null || var.coordinator.storage != null
    error_message = "storage_class says where storage comes from: give storage, too."
  }
}

variable "strategy" {
  description = "How gradients become updates: parameter_server, or all_reduce, where every worker holds all parameters and there are no servers."
  type        = string
  default     = "parameter_server"

  validation {
    condition     = contains(["parameter_server", "all_reduce"], var.strategy)
    error_message = "The strategy is parameter_server or all_reduce."
  }
}

variable "parameter_server" {
  description = "Pods that hold the parameters, with the strategy parameter_server; cpu, memory and bandwidth_mbps are of each."
  type = object({
    replicas          = optional(number, 1)
    cpu               = optional(string)
    memory            = optional(string)
    ephemeral_storage = optional(string)
    bandwidth_mbps    = optional(number)
    node_selector     = optional(map(string))
    spread_over       = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.parameter_server.replicas >= 1
    error_message = "Somebody has to hold the parameters: parameter_server.replicas is at least 1."
  }
}

variable "worker" {
  description = "Pods that compute gradients; cpu, memory, gpus and bandwidth_mbps are of each. Their number can change while the run lives; with fewer than min_replicas it waits."
  type = object({
    replicas               = optional(number, 2)
    min_replicas           = optional(number, 1)
    high_priority_replicas = optional(number)
    priority               = optional(string)
    cpu                    = optional(string)
    memory                 = optional(string)
    shared_memory          = optional(string)
    ephemeral_storage      = optional(string)
    threads                = optional(number)
    gpus                   = optional(number)
    gpu_resource           = optional(string)
    bandwidth_mbps         = optional(number)
    node_selector          = optional(map(string))
    spread_over            = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.worker.min_replicas >= 1 && var.worker.replicas >= var.worker.min_replicas
    error_message = "Training needs at least one worker, and no more of them at least than there are: 1 <= worker.min_replicas <= worker.replicas."
  }

  validation {
    condition     = coalesce(var.worker.high_priority_replicas, 0) >= 0 && coalesce(var.worker.high_priority_replicas, 0) <= var.worker.replicas
    error_message = "worker.high_priority_replicas says how many of worker.replicas have the higher priority."
  }
}

variable "volumes" {
  description = "Volumes that all pods mount, as train_experiment has them."
  type        = any
  default     = null
}

variable "evaluate_every" {
  description = "Updates between two evaluations on held-out records; 0 is only at the end."
  type        = number
  default     = 0
}

variable "checkpoint_every" {
  description = "Updates between two checkpoints; 0 keeps those of every five minutes, and the final model."
  type        = number
  default     = 500
}

variable "checkpoints" {
  description = "Where checkpoints lie: gs://BUCKET/PREFIX, s3://BUCKET/PREFIX, or a folder on one of the volumes that every node can write to. Default: with the coordinator."
  type        = string
  default     = null
}

variable "deadline" {
  description = "How long the run may take, such as \"2h\"."
  type        = string
  default     = null
}

variable "wait" {
  description = "Whether apply waits for the run to end."
  type        = bool
  default     = true
}

variable "minimum_accuracy" {
  description = "A run that ends below it is an error."
  type        = number
  default     = null
}
