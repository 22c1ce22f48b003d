# Shares a disk that one node can write to with many pods: an NFS server in the
# cluster has the disk, and claims of its share are everybody's. The server is
# one pod: while it moves to another node, whoever reads or writes waits.
#
#   module "data" {
#     source    = "library//nfs-share"
#     name      = "data"
#     namespace = "training"
#     size      = "200Gi"
#     gce_disk  = "projects/lab/zones/europe-west4-a/disks/data"   # or storage_class
#   }
#
# Pods in the namespace use the claim module.data.claim.

terraform {
  required_providers {
    kube = {
      source = "stokehq/kube"
    }
  }
}

resource "kube_volume_claim" "disk" {
  cluster       = var.cluster
  name          = "${var.name}-disk"
  namespace     = var.namespace
  size          = var.size
  storage_class = var.storage_class
  volume        = var.gce_disk == null ? null : { gce_disk = { disk = var.gce_disk } }
}

resource "kube_manifest" "service" {
  cluster   = var.cluster
  namespace = var.namespace
  yaml      = templatefile("${path.module}/service.yaml", { name = "${var.name}-nfs" })
}

resource "kube_manifest" "server" {
  cluster   = var.cluster
  namespace = var.namespace

  yaml = templatefile("${path.module}/server.yaml", {
    claim = kube_volume_claim.disk.name
    image = var.image
    name  = "${var.name}-nfs"
  })
}

# Nodes mount the share, and they do not ask the cluster's DNS: they need the
# address that the service has got.
data "kube_object" "service" {
  cluster     = var.cluster
  api_version = "v1"
  kind        = "Service"
  name        = "${var.name}-nfs"
  namespace   = var.namespace
  depends_on  = [kube_manifest.service]
}

resource "kube_volume_claim" "share" {
  cluster   = var.cluster
  name      = var.name
  namespace = var.namespace
  size      = var.size

  volume = {
    nfs = {
      server = data.kube_object.service.object.spec.clusterIP
      path   = "/"
    }
  }

  # The address stays for as long as the service does; while that is repaired it
  # is not known, and that is no reason to make the claim anew.
  lifecycle {
    ignore_changes = [volume]
  }

  depends_on = [kube_manifest.server]
}
