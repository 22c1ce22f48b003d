//go:build e2e

package syntax

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFormatAsTerraform compares every configuration file of this repository
// with what terraform fmt makes of it.
func TestFormatAsTerraform(t *testing.T) {
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Skip("terraform is not installed")
	}
	names := formatted(t)
	for _, pattern := range []string{"../../examples/*/*.tf", "../../testdata/*/*/*.tf", "../../testdata/*/*.tf"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, more...)
	}
	for _, name := range names {
		src := read(t, name)
		got, diags := Format(name, src)
		path := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(path, src, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("terraform", "fmt", path)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "CHECKPOINT_DISABLE=1")
		output, err := cmd.CombinedOutput()
		if diags.HasErrors() != (err != nil) {
			t.Errorf("%s: %v, but terraform: %s", name, diags, output)
			continue
		}
		if want := read(t, path); err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s: terraform formats it as\n%s\nand we as\n%s", name, want, got)
		}
	}
}
