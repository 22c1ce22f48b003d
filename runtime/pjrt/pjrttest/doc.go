// Package pjrttest builds a double of a PJRT plugin, in C, for tests of what
// drives plugins. It needs gcc, and a test without it is skipped.
//
// The double computes a few programs (testdata/device.h names them) and ends the
// process where its caller breaks a rule of the interface. StableHLO and GPUs
// are not its subject.
//
// Entry points: Build, BuildLibrary.
package pjrttest
