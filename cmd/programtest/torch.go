package programtest

import (
	"os/exec"
	"strings"
	"testing"
)

// Torch returns the name of a Python that has PyTorch, and skips the test of a
// machine without PyTorch.
func Torch(t testing.TB) (python string) {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} { // Debian's python3-torch is for the latter
		out, err := exec.Command(name, "-c", "import torch; assert torch.distributed.is_available(); print(torch.__version__)").Output()
		if err == nil {
			t.Logf("PyTorch %s", strings.TrimSpace(string(out)))
			return name
		}
	}
	t.Skip("PyTorch is not installed: Debian has it in python3-torch")
	return ""
}
