package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// Each mode of bench measures steps; a wrong flag says what is wrong.
func TestBenchCommand(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{modeResident, modeStaged, modeLease} {
		out, err := exec.Command(trainer, "bench", "mlp", "--shape", "4", "--classes", "3", "--batch", "8", "--mode", mode, "--seconds", "0.01").Output()
		var m measurement
		if err == nil {
			err = json.Unmarshal(out, &m)
		}
		if err != nil || !(m.Steps > 0) || m.Records != 8*m.Steps || m.Mode != mode || m.ComputeType != "f32" {
			t.Errorf("%s: %+v (%v)", mode, m, err)
		}
	}
	for args, want := range map[string]string{
		"nope":                        "mlp",
		"mlp --shape 3xq":             "32x32x3",
		"mlp --mode fast":             "resident",
		"mlp --batch 0":               "above 0",
		"mlp --engine xla":            "stoke-trainer-gpu",
		"mlp --compute-type bf16":     "bf16",
		"transformer --shape 3x3":     "sequences",
		"softmax --classes 3 --batch": "flag needs an argument",
	} {
		out, err := exec.Command(trainer, append([]string{"bench"}, strings.Fields(args)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("bench %s: %v, want %q in %s", args, err, want, out)
		}
	}
}
