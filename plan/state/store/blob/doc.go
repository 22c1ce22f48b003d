// Package blob keeps states in buckets: Google Cloud Storage ("gcs") and
// Amazon S3 or what is compatible with it ("s3").
//
// Snapshots and locks have Terraform's names, so that a repository moves over
// and back; the journal's segments lie below a name of their own, which
// Terraform passes over. Every write is conditional: on generations there, on
// ETags here. A service that takes no conditions is refused when it says so.
//
// GCS and S3 are its entry points.
package blob
