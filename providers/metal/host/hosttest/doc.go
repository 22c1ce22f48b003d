// Package hosttest has a machine for tests that are not about machines: files
// in memory and commands that the test answers.
package hosttest
