terraform {
  required_providers {
    metal = { source = "stokehq/metal" }
  }
}

provider "metal" {
  ssh {
    user             = "ops"
    private_key_file = var.private_key_file
    credentials      = { admin = { user = "admin", password = var.admin_password, sudo_password = var.admin_password } }

    bastion { # on the way to all others
      address  = var.machines["head"].address
      host_key = var.machines["head"].host_key
    }
  }
}

# Each machine ready for Kubernetes: by name, time, kernel and container runtime.
resource "metal_host" "node" {
  for_each           = var.machines
  address            = each.value.address
  host_key           = each.value.host_key
  credential         = each.value.credential # of the provider block; ops where there is none
  cluster            = "lab"
  role               = each.key == "head" ? "control-plane" : "worker"
  hostname           = each.key
  swap               = "off"
  kernel_modules     = ["overlay", "br_netfilter"]
  sysctl             = { "net.ipv4.ip_forward" = "1", "net.bridge.bridge-nf-call-iptables" = "1" }
  containerd_package = { version = var.containerd, source = var.containerd_source }
  containerd         = {}
}

# Open to each other as far as their roles need it, and to SSH.
resource "metal_firewall" "node" {
  for_each    = metal_host.node
  host        = each.value.ssh
  role        = each.value.role
  peers       = values(metal_host.node)[*].node_address
  pod_network = ["10.244.0.0/16"]
  cni         = "flannel"
}
