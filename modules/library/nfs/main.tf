# A storage class whose volumes are folders on an NFS server, which many pods on
# many nodes can write to. The server's export has to let the nodes in.
#
#   module "shared" {
#     source = "library//nfs"
#     server = "10.0.0.5"
#     share  = "/exports/training"
#   }

terraform {
  required_providers {
    kube = {
      source = "stokehq/kube"
    }
  }
}

resource "kube_manifest" "this" {
  cluster   = var.cluster
  namespace = var.namespace

  yaml = templatefile("${path.module}/manifest.yaml", {
    class     = var.class
    default   = var.default
    images    = var.images
    namespace = var.namespace
    options   = jsonencode(var.mount_options)
    retain    = var.retain
    server    = var.server
    share     = var.share
  })
}
