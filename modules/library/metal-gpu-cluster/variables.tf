variable "name" {
  description = "Name of the cluster: what its machines are counted by."
  type        = string
}

variable "machines" {
  description = "Machines by host name: where SSH goes, the host key that it must show, who logs in, on which way; role is worker or control-plane, which one has, and gpu says that there are NVIDIA GPUs."
  type = map(object({
    address    = string
    host_key   = string
    credential = optional(string)
    bastion    = optional(object({ address = string, host_key = string }))
    role       = optional(string, "worker")
    gpu        = optional(bool, false)
    labels     = optional(map(string), {})
  }))

  validation {
    condition     = length([for m in var.machines : m if m.role == "control-plane"]) == 1
    error_message = "One machine has role = \"control-plane\": several are to come."
  }

  validation {
    condition     = alltrue([for m in var.machines : contains(["worker", "control-plane"], m.role)])
    error_message = "A machine is a worker or the control-plane."
  }
}

variable "kubernetes" {
  description = "Version of Kubernetes: a minor, whose newest release is taken, or a release."
  type        = string
  default     = "1.36"
}

variable "driver" {
  description = "Branch of NVIDIA's driver."
  type        = string
  default     = "580"
}

variable "reboot" {
  description = "Whether machines may be rebooted where the driver needs it: never or if-needed."
  type        = string
  default     = "never"
}

variable "containerd" {
  description = "Version of containerd: \"2.2\" is the newest 2.2."
  type        = string
  default     = "2.2"
}

variable "containerd_source" {
  description = "Whose package of containerd: docker or distribution."
  type        = string
  default     = "docker"
}

variable "endpoint" {
  description = "Where nodes and users reach the API server, as HOST:PORT. Default: the control plane's address."
  type        = string
  default     = null
}

variable "pod_network" {
  description = "Network of the pods."
  type        = string
  default     = "10.244.0.0/16"
}

variable "ssh_from" {
  description = "Who may log in: addresses and ranges. Default: everybody."
  type        = list(string)
  default     = null
}

variable "api_clients" {
  description = "Who uses the API server beside nodes and pods: addresses and ranges. Stoke needs none, it goes by SSH."
  type        = list(string)
  default     = null
}

variable "max_unavailable" {
  description = "How many nodes may be unavailable at once. Default: as many as each machine says, one."
  type        = number
  default     = null
}

variable "protected" {
  description = "Whether destroying the cluster is refused."
  type        = bool
  default     = true
}
