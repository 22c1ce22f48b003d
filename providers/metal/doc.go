// Package metal is the provider for machines that are reached over SSH: what
// they are before Kubernetes. metal_host is one machine and its operating
// system, metal_firewall its packet filter, metal_gpu_driver its NVIDIA stack.
//
// The resources translate between configurations and the packages below, which
// know how one kind of thing is observed, compared, put right and undone:
// facts, packages, system, containerd, firewall, nvidia, drain. All of them
// work on a host.Machine.
//
// Entry is the way in.
package metal
