//go:build e2e

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
)

// exported has a network of 12 layers on pictures of 8 × 8.
const exported = `
resource "train_dataset" "stripes" {
  format = "idx"
  path   = "data"
}

resource "train_experiment" "stripes" {
  dataset         = train_dataset.stripes.uri
  hyperparameters = { epochs = 3, batch_size = 16, learning_rate = 0.05 }

  model_graph = {
    layers = [
      { name = "conv1", type = "conv2d", filters = 8, kernel = 3, pad = 1, no_bias = true },
      { name = "norm1", type = "batch_norm" },
      { name = "relu1", type = "relu" },
      { name = "conv2", type = "conv2d", filters = 8, kernel = 3, padding = "same", groups = 2 },
      { name = "gelu", type = "gelu" },
      { name = "sum", type = "add", inputs = ["gelu", "relu1"] },
      { name = "pool", type = "max_pool", kernel = 2 },
      { name = "flat", type = "flatten" },
      { name = "drop", type = "dropout", rate = 0.2 },
      { name = "hidden", type = "dense", units = 12 },
      { name = "tanh", type = "tanh" },
      { name = "output", type = "dense", units = 4 },
    ]
  }
}

output "metrics" {
  value = train_experiment.stripes.metrics
}
`

// writeStripes writes pictures of four kinds of stripes as IDX files, and returns the
// labels for testing.
func writeStripes(t *testing.T, dir string) (labels []byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	noise := uint32(1)
	for name, n := range map[string]int{"train": 320, "t10k": 80} {
		pictures := binary.BigEndian.AppendUint32(nil, 0x803)
		for _, d := range []int{n, 8, 8} {
			pictures = binary.BigEndian.AppendUint32(pictures, uint32(d))
		}
		classes := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 0x801), uint32(n))
		for i := range n {
			kind := i % 4
			classes = append(classes, byte(kind))
			for at := range 64 {
				y, x := at/8, at%8
				noise = noise*1664525 + 1013904223
				v := byte(noise >> 25)
				if []int{x, y, x + y, x - y + 8}[kind]/2%2 == 0 {
					v += 100
				}
				pictures = append(pictures, v)
			}
		}
		if name == "t10k" {
			labels = classes[8:]
		}
		write(t, filepath.Join(dir, name+"-images-idx3-ubyte"), pictures)
		write(t, filepath.Join(dir, name+"-labels-idx1-ubyte"), classes)
	}
	return labels
}

// A network that a configuration describes is trained and exported. PyTorch loads it by
// the script of the examples, and has the loss and the accuracy of the run.
func TestExportedModel(t *testing.T) {
	python := programtest.Torch(t)
	c := &training{t: t, dir: t.TempDir(), stoke: programtest.Path(t, "stoke")}
	labels := writeStripes(t, filepath.Join(c.dir, "data"))
	write(t, filepath.Join(c.dir, "main.tf"), []byte(exported))
	c.run("apply", "-auto-approve")
	out, err := exec.Command(c.stoke, "-chdir="+c.dir, "export", "-out=m.safetensors", "train_experiment.stripes").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script := filepath.Join("..", "..", "examples", "export", "predict.py")
	cmd := exec.Command(python, script, filepath.Join(c.dir, "m.safetensors"), filepath.Join(c.dir, "data", "t10k-images-idx3-ubyte"))
	cmd.Env, cmd.Stderr = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), os.Stderr
	out, err = cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	loss, correct := 0.0, 0.0
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var logits []float64
		if err := json.Unmarshal([]byte(line), &logits); err != nil || len(logits) != 4 {
			t.Fatalf("%v in %q", err, line)
		}
		total, best := 0.0, 0
		for k, v := range logits {
			total += math.Exp(v)
			if v > logits[best] {
				best = k
			}
		}
		loss += (math.Log(total) - logits[labels[i]]) / float64(len(labels))
		if best == int(labels[i]) {
			correct += 1 / float64(len(labels))
		}
	}
	metrics, err := exec.Command(c.stoke, "-chdir="+c.dir, "output", "-json", "metrics").Output()
	var want struct{ Loss, Accuracy float64 }
	if err != nil || json.Unmarshal(bytes.TrimSpace(metrics), &want) != nil {
		t.Fatalf("%v: %s", err, metrics)
	}
	t.Logf("loss %v, in PyTorch %v; accuracy %v", want.Loss, loss, want.Accuracy)
	if math.Abs(loss-want.Loss) > 1e-5 || math.Abs(correct-want.Accuracy) > 1e-9 {
		t.Errorf("loss %v and accuracy %v in PyTorch, want %v and %v", loss, correct, want.Loss, want.Accuracy)
	}
	if want.Accuracy < 0.8 {
		t.Errorf("the accuracy is %v: it has learned nothing", want.Accuracy)
	}
	c.run("destroy", "-auto-approve")
}
