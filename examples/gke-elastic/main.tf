# ElasticDL's tutorial up to the cluster: a machine for coordinator and parameter
# servers, spot machines for workers, which come and go, and a share for the data.

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

provider "gke" {
  project = var.project
  zone    = "us-central1-c"
}

module "elastic" {
  source   = "library//gke-elastic"
  name     = "cluster-1"
  steady   = { machine = "e2-standard-8", nodes = 1 }
  workers  = { machine = "n2-standard-4", max = 4 }
  share_gb = 1024
}

output "access" {
  value = module.elastic.access
}

output "share" {
  value = module.elastic.share
}
