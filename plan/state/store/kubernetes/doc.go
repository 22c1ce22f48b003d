// Package kubernetes keeps states in a cluster, as Terraform's backend of that
// name does: a snapshot is a Secret, compressed, with more Secrets for a large
// one, and a lock is a Lease of coordination.k8s.io. Either tool reads what the
// other one has written and respects its locks.
//
// It is an object.Bucket: journals are Secrets of their own, which Terraform
// does not look for, and locks are renewed. Kind is its entry point.
package kubernetes
