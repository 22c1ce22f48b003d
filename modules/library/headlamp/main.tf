# Headlamp, a web interface for the cluster. It has no rights of its own: people
# log in with a token of theirs (kubectl create token), and see what they may.
#
#   module "dashboard" {
#     source = "library//headlamp"
#   }
#
#   kubectl -n headlamp port-forward service/headlamp 8080:80

terraform {
  required_providers {
    kube = {
      source = "stokehq/kube"
    }
  }
}

resource "kube_manifest" "this" {
  cluster    = var.cluster
  namespace  = var.namespace
  prune_data = true # the namespace holds nothing else

  yaml = templatefile("${path.module}/manifest.yaml", {
    image     = var.image
    namespace = var.namespace
    replicas  = var.replicas
  })
}
