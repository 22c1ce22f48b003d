// Package containerd is a machine's container runtime: its configuration, the
// mirrors it pulls from, the proxy it uses, its service, and images that are
// brought to it.
//
// /etc/containerd/config.toml is this package's alone; whoever has something to
// add, such as the NVIDIA runtime, writes a file into /etc/containerd/conf.d,
// which it imports. It installs nothing: packages come first.
package containerd
