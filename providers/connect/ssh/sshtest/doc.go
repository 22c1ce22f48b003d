// Package sshtest has an SSH server for tests, in the process of the test. It
// runs commands for real, by a shell, and has a sudo that behaves like the real
// one. What it refuses is what OpenSSH refuses.
//
// It knows nothing of the client, so that the client's own tests use it, too.
// New is its entry point.
package sshtest
