# Bare-metal machines become a Kubernetes cluster whose pods get GPUs.

terraform {
  required_providers {
    metal = {
      source = "stokehq/metal"
    }
  }
}

provider "metal" {
  ssh {
    user             = "ops"
    private_key_file = var.private_key_file
  }
}

module "lab" {
  source            = "library//metal-gpu-cluster"
  name              = "lab"
  machines          = var.machines
  kubernetes        = "1.36"
  driver            = "580"
  reboot            = "if-needed" # where nouveau has the GPUs, say
  containerd_source = var.containerd_source
}

output "access" {
  description = "Connection for the argument cluster of kube and train."
  value       = module.lab.access
}

variable "machines" {
  description = "Machines by host name; one has the role control-plane, and gpu says that there are NVIDIA GPUs."
  type = map(object({
    address  = string
    host_key = string
    role     = optional(string, "worker")
    gpu      = optional(bool, false)
  }))
}

variable "private_key_file" {
  description = "The private SSH key of the user ops on the machines."
  type        = string
  default     = "~/.ssh/id_ed25519"
}

variable "containerd_source" {
  description = "Whose package of containerd: docker or distribution."
  type        = string
  default     = "docker"
}
