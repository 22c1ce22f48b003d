// Package system is what a machine's operating system is set to: its name,
// swap, kernel modules, sysctl values, clock and single files.
//
// Spec is the declaration, Observe reads the declared facts in one round trip,
// Diff compares, Apply changes differing facts and Restore restores their
// former values. Each fact has two sides where it needs them: what holds now
// and what holds after the next boot. It installs nothing: packages come first.
package system
