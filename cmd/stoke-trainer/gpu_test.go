package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/worker"
)

// The environment of the test's own program as the trainer: the number of GPUs that
// its engine pretends to have, and the folder of their slots.
const (
	pretended     = "STOKE_TRAINER_TEST_GPUS"
	pretendedHome = "STOKE_TRAINER_TEST_SLOTS"
	// interpreted: the engine is XLA's, whose programs an interpreter runs.
	interpreted = "STOKE_TRAINER_TEST_INTERPRETED"
)

// pretendGPUs has this process see the GPUs of its environment.
func pretendGPUs() {
	n, err := strconv.Atoi(os.Getenv(pretended))
	if err != nil {
		return
	}
	slotFolder = os.Getenv(pretendedHome)
	registerMore = func(r *engine.Registry) {
		r.Register(spec.EngineXLA, engine.Entry{
			New: func(c engine.Config) (engine.Engine, error) {
				if os.Getenv(interpreted) != "" {
					return xla.New(&xlatest.Device{Round: true}), nil
				}
				c.Log.Info("opened", "device", c.Device)
				return pretend{cpu.New(), c.Device}, nil
			},
			Devices: func() (all []engine.Device) {
				for i := range n {
					all = append(all, engine.Device{Index: i, UUID: fmt.Sprintf("GPU-%d", i)})
				}
				return all
			},
		})
	}
}

// pretend is the CPU engine in the place of a GPU: it refuses the options that its
// GPU should not be given.
type pretend struct {
	engine.Engine
	device int
}

func (e pretend) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	if o.Device != e.device || o.ComputeType != spec.ComputeTF32 {
		return nil, fmt.Errorf("opened for device %d, built for %d in %q", e.device, o.Device, o.ComputeType)
	}
	o.ComputeType = ""
	return e.Engine.Build(m, o)
}

// Two runs never share a GPU: the second one waits, says for whom, and goes on when
// the first one's process has been killed.
func TestRunsShareTheGPUsOfAMachine(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	slots := filepath.Join(t.TempDir(), "slots")
	begin := func(s spec.Spec) *trial {
		f := run.Folder(filepath.Join(t.TempDir(), "run"))
		if err := f.Create(s); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "supervise", "--run", string(f))
		cmd.Env = append(os.Environ(), asTrainer+"=1", pretended+"=2", pretendedHome+"="+slots)
		r := relaunchBy(t, f, cmd)
		r.start()
		return r
	}
	logged := func(r *trial, index int, text string) func() bool {
		return func() bool {
			log, _ := os.ReadFile(r.folder.Log("worker", index))
			return bytes.Contains(log, []byte(text))
		}
	}
	s := long()
	s.Name, s.Worker.GPUs, s.Worker.Replicas, s.Worker.MinReplicas, s.Epochs = "first", 1, 2, 2, 500
	first := begin(s)
	for i := range 2 {
		eventually(t, "the first run's workers have a GPU each", logged(first, i, "opened"))
		log := string(must(os.ReadFile(first.folder.Log("worker", i))))
		if of := strings.Contains(log, "gpu=1"); of != strings.Contains(log, "device=1") || of == strings.Contains(log, "gpu=0") {
			t.Errorf("worker %d opens another GPU than it has:\n%s", i, log)
		}
	}
	s.Name, s.Worker.Replicas, s.Worker.MinReplicas, s.Epochs = "second", 1, 1, 1
	second := begin(s)
	eventually(t, "the second run waits", logged(second, 0, "waiting for a GPU"))
	log := string(must(os.ReadFile(second.folder.Log("worker", 0))))
	if want := `run \"first run\", process `; strings.Count(log, want) != 2 || strings.Contains(log, "took a GPU") {
		t.Errorf("the second run does not name the holder of both GPUs:\n%s", log)
	}
	eventually(t, "the second run's status names the holder", func() bool {
		st, err := second.folder.Status()
		return err == nil && strings.Contains(st.Message, `waiting for workers: 0 of at least 1: worker-0 waits for a GPU: GPU 0: run "first run"`)
	})
	first.cmd.Process.Kill() // and its workers end with it
	<-first.reaped
	if st := second.wait(); st.Phase != spec.Succeeded {
		t.Errorf("the second run: %+v", st)
	}
	if !logged(second, 0, "took a GPU")() {
		t.Error("the second run trained without a GPU of its own")
	}
}

// withEngine adds an engine for one test, which is not parallel to others.
func withEngine(t *testing.T, e engine.Entry) {
	t.Helper()
	before := registerMore
	registerMore = func(r *engine.Registry) {
		e.New = func(engine.Config) (engine.Engine, error) { return cpu.New(), nil }
		r.Register(spec.EngineXLA, e)
	}
	t.Cleanup(func() { registerMore = before })
}

