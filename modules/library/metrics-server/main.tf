# What pods and nodes use of CPU and memory, for kubectl top and for autoscalers.
#
#   module "metrics" {
#     source               = "library//metrics-server"
#     kubelet_insecure_tls = true   # where kubelets sign their own certificates, as kubeadm leaves it
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
  namespace = "kube-system"

  yaml = templatefile("${path.module}/manifest.yaml", {
    image    = var.image
    insecure = var.kubelet_insecure_tls
  })
}
