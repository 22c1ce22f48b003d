variable "name" {
  description = "Name of the cluster. The disk is called NAME-data, the firewall rule NAME-dashboard."
  type        = string
}

variable "zone" {
  description = "Zone of it all. Default: that of the provider."
  type        = string
  default     = null
}

variable "nodes" {
  description = "How many machines there are. A change adds or takes away some."
  type        = number
  default     = 3
}

variable "machine" {
  description = "Machine type of the nodes, such as n2-standard-4."
  type        = string
}

variable "gpu" {
  description = "GPUs of each machine, such as { type = \"nvidia-l4\", count = 1 }. Default: none."
  type        = object({ type = string, count = number })
  default     = null
}

variable "disk_gb" {
  description = "Size of the disk for data, in GiB; it grows in place. Default: no disk."
  type        = number
  default     = null
}

variable "disk_type" {
  description = "Type of the disk for data."
  type        = string
  default     = "pd-balanced"
}

variable "keep_data" {
  description = "Whether a snapshot of the disk is taken before it is destroyed. It stays, and bills."
  type        = bool
  default     = true
}

variable "dashboard_from" {
  description = "Ranges of addresses that may reach dashboard_ports of the nodes, such as 203.0.113.0/24. Default: nobody."
  type        = set(string)
  default     = []
}

variable "dashboard_ports" {
  description = "Ports of the nodes that dashboard_from may reach. Default: those that Kubernetes gives to services of the type NodePort."
  type        = list(string)
  default     = ["30000-32767"]
}

variable "protected" {
  description = "Whether destroying the cluster is refused."
  type        = bool
  default     = false
}

variable "labels" {
  description = "Labels of everything in Google Cloud."
  type        = map(string)
  default     = {}
}
