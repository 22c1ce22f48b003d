//go:build e2e

package optimizer

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
)

// Numbers that the machine's PyTorch makes now are as those of testdata.
func TestUpdateAsTorchOfThisMachine(t *testing.T) {
	text, err := exec.Command(programtest.Torch(t), filepath.Join("testdata", "optimizers.py")).Output()
	if err != nil {
		t.Fatal(err)
	}
	compareWithTorch(t, text)
}
