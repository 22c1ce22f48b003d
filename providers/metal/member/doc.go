// Package member is a node of a Kubernetes cluster as the cluster's API has it:
// its labels, taints and GPUs, whether it is ready, what is bound to it, and its
// end. Package kubeadm changes machines, and package drain moves pods.
//
//	have, err := member.Observe(ctx, client, "gpu-1") // nil where there is no such node
//	for _, d := range member.Diff(want, have) { … }
//	err = member.Apply(ctx, client, want)
//	have, err = member.Await(ctx, client, want, 10*time.Minute)
//	volumes, err := member.Pinned(ctx, client, "gpu-1")
//	err = member.Delete(ctx, client, have)
//
// What Apply has set is noted in an annotation of the node (Annotation), so that
// what is not declared any more is taken back, and nothing else is.
package member
