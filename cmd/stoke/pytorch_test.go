//go:build e2e && linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
)

// torchrun runs a program under torchrun, and returns its output. Debian's PyTorch 1.13
// has a function that Python 3.11 does not: it is mended first.
func torchrun(t *testing.T, python, program string, processes int, args ...string) string {
	t.Helper()
	const main = `from torch.distributed.elastic.multiprocessing.api import Std
if Std.from_str("0") is None:
    Std.from_str = classmethod(lambda cls, text: cls.NONE)
from torch.distributed.run import main
main()
`
	path := filepath.Join(t.TempDir(), "torchrun.py")
	write(t, path, []byte(main))
	cmd := exec.Command(python, append([]string{path, "--standalone", "--nproc_per_node", strconv.Itoa(processes), program}, args...)...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("torchrun: %v\n%s", err, out)
	}
	return string(out)
}

// epoch is what the program reports after each epoch.
type epoch struct {
	Epoch, Step    int
	Loss, Accuracy float64
}

// epochs returns the reports in a program's output.
func epochs(t *testing.T, output string) (all []epoch) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^stoke: (\{.*"loss".*\})$`).FindAllStringSubmatch(output, -1) {
		var e epoch
		if err := json.Unmarshal([]byte(m[1]), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// ddp is a copy of examples/pytorch with its home.
type ddp struct {
	*testing.T
	dir, python string
	run         func(want int, args ...string) string
}

func newDDP(t *testing.T, python string, arguments ...string) *ddp {
	t.Helper()
	d := &ddp{T: t, dir: t.TempDir(), python: python}
	if err := copyConfiguration(d.dir, filepath.Join(moduleRoot, "examples", "pytorch")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.dir, "trainer_override.tf"), fmt.Appendf(nil, "provider \"train\" {\n  trainer = %q\n}\n",
		filepath.Join(releasedTrainer(t), "stoke-trainer")))
	d.set(arguments...)
	lab := &podLab{t: t, dir: d.dir, home: t.TempDir()}
	d.run = lab.run
	d.run(0, "init")
	t.Cleanup(func() { // a test that fails leaves no run
		cmd := exec.Command("stoke", "-chdir="+d.dir, "destroy", "-auto-approve")
		cmd.Env = append(os.Environ(), "HOME="+lab.home)
		cmd.Run() //nolint:errcheck // most often, there is nothing left
	})
	return d
}

// set sets variables of the configuration.
func (d *ddp) set(arguments ...string) {
	d.Helper()
	text := fmt.Sprintf("python = %q\n%s\n", d.python, strings.Join(arguments, "\n"))
	write(d.T, filepath.Join(d.dir, "lab.auto.tfvars"), []byte(text))
}

func (d *ddp) output(name string) string {
	d.Helper()
	return strings.TrimSpace(d.run(0, "output", "-raw", name))
}

// logs returns the output of all ranks.
func (d *ddp) logs(pattern string) string {
	d.Helper()
	found, err := filepath.Glob(filepath.Join(d.output("logs"), pattern))
	if err != nil {
		d.Fatal(err)
	}
	var all strings.Builder
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			d.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// The program of examples/pytorch runs unchanged under torchrun and under stoke, with
// equal losses.
func TestPyTorchEqualsTorchrun(t *testing.T) {
	python := programtest.Torch(t)
	d := newDDP(t, python)
	want := epochs(t, torchrun(t, python, filepath.Join(d.dir, "program", "train.py"), 4))
	t.Log(d.run(0, "apply", "-auto-approve"))
	got := epochs(t, d.logs("worker-*/rank-*.log"))
	if len(want) != 6 || !slices.Equal(got, want) {
		t.Errorf("under stoke %v, under torchrun %v", got, want)
	}
	if accuracy := d.output("accuracy"); accuracy != strconv.FormatFloat(want[5].Accuracy, 'f', -1, 64) {
		t.Errorf("accuracy %s, want %v", accuracy, want[5].Accuracy)
	}
	d.run(0, "plan", "-detailed-exitcode")
	d.run(0, "destroy", "-auto-approve")
}

// A rank that is killed costs a checkpoint at most: new processes are started soon, and
// the accuracy is that of an undisturbed run.
func TestPyTorchKilledRank(t *testing.T) {
	python := programtest.Torch(t)
	for seed := range 3 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := newDDP(t, python, fmt.Sprintf("parameters = { epochs = 12, seed = %d }", seed))
			want := epochs(t, torchrun(t, python, filepath.Join(d.dir, "program", "train.py"), 4, "--epochs=12", fmt.Sprintf("--seed=%d", seed)))
			write(t, filepath.Join(d.dir, "wait_override.tf"), []byte(`resource "train_experiment" "ddp" {
  wait = false
}

output "accuracy" {
  value = null
}

output "loss" {
  value = null
}
`))
			d.run(0, "apply", "-auto-approve")
			var pid int
			d.eventually("a checkpoint is there", func() bool {
				if found, _ := filepath.Glob(filepath.Join(filepath.Dir(d.output("logs")), "checkpoints", "*.complete")); len(found) < 2 {
					return false
				}
				m := regexp.MustCompile(`rank 3 started \(process (\d+)\)`).FindStringSubmatch(d.logs("coordinator-0.log"))
				if m != nil {
					pid, _ = strconv.Atoi(m[1])
				}
				return m != nil
			})
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(d.dir, "wait_override.tf")); err != nil {
				t.Fatal(err)
			}
			t.Log(d.run(0, "apply", "-auto-approve"))
			accuracy, err := strconv.ParseFloat(d.output("accuracy"), 64)
			if last := want[len(want)-1].Accuracy; err != nil || math.Abs(accuracy-last) > 0.005 {
				t.Errorf("accuracy %v, %v; undisturbed %v", accuracy, err, last)
			}
			log := d.logs("coordinator-0.log")
			if !strings.Contains(log, "rank 3 was killed") || !strings.Contains(log, "generation 2 begins with 4 ranks on 2 members, from the checkpoint") {
				t.Error(log)
			}
			if took := between(t, log, `msg="rank 3 was killed`, `msg="generation 2 begins`); took > 35*time.Second { // grace and 5 s
				t.Errorf("the next generation begins %v after the kill", took)
			}
			d.run(0, "destroy", "-auto-approve")
		})
	}
}

// between returns the time between two lines of a log.
func between(t *testing.T, log, first, second string) time.Duration {
	t.Helper()
	at := func(mark string) time.Time {
		for line := range strings.Lines(log) {
			if strings.Contains(line, mark) {
				word, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
				when, err := time.Parse(time.RFC3339Nano, word)
				if err != nil {
					t.Fatal(err)
				}
				return when
			}
		}
		t.Fatalf("the log has no %q", mark)
		return time.Time{}
	}
	return at(second).Sub(at(first))
}

func (d *ddp) eventually(what string, is func() bool) {
	d.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.Fatalf("did not come true: %s", what)
		}
	}
}

// A postcondition fails on a metric of the program.
func TestPyTorchPostcondition(t *testing.T) {
	d := newDDP(t, programtest.Torch(t), "parameters = { epochs = 1, learning_rate = 0 }")
	out := d.run(1, "apply", "-auto-approve")
	if !strings.Contains(out, "Accuracy regressed") {
		t.Error(out)
	}
	d.run(0, "destroy", "-auto-approve")
}
