package nvidia

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/gpu"
)

// recorded is the output of nvidia-smi -q -x that runtime/gpu tests.
func recorded(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../runtime/gpu/testdata/smi.xml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// stateOf reads the line about health of a look.
func stateOf(t *testing.T, out []byte) State {
	t.Helper()
	r := newReader()
	if err := (host.Lines{"health": r.lines()["health"]}).Read(append(out, "end\n"...)); err != nil {
		t.Fatal(err)
	}
	return r.s
}

// A plan names each GPU that is unfit, by the rules that runs have; warnings of GPUs
// and a healthy one are no problem of the driver.
func TestUnfitGPUs(t *testing.T) {
	have := stateOf(t, []byte("health\t"+base64.StdEncoding.EncodeToString([]byte(recorded(t)))+"\n"))
	if have.Health.Verdict != gpu.Unfit {
		t.Fatalf("%+v", have.Health)
	}
	var details []string
	for _, p := range UnfitGPUs(have) {
		if !p.Warning || p.Summary != "A GPU is unfit" {
			t.Errorf("%+v", p)
		}
		details = append(details, p.Detail)
	}
	all := strings.Join(details, "\n")
	if len(details) != 2 || strings.Count(all, "GPU 1: ") != 2 || !strings.Contains(all, "rule "+gpu.RuleECC) || !strings.Contains(all, "rule "+gpu.RuleFailed) {
		t.Errorf("%s", all)
	}
	if s := readingsOf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."); len(s.GPUs) != 0 {
		t.Errorf("%+v", s)
	}
}

// The script passes nvidia-smi's whole output on.
func TestHealthLook(t *testing.T) {
	dir := t.TempDir()
	version, text := filepath.Join(dir, "version"), filepath.Join(dir, "smi.xml")
	for path, content := range map[string]string{
		version: "loaded", text: recorded(t), filepath.Join(dir, "nvidia-smi"): "#!/bin/sh\n[ \"$*\" = '-q -x' ] && cat " + text + "\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(healthLook, "/proc/driver/nvidia/version", version))
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("the shell of this machine cannot run it: %v", err)
	}
	if have := stateOf(t, out); have.Health.Verdict != gpu.Unfit {
		t.Errorf("%+v", have.Health)
	}
}
