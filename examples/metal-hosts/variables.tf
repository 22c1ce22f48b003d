variable "machines" {
  description = "Machines by host name: where SSH goes, the public host key that it must show and who logs in."
  type = map(object({
    address    = string
    host_key   = string
    credential = optional(string)
  }))
}

variable "admin_password" {
  description = "The password of the user admin, for login and sudo."
  type        = string
  default     = null
  sensitive   = true
}

variable "private_key_file" {
  description = "The private SSH key of the user ops on the machines."
  type        = string
  default     = "~/.ssh/id_ed25519"
}

variable "containerd" {
  description = "containerd's version: \"2.2\" is the newest 2.2."
  type        = string
  default     = "2.2"
}

variable "containerd_source" {
  description = "Whose package of containerd: docker or distribution."
  type        = string
  default     = "docker"
}
