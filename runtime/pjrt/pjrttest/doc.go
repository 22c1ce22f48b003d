// Package pjrttest builds a double of a PJRT plugin, in C, for tests of what
// drives plugins. It needs gcc, and a test without it is skipped.
//
// The double computes a few programs (testdata/device.h names them) and ends the
// process where its caller breaks a rule of the interface. A test that calls
// double_interpret (testdata/device.h) computes other programs itself; the
// package runtime/engine/xla/gpu has one.
//
// Entry points: Build, BuildLibrary.
package pjrttest
