// Package nvidia is the NVIDIA driver of one machine: which GPUs it has and
// what they need (Device), what is there now (Observe), what is wrong before
// anything is changed (Check), which packages the declared driver means on this
// operating system (Want), what differs (Diff), and the way there (Apply,
// Restore).
//
// It installs nothing itself: packages, repositories and holds are handed to
// whoever calls Apply (Hooks.Install), and so are draining the node and
// rebooting. A driver counts as installed when it answers itself: nvidia-smi
// lists every GPU that the PCI bus has, and kernel and library are of one
// version.
//
// Sources: NVIDIA's Driver Installation Guide (docs.nvidia.com/datacenter/tesla/driver-installation-guide),
// the data-center driver support matrix (docs.nvidia.com/datacenter/tesla/drivers),
// the Container Toolkit's install guide and its CDI page, packages.ubuntu.com and
// packages.debian.org, read in November 2026.
package nvidia
