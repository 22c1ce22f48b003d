# Lets pods ask for NVIDIA GPUs: a pod per node that tells the kubelet what GPUs
# there are. The driver and the container runtime's part are the machine's
# (metal_gpu_driver, or a cloud's image).
#
#   module "gpus" {
#     source        = "library//nvidia-device-plugin"
#     runtime_class = "nvidia"   # where containerd has it and it is not the default
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
    image         = var.image
    mig_strategy  = var.mig_strategy
    node_selector = jsonencode(var.node_selector)
    runtime_class = var.runtime_class
  })
}