func TestEngines(t *testing.T) {
	card := engine.Device{Index: 0, Name: "NVIDIA H200", UUID: "GPU-1", Memory: 1 << 37}
	for name, test := range map[string]struct {
		engine engine.Entry
		works  []string
		table  string
		err    string // of a run with gpus = 1
	}{
		"works": {
			engine.Entry{Devices: func() []engine.Device { return []engine.Device{card, {Index: 1, UUID: "GPU-2"}} }},
			[]string{"cpu", "xla"},
			"ENGINE  STATE  DEVICES\ncpu     works  -\nxla     works  0 NVIDIA H200, 1 GPU-2\n", "",
		},
		"broken": {
			engine.Entry{
				Problem: func() error { return errors.New("no driver:\n/dev/nvidiactl does not exist") },
				Devices: func() []engine.Device { panic("asked for the devices of an engine that does not work") },
			},
			[]string{"cpu"},
			fmt.Sprintf("%-8s%-57sDEVICES\n%-8[3]s%-57[4]s-\n%-8[5]s%-57[6]s-\n", "ENGINE", "STATE", "cpu", "works",
				"xla", "does not work: no driver: /dev/nvidiactl does not exist"),
			"the engine xla does not work on this machine: no driver",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEngine(t, test.engine)
			var table, text bytes.Buffer
			if err := printAbilities(&table, abilities()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.table, table.String()); diff != "" {
				t.Error(diff)
			}
			if err := encodeAbilities(&text, abilities()); err != nil {
				t.Fatal(err)
			}
			var got struct {
				Engines, Models, Operations []string
				Layers, Problems            map[string]string
				Devices                     map[string][]engine.Device
			}
			if err := json.Unmarshal(text.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.works, got.Engines); diff != "" || len(got.Models) == 0 || len(got.Layers) != len(got.Models) || len(got.Operations) == 0 {
				t.Errorf("%s\n%s", diff, text.Bytes())
			}
			if broken := test.err != ""; broken != (got.Problems["xla"] != "") || broken == (len(got.Devices["xla"]) == 2 && got.Devices["xla"][0] == card) {
				t.Errorf("problems %v, devices %v", got.Problems, got.Devices)
			}
			s := small()
			s.Worker.GPUs = 1
			if _, err := entryOf(&s); (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("a run with a GPU: %v", err)
			}
			s.Worker.GPUs = 0
			if _, err := entryOf(&s); err != nil {
				t.Errorf("a run without a GPU: %v", err)
			}
		})
	}
}

// A build without the engine says which program has it: the run is not tried again.
func TestEngineThatIsNotLinked(t *testing.T) {
	before := registerMore
	registerMore = func(*engine.Registry) {}
	t.Cleanup(func() { registerMore = before })
	s := small()
	s.Worker.GPUs = 1
	if _, err := entryOf(&s); !errors.As(err, new(worker.ProgramError)) || !strings.Contains(err.Error(), "stoke-trainer-gpu") {
		t.Errorf("a run with a GPU: %v", err)
	}
}

// A run with gpus = 1 trains by XLA's programs, in batches of several micro-batches, to
// the model of the same run on the CPU engine: with both strategies, in real processes.
func TestRunsByPrograms(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, strategy := range []string{spec.StrategyParameterServer, spec.StrategyAllReduce} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			s := small()
			s.Strategy, s.Deterministic, s.Optimizer.Momentum, s.Epochs, s.Evaluation.EverySteps = strategy, true, 0.9, 1, 0
			if strategy == spec.StrategyAllReduce {
				s.ParameterServer.Replicas = 0
			}
			plain := launch(t, s)
			plain.start()
			want := plain.wait()
			s.Worker.GPUs = 1
			f := run.Folder(filepath.Join(t.TempDir(), "run"))
			if err := f.Create(s); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "supervise", "--run", string(f))
			cmd.Env = append(os.Environ(), asTrainer+"=1", pretended+"=2", pretendedHome+"="+filepath.Join(t.TempDir(), "slots"), interpreted+"=1")
			r := relaunchBy(t, f, cmd)
			r.start()
			got := r.wait()
			if got.Phase != spec.Succeeded || got.Records != 1500 || got.Class != "interpreter" {
				r.dump()
				t.Fatalf("status %+v", got)
			}
			for _, name := range []string{"loss", "accuracy"} {
				if d := math.Abs(got.Metrics[name] - want.Metrics[name]); want.Metrics[name] == 0 || d > 1e-3*want.Metrics[name] {
					t.Errorf("%s is %v, on the CPU engine %v", name, got.Metrics[name], want.Metrics[name])
				}
			}
		})
	}
}
