package main

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// dynamicConfiguration is a pool whose blocks hang on a cluster that is not there yet.
const dynamicConfiguration = `
terraform {
  required_providers { gke = { source = "stokehq/gke" } }
}
resource "gke_cluster" "lab" {
  name           = "lab"
  node_locations = ["us-central1-a", "us-central1-c"]
}
locals {
  made = toset([gke_cluster.lab.master_version])
}
resource "gke_node_pool" "gpu" {
  cluster      = gke_cluster.lab.id
  name         = "gpu"
  machine_type = "g2-standard-8"
  zones        = ["us-central1-a"]
  dynamic "accelerator" {
    for_each = local.made
    content {
      type  = "nvidia-l4"
      count = 1
    }
  }
  dynamic "autoscaling" {
    for_each = local.made
    content {
      min = 1
      max = 2
    }
  }
  dynamic "fallback" {
    for_each = local.made
    content { flex_start = true }
  }
}
`

// TestGoogleDynamic: blocks of which a plan does not know yet how many there are can be
// planned, and are what they come to be.
func TestGoogleDynamic(t *testing.T) {
	t.Parallel()
	l := newGoogleLab(t, cloud.GRPC)
	l.write(dynamicConfiguration)
	if out := l.stoke(0, "plan"); !strings.Contains(out, "2 to add") {
		t.Errorf("planned is\n%s", out)
	}
	l.stoke(0, "apply", "-auto-approve")
	l.stoke(0, "plan", "-detailed-exitcode")
	for _, o := range l.google.Inventory() {
		if strings.HasSuffix(o.Path, "/nodePools/gpu") && o.Nodes == 1 {
			return
		}
	}
	t.Errorf("there is no pool of one node: %v", l.google.Paths())
}
