// Package packages manages the package tool of one machine: repositories with
// pinned keys, packages with their versions and holds, and absent packages. The
// tool is apt, of Ubuntu 22.04 and 24.04, Debian 12 and 13; any other machine is
// an UnsupportedError.
//
// Observe looks at a machine in one round trip; Diff compares; Foresee lets apt
// simulate, and rejects undeclared changes; Apply brings it about, in one
// transaction that outlives a broken connection, after it has written down what
// it replaces; Restore takes back what Apply brought, and returns the
// leftovers.
//
// A Spec belongs to one owner on a machine (its Owner), which has files of its
// own: two resources have two Specs with two Records. Merge makes one Spec of
// what several reasons of one owner want.
//
// # What a package interrupts
//
// A package whose maintainer scripts enable or restart units reloads systemd,
// which may take the GPUs from running containers. Whether one does is known
// from (1) the table in disruption.go, (2) the maintainer scripts of the version
// that is installed, (3) the downloaded archive, where apt's cache has it. A new
// package that none of them knows counts as harmless in a plan; Apply downloads
// everything before it installs anything, looks into the archives, and refuses
// what interrupts more than Spec.Limit. The archives stay in apt's cache then,
// so that the next plan knows.
package packages
