variable "class" {
  description = "Name of the storage class."
  type        = string
  default     = "local-path"
}

variable "default" {
  description = "Whether claims that name no class have it."
  type        = bool
  default     = false
}

variable "path" {
  description = "Folder on the nodes that volumes are made in."
  type        = string
  default     = "/opt/local-path-provisioner"

  validation {
    condition     = startswith(var.path, "/") && var.path != "/"
    error_message = "Give an absolute path below /."
  }
}

variable "namespace" {
  description = "Namespace of the provisioner. It has to allow host paths."
  type        = string
  default     = "kube-system"
}

variable "image" {
  description = "Image of the provisioner."
  type        = string
  default     = "docker.io/rancher/local-path-provisioner:v0.0.33"
}

variable "helper_image" {
  description = "Image with a shell, in which folders are made and removed."
  type        = string
  default     = "docker.io/library/busybox:1.37.0"
}

variable "cluster" {
  description = "Connection to the cluster, such as the access of a cluster in this configuration. Default: the one of the provider block."
  type        = any
  default     = null
}
