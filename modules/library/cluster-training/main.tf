# A dataset, an image with it and the trainer, and one training run in pods of a
# cluster, in a namespace of its own.
#
#   module "digits" {
#     source    = "library//cluster-training"
#     cluster   = { credential = { kubeconfig = { path = "~/.kube/config" } } }
#     namespace = "training"
#     format    = "synthetic-digits"
#     model     = "mlp"
#     push      = "registry.example.com/lab/trainer:1"
#   }

terraform {
  required_providers {
    kube = {
      source = "stokehq/kube"
    }
    train = {
      source = "stokehq/train"
    }
  }
}

resource "kube_namespace" "this" {
  count   = var.create_namespace ? 1 : 0
  cluster = var.cluster
  name    = var.namespace
  labels  = { "pod-security.kubernetes.io/enforce" = "restricted" }
}

resource "train_dataset" "this" {
  name   = var.name
  format = var.format
  path   = var.path
  train  = var.train_records
  test   = var.test_records
}

locals {
  # Pods do not see this machine's folders: the dataset is in the image. It is
  # there to be read once the dataset has been made, that is, has an id.
  dataset = train_dataset.this.id == "" ? "" : "${train_dataset.this.datasets_dir}/${basename(train_dataset.this.uri)}"
}

resource "train_image" "this" {
  files             = { for name in ["manifest.json", "train.rio", "test.rio"] : "/data/${name}" => "${local.dataset}/${name}" }
  base              = var.base
  trainer           = var.trainer
  gpu               = coalesce(var.worker.gpus, 0) > 0 ? true : null
  gpu_trainer       = var.gpu_trainer
  gpu_files         = var.gpu_files
  platform          = var.platform
  push              = var.push
  tarball           = var.tarball
  delete_on_destroy = var.delete_image
}

resource "train_experiment" "this" {
  name               = var.name
  cluster            = var.cluster
  namespace          = var.create_namespace ? kube_namespace.this[0].name : var.namespace
  image              = train_image.this.reference
  image_pull_secrets = var.image_pull_secrets
  model              = var.model
  strategy           = var.strategy
  dataset            = train_dataset.this.uri
  dataset_path       = "/data"
  hyperparameters    = var.hyperparameters
  compute_type       = var.compute_type
  volumes            = var.volumes
  deadline           = var.deadline
  wait               = var.wait

  coordinator {
    cpu               = var.coordinator.cpu
    memory            = var.coordinator.memory
    ephemeral_storage = var.coordinator.ephemeral_storage
    bandwidth_mbps    = var.coordinator.bandwidth_mbps
    node_selector     = var.coordinator.node_selector
    spread_over       = var.coordinator.spread_over
    storage           = var.coordinator.storage
    storage_class     = var.coordinator.storage_class
  }

  dynamic "parameter_server" {
    for_each = var.strategy == "all_reduce" ? [] : [1]
    content {
      replicas          = var.parameter_server.replicas
      cpu               = var.parameter_server.cpu
      memory            = var.parameter_server.memory
      ephemeral_storage = var.parameter_server.ephemeral_storage
      bandwidth_mbps    = var.parameter_server.bandwidth_mbps
      node_selector     = var.parameter_server.node_selector
      spread_over       = var.parameter_server.spread_over
    }
  }

  worker {
    replicas               = var.worker.replicas
    min_replicas           = var.worker.min_replicas
    high_priority_replicas = var.worker.high_priority_replicas
    priority               = var.worker.priority
    cpu                    = var.worker.cpu
    memory                 = var.worker.memory
    shared_memory          = var.worker.shared_memory
    ephemeral_storage      = var.worker.ephemeral_storage
    threads                = var.worker.threads
    gpus                   = var.worker.gpus
    gpu_resource           = var.worker.gpu_resource
    bandwidth_mbps         = var.worker.bandwidth_mbps
    node_selector          = var.worker.node_selector
    spread_over            = var.worker.spread_over
  }

  evaluation {
    every_steps = var.evaluate_every
  }

  checkpoint {
    every_steps = var.checkpoint_every
    place       = var.checkpoints
  }

  lifecycle {
    postcondition {
      condition     = var.minimum_accuracy == null || self.status != "succeeded" || try(self.metrics["accuracy"] >= var.minimum_accuracy, false)
      error_message = "The run ended below the accuracy that minimum_accuracy asks for."
    }
  }
}
