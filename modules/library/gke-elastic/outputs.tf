output "access" {
  description = "Connection for the argument cluster of kube and train, known once there are nodes."
  value       = gke_cluster.this.access
  depends_on  = [gke_node_pool.steady, gke_node_pool.workers]
}

output "kubeconfig" {
  description = "A kubeconfig for kubectl."
  value       = gke_cluster.this.kubeconfig
}

output "share" {
  description = "Where the share is mounted from, as volume.nfs of kube_volume_claim takes it."
  value       = { server = gke_filestore.share.ip_addresses[0], path = "/${gke_filestore.share.share}" }
}
