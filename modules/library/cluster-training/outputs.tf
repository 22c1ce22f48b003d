output "status" {
  description = "pending, running, succeeded, failed, stopped or lost."
  value       = train_experiment.this.status
}

output "accuracy" {
  description = "On the held-out records, as measured last; null before that."
  value       = try(train_experiment.this.metrics["accuracy"], null)
}

output "metrics" {
  description = "What was measured last, by name."
  value       = train_experiment.this.metrics
}

output "image" {
  description = "The image of the pods, by its digest."
  value       = train_image.this.reference
}

output "namespace" {
  description = "Where the run's objects are."
  value       = train_experiment.this.namespace
}

output "pods" {
  description = "Command that lists the run's objects."
  value       = "kubectl -n ${var.namespace} get all -l stoke.dev/run=${train_experiment.this.id}"
}

output "run_dir" {
  description = "Folder on this machine with what was collected of the run when it ended: logs, metrics and model."
  value       = train_experiment.this.run_dir
}

output "logs_dir" {
  description = "The logs in it, one file for each process."
  value       = train_experiment.this.logs_dir
}

output "metrics_file" {
  description = "Every update and evaluation, one JSON object per line."
  value       = train_experiment.this.metrics_file
}
