variable "server" {
  description = "Address of the NFS server, as the nodes reach it: a host name or an IP address."
  type        = string
}

variable "share" {
  description = "Path that the server exports. Each volume is a folder in it."
  type        = string

  validation {
    condition     = startswith(var.share, "/")
    error_message = "Give an absolute path."
  }
}

variable "class" {
  description = "Name of the storage class."
  type        = string
  default     = "nfs"
}

variable "default" {
  description = "Whether claims that name no class have it."
  type        = bool
  default     = false
}

variable "retain" {
  description = "Whether a volume's folder stays when its claim is deleted."
  type        = bool
  default     = true
}

variable "mount_options" {
  description = "Options of the mounts on the nodes."
  type        = list(string)
  default     = ["nfsvers=4.1", "hard"]
}

variable "namespace" {
  description = "Namespace of the driver. It has to allow privileged pods."
  type        = string
  default     = "kube-system"
}

variable "images" {
  description = "Images of the driver and of what works beside it."
  type = object({
    driver      = optional(string, "registry.k8s.io/sig-storage/nfsplugin:v4.13.5")
    provisioner = optional(string, "registry.k8s.io/sig-storage/csi-provisioner:v6.3.0")
    registrar   = optional(string, "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.17.0")
  })
  default = {}
}

variable "cluster" {
  description = "Connection to the cluster, such as the access of a cluster in this configuration. Default: the one of the provider block."
  type        = any
  default     = null
}
