variable "namespace" {
  description = "Namespace that is made for it."
  type        = string
  default     = "headlamp"
}

variable "image" {
  description = "Image of Headlamp."
  type        = string
  default     = "ghcr.io/headlamp-k8s/headlamp:v0.43.0"
}

variable "replicas" {
  description = "How many pods serve it."
  type        = number
  default     = 1
}

variable "cluster" {
  description = "Connection to the cluster, such as the access of a cluster in this configuration. Default: the one of the provider block."
  type        = any
  default     = null
}
