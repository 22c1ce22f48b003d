# Machines become a Kubernetes cluster for GPUs: one is the control plane, the others
# are workers, those with GPUs have NVIDIA's driver. The provider metal says how SSH
# logs in.
#
#   module "lab" {
#     source = "library//metal-gpu-cluster"
#     name   = "lab"
#     machines = {
#       head = { address = "192.0.2.10", host_key = "ssh-ed25519 AAAA…", role = "control-plane" }
#       gpu1 = { address = "192.0.2.11", host_key = "ssh-ed25519 AAAA…", gpu = true }
#     }
#   }
#
# Resources of the providers kube and train take module.lab.access as cluster.

terraform {
  required_providers {
    metal = {
      source = "stokehq/metal"
    }
  }
}

locals {
  head = one([for name, m in var.machines : name if m.role == "control-plane"])
  # The control plane's own machine is a node of its cluster anyway.
  nodes = { for name, m in var.machines : name => m if m.role == "worker" || m.gpu }
}

resource "metal_host" "this" {
  for_each           = var.machines
  address            = each.value.address
  host_key           = each.value.host_key
  credential         = each.value.credential
  cluster            = var.name
  role               = each.value.role
  hostname           = each.key
  swap               = "off"
  kernel_modules     = ["overlay", "br_netfilter"]
  sysctl             = { "net.ipv4.ip_forward" = "1", "net.bridge.bridge-nf-call-iptables" = "1" }
  containerd_package = { version = var.containerd, source = var.containerd_source }
  containerd         = {}

  dynamic "bastion" {
    for_each = each.value.bastion[*]
    content {
      address  = bastion.value.address
      host_key = bastion.value.host_key
    }
  }
}

resource "metal_firewall" "this" {
  for_each    = metal_host.this
  host        = each.value.ssh
  role        = each.value.role
  peers       = values(metal_host.this)[*].node_address
  pod_network = [var.pod_network]
  cni         = "flannel"
  ssh_from    = var.ssh_from
  api_clients = each.key == local.head ? var.api_clients : null
}

resource "metal_gpu_driver" "this" {
  for_each = { for name, m in var.machines : name => m if m.gpu }
  host     = metal_host.this[each.key].ssh
  branch   = var.driver
  reboot   = var.reboot
}

resource "metal_cluster" "this" {
  control_plane       = [metal_host.this[local.head].ssh]
  version             = var.kubernetes
  endpoint            = var.endpoint
  pod_network         = [var.pod_network]
  schedulable         = length(local.nodes) == 0 || alltrue([for name in keys(local.nodes) : name == local.head])
  max_unavailable     = var.max_unavailable
  deletion_protection = var.protected
  depends_on          = [metal_firewall.this, metal_gpu_driver.this]
}

resource "metal_node" "this" {
  for_each        = local.nodes
  host            = metal_host.this[each.key].ssh
  cluster         = metal_cluster.this.join
  private_address = metal_host.this[each.key].node_address
  gpus            = each.value.gpu ? metal_gpu_driver.this[each.key].gpu_count : null
  labels          = each.value.labels
}
