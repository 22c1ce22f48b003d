output "service" {
  description = "Where it is, within the cluster."
  value       = "http://headlamp.${var.namespace}.svc"
}
