# A GKE cluster to measure on: machines of one kind, a disk for data that outlives
# it all, and a way in for the addresses that may see a dashboard on the nodes.
#
#   module "benchmark" {
#     source  = "library//gke-benchmark"
#     name    = "mlbench"
#     nodes   = 3
#     machine = "n1-standard-2"
#     disk_gb = 10
#   }
#
# Resources of the providers kube and train take module.benchmark.access as cluster,
# and volumes of Kubernetes take module.benchmark.disk.

terraform {
  required_providers {
    gke = {
      source = "stokehq/gke"
    }
  }
}

resource "gke_cluster" "this" {
  name                = var.name
  location            = var.zone
  endpoint            = "dns"
  deletion_protection = var.protected
  labels              = var.labels
}

resource "gke_node_pool" "workers" {
  cluster         = gke_cluster.this.id
  name            = "workers"
  machine_type    = var.machine
  node_count      = var.nodes
  tags            = [var.name]
  resource_labels = var.labels

  dynamic "accelerator" {
    for_each = var.gpu == null ? [] : [var.gpu]
    content {
      type  = accelerator.value.type
      count = accelerator.value.count
    }
  }
}

resource "gke_disk" "data" {
  count                   = var.disk_gb == null ? 0 : 1
  name                    = "${var.name}-data"
  location                = gke_cluster.this.location
  type                    = var.disk_type
  size_gb                 = var.disk_gb
  snapshot_before_destroy = var.keep_data
  labels                  = var.labels
}

resource "gke_firewall_rule" "dashboard" {
  count         = length(var.dashboard_from) == 0 ? 0 : 1
  name          = "${var.name}-dashboard"
  description   = "Services of the type NodePort on the nodes of ${var.name}."
  source_ranges = var.dashboard_from
  target_tags   = [var.name]

  allow {
    protocol = "tcp"
    ports    = var.dashboard_ports
  }
}
