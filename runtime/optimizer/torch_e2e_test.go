//go:build e2e

package optimizer

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Numbers that the machine's PyTorch makes now are as those of testdata.
func TestUpdateAsTorchOfThisMachine(t *testing.T) {
	for _, python := range []string{"python3", "/usr/bin/python3"} { // Debian's python3-torch is for the latter
		if exec.Command(python, "-c", "import torch").Run() != nil {
			continue
		}
		text, err := exec.Command(python, filepath.Join("testdata", "optimizers.py")).Output()
		if err != nil {
			t.Fatal(err)
		}
		compareWithTorch(t, text)
		return
	}
	t.Skip("PyTorch is not installed: Debian has it in python3-torch")
}
