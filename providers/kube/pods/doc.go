// Package pods handles the pods behind objects of a cluster: their status and
// reasons to wait, their logs, commands in them, and their ports on this
// machine.
//
// Set is the entry point. It finds pods by their owners: the pods of a
// Deployment through its ReplicaSets, the pods of a CronJob through its Jobs.
// Labels only keep the lists short. It does not know who declared the objects.
package pods
