# A GKE cluster for elastic training: a few machines that stay, for coordinators and
# parameter servers, spot machines that come and go with the workers, and a Filestore
# share that all of them read and write.
#
#   module "elastic" {
#     source   = "library//gke-elastic"
#     name     = "elastic"
#     workers  = { machine = "n2-standard-4", max = 4 }
#     share_gb = 1024
#   }
#
# Resources of the providers kube and train take module.elastic.access as cluster,
# and kube_volume_claim takes { nfs = module.elastic.share } as volume.

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

resource "gke_node_pool" "steady" {
  cluster         = gke_cluster.this.id
  name            = "steady"
  machine_type    = var.steady.machine
  node_count      = var.steady.nodes
  resource_labels = var.labels
}

resource "gke_node_pool" "workers" {
  cluster         = gke_cluster.this.id
  name            = "workers"
  machine_type    = var.workers.machine
  spot            = var.workers.spot
  resource_labels = var.labels

  autoscaling {
    min             = var.workers.min
    max             = var.workers.max
    location_policy = "ANY"
  }

  dynamic "accelerator" {
    for_each = var.workers.gpu == null ? [] : [var.workers.gpu]
    content {
      type  = accelerator.value.type
      count = accelerator.value.count
    }
  }

  dynamic "fallback" { # where the zone has no spot machines left; without nodes the create would not tell
    for_each = var.workers.spot && var.workers.min > 0 ? [false] : []
    content {
      spot = fallback.value
    }
  }
}

resource "gke_filestore" "share" {
  name        = "${var.name}-share"
  location    = gke_cluster.this.location
  tier        = var.tier
  share       = "data"
  capacity_gb = var.share_gb
  labels      = var.labels

  deletion_protection = var.protected
}
