// Package kubernetes runs experiments on a Kubernetes cluster: a run becomes
// native objects, and what restarts, replaces and preempts its pods is
// Kubernetes itself. Nothing of stoke has to stay for a run to reach its end.
//
// A run is a ConfigMap, which owns all else but claims: the Secret with what its
// roles know each other by, a headless Service, a NetworkPolicy, and a Job for
// each role. The coordinator's Job is made last: where it is, the run was let
// go. How the run stands says its coordinator, through a connection that the API
// server forwards; once it has ended, the termination message of its pod, and
// what was collected of it on this machine.
//
// It plans nothing and knows no configuration: what pods get is a
// launch.Placement.
//
// Entry point: New.
package kubernetes
