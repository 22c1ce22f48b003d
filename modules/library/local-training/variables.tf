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

variable "gpus" {
  description = "GPUs of each worker: 0 or 1. Default: 0."
  type        = number
  default     = null
}

variable "compute_type" {
  description = "Type of products and convolutions: f32, tf32 or bf16. Default: tf32 on GPUs, else f32."
  type        = string
  default     = null
}

variable "workers" {
  description = "Processes that compute gradients. Can change while the run lives."
  type        = number
  default     = 2

  validation {
    condition     = var.workers >= 1
    error_message = "Training needs at least one worker."
  }
}

variable "parameter_servers" {
  description = "Processes that hold the parameters."
  type        = number
  default     = 1
}

variable "threads" {
  description = "Threads of each worker; 0 divides the cores among them."
  type        = number
  default     = 0
}

variable "evaluate_every" {
  description = "Updates between two evaluations on held-out records; 0 is only at the end."
  type        = number
  default     = 0
}

variable "checkpoint_every" {
  description = "Updates between two checkpoints; 0 keeps only the final model."
  type        = number
  default     = 500
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
