package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
)

const crashTraining = `
provider "train" {
  runs_dir     = "${path.cwd}/runs"
  datasets_dir = "${path.cwd}/datasets"
}
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 4000
  test   = 500
}
resource "train_experiment" "digits" {
  model   = "mlp"
  dataset = train_dataset.digits.uri
  hyperparameters = { learning_rate = 0.05, momentum = 0.9, batch_size = 64, epochs = 4 }
  parameter_server { replicas = 1 }
  worker { replicas = 2 }
}
output "accuracy" { value = train_experiment.digits.metrics["accuracy"] }
`

// TestKilledTraining kills the command at random moments of an apply that
// trains. The next apply finds the experiment that was started and adopts it;
// nothing is started twice and no process is left behind.
func TestKilledTraining(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("the program that it runs is built without the race detector")
	}
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("finding what is left behind needs /proc")
	}
	c := &training{t: t, dir: t.TempDir(), stoke: programtest.Path(t, "stoke")}
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(crashTraining), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c.run("apply", "-auto-approve")
	took := time.Since(began)
	c.run("destroy", "-auto-approve")
	c.empty()
	adopted := 0
	for range crashTrainings {
		cmd := c.command("apply", "-auto-approve")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(took))))
		cmd.Process.Kill()
		cmd.Wait()
		if len(c.runs()) == 1 {
			adopted++
		}
		c.run("apply", "-auto-approve")
		c.once()
		c.run("plan", "-detailed-exitcode")
		c.run("destroy", "-auto-approve")
		c.empty()
		if t.Failed() {
			return
		}
	}
	t.Logf("killed %d applies, %d of them with an experiment under way", crashTrainings, adopted)
}

type training struct {
	t          *testing.T
	dir, stoke string
}

func (c *training) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.stoke, append([]string{"-chdir=" + c.dir}, append(args, "-no-color", "-input=false")...)...)
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1")
	return cmd
}

func (c *training) run(args ...string) {
	c.t.Helper()
	if out, err := c.command(args...).CombinedOutput(); err != nil {
		c.t.Fatalf("stoke %s: %v\n%s", strings.Join(args, " "), err, tail(out))
	}
}

func (c *training) runs() []string {
	found, err := filepath.Glob(filepath.Join(c.dir, "runs", "run-*"))
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// once checks that there is one run and that it was started and ended once.
func (c *training) once() {
	c.t.Helper()
	runs := c.runs()
	if len(runs) != 1 {
		c.t.Errorf("%d runs were made: %v", len(runs), runs)
		return
	}
	for file, mark := range map[string]string{"logs/supervisor-0.log": "msg=started role=coordinator", "metrics.jsonl": `"type":"end"`} {
		b, err := os.ReadFile(filepath.Join(runs[0], file))
		if err != nil {
			c.t.Fatal(err)
		}
		if n := bytes.Count(b, []byte(mark)); n != 1 {
			c.t.Errorf("%s holds %s %d times", file, mark, n)
		}
	}
}

// empty checks that destroy has left nothing: no run, no process.
func (c *training) empty() {
	c.t.Helper()
	if runs := c.runs(); len(runs) > 0 {
		c.t.Errorf("runs are left: %v", runs)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, file := range lines {
		b, _ := os.ReadFile(file) // the process may have ended since
		if bytes.Contains(b, []byte(filepath.Join(c.dir, "runs"))) {
			c.t.Errorf("a process is left: %s", bytes.ReplaceAll(b, []byte{0}, []byte(" ")))
		}
	}
}
