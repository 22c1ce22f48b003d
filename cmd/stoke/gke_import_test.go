package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/gke/cloud"
)

// TestGoogleImport: the plan after an import of a cluster, of its pools and of the other kinds of objects is empty: by the command, by
// import blocks, and with the configuration that stoke writes.
func TestGoogleImport(t *testing.T) {
	t.Parallel()
	l := newGoogleLab(t, cloud.GRPC)
	const (
		head = "terraform {\n  required_providers { gke = { source = \"stokehq/gke\" } }\n}\n"
		body = `
resource "gke_cluster" "lab" {
  name                = "lab"
  endpoint            = "dns"
  deletion_protection = true
  timeouts {
    create = "2h"
  }
}
resource "gke_node_pool" "cpu" {
  cluster      = gke_cluster.lab.id
  name         = "cpu"
  machine_type = "n2-standard-4"
  image_type   = "cos_containerd"
  node_count   = 1
}
resource "gke_node_pool" "disks" {
  cluster            = gke_cluster.lab.id
  name               = "disks"
  machine_type       = "n2-standard-4"
  local_ssd_count    = 2
  initial_node_count = 1
  allow_data_loss    = true
  kubelet = {
    insecure_readonly_port = false
  }
  autoscaling {
    min             = 0
    max             = 3
    location_policy = "ANY"
  }
  timeouts {
    update = var.limit
  }
}
variable "limit" {
  default = "3h"
}
resource "gke_disk" "data" {
  name                    = "data"
  size_gb                 = 10
  snapshot_before_destroy = true
  timeouts {
    delete = "2h"
  }
}
resource "gke_disk_snapshot" "backup" {
  name = "backup"
  disk = gke_disk.data.id
  timeouts {
    delete = "2h"
  }
}
resource "gke_filestore" "share" {
  name            = "share"
  tier            = "BASIC_HDD"
  share           = "data"
  capacity_gb     = 1024
  allow_data_loss = true
  timeouts {
    delete = "2h"
  }
}
resource "gke_firewall_rule" "ssh" {
  name          = "ssh"
  source_ranges = ["10.0.0.0/8"]
  allow {
    protocol = "TCP"
    ports    = ["22"]
  }
  timeouts {
    delete = "2h"
  }
}
`
	)
	objects := [][2]string{{"gke_cluster.lab", "lab"}, {"gke_node_pool.cpu", "lab/cpu"}, {"gke_node_pool.disks", "lab/disks"}, {"gke_disk.data", "data"},
		{"gke_disk_snapshot.backup", "backup"}, {"gke_filestore.share", "share"}, {"gke_firewall_rule.ssh", "ssh"}}
	blocks := ""
	forget := []string{"state", "rm"}
	for _, o := range objects {
		blocks += "import {\n  to = " + o[0] + "\n  id = \"" + o[1] + "\"\n}\n"
		forget = append(forget, o[0])
	}
	l.write(head + body)
	l.stoke(0, "apply", "-auto-approve")

	l.stoke(0, forget...)
	for _, o := range objects {
		l.stoke(0, "import", o[0], o[1])
	}
	if out := l.stoke(0, "plan", "-no-color"); !strings.Contains(out, "No changes") {
		t.Errorf("after the command:\n%s", out)
	}

	const empty = "Plan: 7 to import, 0 to add, 0 to change, 0 to destroy"
	l.stoke(0, forget...)
	l.write(head + body + blocks)
	if out := l.stoke(0, "plan", "-no-color"); !strings.Contains(out, empty) {
		t.Errorf("with blocks:\n%s", out)
	}
	l.stoke(0, "apply", "-auto-approve")
	if out := l.stoke(0, "plan", "-no-color"); !strings.Contains(out, "No changes") {
		t.Errorf("after blocks:\n%s", out)
	}

	l.stoke(0, forget...)
	l.write(head + blocks)
	if out := l.stoke(0, "plan", "-no-color", "-generate-config-out=written.tf"); !strings.Contains(out, empty) {
		text, _ := os.ReadFile(filepath.Join(l.dir, "written.tf"))
		t.Errorf("with a written configuration:\n%s\n%s", out, text)
	}
	if out := l.stoke(0, "plan", "-no-color"); !strings.Contains(out, empty) {
		t.Errorf("with the written configuration again:\n%s", out)
	}
}
