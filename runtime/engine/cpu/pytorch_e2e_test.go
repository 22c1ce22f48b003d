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

	"github.com/stokehq/stoke/cmd/programtest"
)

// The numbers of testdata/pytorch.json are those that PyTorch computes.
func TestPyTorchsNumbers(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), programtest.Torch(t), "pytorch.py")
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
