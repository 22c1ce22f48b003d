output "status" {
  description = "pending, running, succeeded, failed, stopped or lost."
  value       = train_experiment.this.status
}

output "metrics" {
  description = "What was measured last, by name."
  value       = train_experiment.this.metrics
}

output "dataset" {
  description = "Where the prepared dataset is, for further runs."
  value       = train_dataset.this.uri
}

output "run_dir" {
  description = "Folder of the run, with its logs, checkpoints and model."
  value       = train_experiment.this.run_dir
}

output "logs_dir" {
  value = train_experiment.this.logs_dir
}

output "metrics_file" {
  value = train_experiment.this.metrics_file
}
