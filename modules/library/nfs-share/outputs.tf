output "claim" {
  description = "Name of the claim that pods use."
  value       = kube_volume_claim.share.name
}

output "server" {
  description = "Address of the NFS server within the cluster."
  value       = data.kube_object.service.object.spec.clusterIP
}
