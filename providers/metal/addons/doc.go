// Package addons is what a cluster made by kubeadm has inside besides what kubeadm
// puts there: the network of pods (flannel, or the user's manifest), NVIDIA's
// device plugin with its RuntimeClass. It also tells whether the system's pods are
// ready and names are resolved.
//
// A Spec is plain data, and Objects renders it. Diff says what of it a cluster
// lacks, Apply brings it about, and Await waits until the system's pods run:
//
//	objects, err := spec.Objects()
//	err = addons.Apply(ctx, cluster, objects, before)
//	err = addons.Await(ctx, cluster, spec.System(), report)
//
// Whoever calls brings the connection. Nothing is done on machines here: that is
// package kubeadm's.
package addons
