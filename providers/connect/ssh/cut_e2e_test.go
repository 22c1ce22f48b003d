//go:build e2e

package ssh

import "testing"

// TestCutEverywhere breaks the connection after every single byte.
func TestCutEverywhere(t *testing.T) {
	cutEverywhere(t, 1)
}
