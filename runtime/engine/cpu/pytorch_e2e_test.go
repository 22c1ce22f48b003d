//go:build e2e

package cpu_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The numbers of testdata/pytorch.json are those that PyTorch computes.
func TestPyTorchsNumbers(t *testing.T) {
	var python string
	for _, name := range []string{"python3", "/usr/bin/python3"} { // Debian's python3-torch is for the latter
		if exec.Command(name, "-c", "import torch").Run() == nil {
			python = name
		}
	}
	if python == "" {
		t.Skip("PyTorch is not installed: Debian has it in python3-torch")
	}
	cmd := exec.CommandContext(t.Context(), python, "pytorch.py")
	cmd.Dir, cmd.Stderr = "testdata", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]reference
	for to, text := range map[*map[string]reference][]byte{&want: text, &got: bytes.TrimSpace(out)} {
		if err := json.Unmarshal(text, to); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-7, 1e-7)); diff != "" {
		t.Error(diff)
	}
}
