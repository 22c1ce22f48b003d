variable "namespace" {
  description = "Namespace of the DaemonSet. It has to allow host paths."
  type        = string
  default     = "kube-system"
}

variable "image" {
  description = "Image of the device plugin."
  type        = string
  default     = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
}

variable "mig_strategy" {
  description = "How GPUs that are parted by MIG show: none, single or mixed."
  type        = string
  default     = "none"

  validation {
    condition     = contains(["none", "single", "mixed"], var.mig_strategy)
    error_message = "Give none, single or mixed."
  }
}

variable "node_selector" {
  description = "Labels of the nodes it runs on. Default: all; without a GPU it idles."
  type        = map(string)
  default     = {}
}

variable "runtime_class" {
  description = "Handler of containerd's NVIDIA runtime where that is not the default one: a RuntimeClass of this name is made, and pods with GPUs have to name it too."
  type        = string
  default     = null
}

variable "cluster" {
  description = "Connection to the cluster, such as the access of a cluster in this configuration. Default: the one of the provider block."
  type        = any
  default     = null
}
