output "class" {
  description = "Name of the storage class, for claims."
  value       = var.class
  depends_on  = [kube_manifest.this]
}
