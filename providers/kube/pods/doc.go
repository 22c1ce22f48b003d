// Package pods is about the pods behind objects of a cluster: how they stand and
// what they wait for, what they say, commands that are run in them, and their
// ports on this machine.
//
// Set is the entry point. It finds pods by who owns them: those of a Deployment
// through its ReplicaSets, those of a CronJob through its Jobs. Labels only keep
// the lists short. It knows nothing of who declared the objects.
package pods
