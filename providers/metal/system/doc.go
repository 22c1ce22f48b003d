// Package system is what a machine's operating system is set to: its name,
// swap, kernel modules, sysctl values, clock and single files.
//
// Spec says what is declared, Observe looks at all of it in one round trip,
// Diff compares, Apply changes what differs and Restore puts back what was
// there before. Each fact has two sides where it needs them: what holds now and
// what holds after the next boot. It installs nothing: packages come first.
package system
