// Package terminaltest has pseudo-terminals for tests, on Linux.
package terminaltest
