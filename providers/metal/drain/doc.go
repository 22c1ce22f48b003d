// Package drain does what interrupts a machine that is a Kubernetes node
// without hurting what runs there: it looks who runs there (Look), says what a
// change needs (Needed), keeps the pods off while the work is done and lets
// them back (Do), one node after another (Roll).
//
// Looked at from its machine, it acts as the node itself, by the kubelet's client certificate. That
// is read over SSH into memory and is never kept, and the API server is dialled from the machine.
// The Node authorizer and the admission plugin NodeRestriction give a node these rights
// (plugin/pkg/auth/authorizer/node and plugin/pkg/admission/noderestriction in Kubernetes 1.36):
//
//   - read its own Node and change it, except taints and most labels: so it may
//     cordon itself (spec.unschedulable) and note so in an annotation;
//   - list the pods that are bound to it, by the field selector spec.nodeName;
//   - evict those pods, and no others;
//   - read its own Lease in kube-node-lease.
//
// It may not list other nodes (since 1.32), read DaemonSets or
// PodDisruptionBudgets, or read a pod that is gone: that is forbidden rather
// than not found. For these reasons kubectl's own package drain, which reads
// all three, does not work with this identity (also, it links 26 MB). The rules
// for evictions are those of kubectl drain.
//
// If the machine cannot be reached, because it is dead or has left, and there is
// a connection to its cluster, LookBy looks and acts as the connection's user
// instead. He needs get, list and patch of nodes, list of pods, create of
// pods/eviction, and get of leases in kube-node-lease; Policy.Force needs delete
// of pods. Everything else is the same: only who asks differs. On a node that is
// not Ready, no kubelet reports the end of a pod: evicted pods are named in an
// OverdueError, or deleted if the caller knows that the machine is off
// (Policy.Force).
//
// How many nodes of the cluster are unavailable is therefore counted over the
// machines that this process has looked at, unless the API server lets the node
// list them all, or a kubeconfig is given whose user may (Roll.CountBy).
package drain
