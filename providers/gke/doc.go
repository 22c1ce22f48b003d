// Package gke is the provider for Google Cloud: GKE clusters and node pools,
// persistent disks and their snapshots, firewall rules. It speaks to the services
// through providers/gke/cloud, and gives clusters out as connections that the
// providers kube and train take. Entry puts it into stoke's catalogue.
package gke
