variable "name" {
  description = "Name of the claim that pods use. The disk's claim is called NAME-disk, the server NAME-nfs."
  type        = string
}

variable "namespace" {
  description = "Namespace of it all. It has to allow a privileged pod."
  type        = string
}

variable "size" {
  description = "How much the disk holds, such as 200Gi."
  type        = string
}

variable "gce_disk" {
  description = "Compute Engine disk to share: projects/PROJECT/zones/ZONE/disks/NAME. Default: storage_class makes one."
  type        = string
  default     = null
}

variable "storage_class" {
  description = "Class that makes the disk. Default: the cluster's default class."
  type        = string
  default     = null

  validation {
    condition     = var.storage_class == null || var.gce_disk == null
    error_message = "Give gce_disk or storage_class, not both."
  }
}

variable "image" {
  description = "Image of an NFS server that exports its folder /exports as /."
  type        = string
  default     = "registry.k8s.io/volume-nfs:0.8"
}

variable "cluster" {
  description = "Connection to the cluster, such as the access of a cluster in this configuration. Default: the one of the provider block."
  type        = any
  default     = null
}
