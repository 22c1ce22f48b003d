output "resource" {
  description = "What pods ask for, in their limits."
  value       = "nvidia.com/gpu"
}

output "runtime_class" {
  description = "RuntimeClass for pods with GPUs; null where they need none."
  value       = var.runtime_class
}
