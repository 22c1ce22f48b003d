output "access" {
  description = "Connection for the argument cluster of kube and train, known once the nodes are ready."
  value       = metal_cluster.this.access
  depends_on  = [metal_node.this]
}

output "join" {
  description = "What further nodes join by: the argument cluster of metal_node."
  value       = metal_cluster.this.join
}

output "hosts" {
  description = "Ways to the machines, by name, as the argument host takes them."
  value       = { for name, host in metal_host.this : name => host.ssh }
}

output "capacity" {
  description = "What pods may have of each node."
  value       = { for name, node in metal_node.this : name => node.capacity }
}
