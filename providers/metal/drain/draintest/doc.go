// Package draintest is a double of a Kubernetes API server as a node sees it,
// for tests: it authenticates client certificates, and refuses what the Node
// authorizer, the admission plugin NodeRestriction, PodDisruptionBudgets and
// optimistic locking refuse, with the answers that Kubernetes 1.36 gives.
//
// Its kubelets and controllers are the test: pods that were evicted leave after
// as many looks as the test says, leases are renewed unless a kubelet is dead.
//
// Administrators, and operators once a ClusterRoleBinding is there for them, see the
// objects of a whole cluster: applies are server-side, workloads are ready at once,
// and requests for certificates are signed as they are approved. Fault refuses any
// request.
package draintest
