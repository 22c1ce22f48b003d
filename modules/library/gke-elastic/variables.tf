variable "name" {
  description = "Name of the cluster. The Filestore instance is called NAME-share."
  type        = string
}

variable "zone" {
  description = "Zone of it all. Default: that of the provider."
  type        = string
  default     = null
}

variable "steady" {
  description = "Machines that stay: their type, and how many."
  type        = object({ machine = optional(string, "e2-standard-4"), nodes = optional(number, 1) })
  default     = {}
}

variable "workers" {
  description = "Machines of the workers: their type, how few and how many there may be, whether they are spot machines, and their GPUs. With min above 0, on-demand machines take the place of spot machines that the zone lacks."
  type = object({
    machine = string
    min     = optional(number, 0)
    max     = number
    spot    = optional(bool, true)
    gpu     = optional(object({ type = string, count = number }))
  })
}

variable "share_gb" {
  description = "Size of the share in GiB; it grows in place."
  type        = number
  default     = 1024
}

variable "tier" {
  description = "Tier of the share: BASIC_HDD, BASIC_SSD or ZONAL."
  type        = string
  default     = "BASIC_HDD"
}

variable "protected" {
  description = "Whether destroying the cluster and the share is refused."
  type        = bool
  default     = false
}

variable "labels" {
  description = "Labels of everything in Google Cloud."
  type        = map(string)
  default     = {}
}
