package hosttest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestTree: what scripts name is the tree's, and never this machine's.
func TestTree(t *testing.T) {
	m := hosttest.NewTree(t)
	for _, dir := range []string{"bin", "boot", "etc", "lib", "opt", "proc", "run", "sbin", "sys", "usr", "var"} {
		name := "/" + dir + "/stoke-test-of-trees"
		m.Sh(`mkdir -p "$(dirname ` + name + `)"; echo here >` + name)
		if _, err := os.Stat(name); err == nil {
			os.Remove(name)
			t.Errorf("%s was written on this machine", name)
		}
		if content, err := os.ReadFile(filepath.Join(m.Root, name)); err != nil || string(content) != "here\n" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}
