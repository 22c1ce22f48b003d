package local

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/slot"
)

func TestSurvey(t *testing.T) {
	proc, slots := t.TempDir(), filepath.Join(t.TempDir(), "slots")
	for name, text := range map[string]string{
		"meminfo": "MemTotal:       65536 kB\nMemFree:        1 kB\n",
		"driver/nvidia/gpus/0000:41:00.0/information": "Model: \t\t NVIDIA A100\nIRQ:   \t\t 1\nGPU UUID: \t GPU-b\n",
		"driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-a\n",
		"driver/nvidia/gpus/0000:61:00.0/information": "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-????????-????\n",
	} {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := slot.Take(t.Context(), []engine.Device{{UUID: "GPU-b"}}, slot.Options{Run: "mine", Folder: slots, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	is := survey(proc, slots)
	if len(is.Nodes) != 1 || !is.IsHere || is.Partly != "" {
		t.Fatalf("the survey is %+v", is)
	}
	n := is.Nodes[0]
	if n.CPU < 1 || n.Memory != 64<<20 || n.GPUs != 3 || n.GPUModel != "NVIDIA A100" || len(n.Holders) != 3 {
		t.Fatalf("the machine is %+v", n)
	}
	for i, want := range []string{"", `run "mine"`, "not known"} {
		if got := n.Holders[i].By; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("GPU %d has the holder %q, want %q", i, got, want)
		}
	}
	if is := survey(t.TempDir(), slots); len(is.Nodes) != 1 || is.Nodes[0].GPUs != 0 || is.Partly != "" {
		t.Errorf("without a GPU: %+v", is)
	}
}
