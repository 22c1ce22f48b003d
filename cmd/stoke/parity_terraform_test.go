//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestParityTerraform holds the golden files against a real Terraform; with
// -update it writes them.
func TestParityTerraform(t *testing.T) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	terraform := &tool{name: "terraform", path: path, env: []string{reattached(t)}}
	for _, c := range parityCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := c.run(t, terraform)
			name := filepath.Join(corpus, c.name+".golden")
			if *rewrite {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			golden, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := lineDiff(string(golden), got); d != "" {
				t.Errorf("terraform (+) answers otherwise than %s (-) says:\n%s", name, d)
			}
		})
	}
}
