output "access" {
  description = "Connection for the argument cluster of kube and train, known once there are nodes."
  value       = gke_cluster.this.access
  depends_on  = [gke_node_pool.workers]
}

output "kubeconfig" {
  description = "A kubeconfig for kubectl."
  value       = gke_cluster.this.kubeconfig
}

output "capacity" {
  description = "What the nodes have for pods."
  value       = gke_node_pool.workers.capacity
}

output "disk" {
  description = "Id of the disk for data, which volumes of Kubernetes take; null without one."
  value       = one(gke_disk.data[*].id)
}
