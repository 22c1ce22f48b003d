variable "image" {
  description = "Image of metrics-server."
  type        = string
  default     = "registry.k8s.io/metrics-server/metrics-server:v0.8.1"
}

variable "kubelet_insecure_tls" {
  description = "Whether certificates of kubelets are not checked. A cluster that does not sign them (kubeadm's default) needs it."
  type        = bool
  default     = false
}

variable "cluster" {
  description = "Connection to the cluster, such as the access of a cluster in this configuration. Default: the one of the provider block."
  type        = any
  default     = null
}
