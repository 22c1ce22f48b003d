# A storage class whose volumes are folders on the nodes' own disks: fast, gone
# with the node, and only for pods on it.
#
#   module "disks" {
#     source  = "library//local-path"
#     path    = "/data/volumes"
#     default = true
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
    helper    = var.helper_image
    image     = var.image
    namespace = var.namespace
    config    = jsonencode({ nodePathMap = [{ node = "DEFAULT_PATH_FOR_NON_LISTED_NODES", paths = [var.path] }] })
  })
}
