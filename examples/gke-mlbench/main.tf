# MLBench's tutorial up to the cluster: three machines, a disk for the datasets, and
# a firewall rule for those who may look at the dashboard.

terraform {
  required_providers {
    gke = {
      source = "stokehq/gke"
    }
  }
}

variable "project" {
  description = "Id of the project on Google Cloud."
  type        = string
}

variable "office" {
  description = "Addresses that may look at the dashboard."
  type        = set(string)
  default     = ["203.0.113.0/24"]
}

provider "gke" {
  project = var.project
  zone    = "europe-west1-b"
}

module "benchmark" {
  source         = "library//gke-benchmark"
  name           = "mlbench"
  nodes          = 3
  machine        = "n1-standard-2"
  disk_gb        = 10
  disk_type      = "pd-standard"
  dashboard_from = var.office
}

output "access" {
  value = module.benchmark.access
}

output "disk" {
  value = module.benchmark.disk
}
