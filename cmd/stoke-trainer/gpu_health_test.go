package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/gpu/probe"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/worker"
)

// oneGPU is a line of stoke-gpu about a GPU at work; the second one is about a GPU
// that is lost.
const (
	oneGPU = `{"driver":"580.65.06","gpus":[{"index":0,"uuid":"GPU-0","name":"NVIDIA H100 80GB HBM3",` +
		`"values":{"utilization_percent":97,"temperature_celsius":61,"ecc_corrected":0},"processes":[{"pid":7}]}]}`
	lostGPU = `{"driver":"580.65.06","gpus":[{"index":0,"uuid":"GPU-0","fault":"lost"}]}`
)

// stokeGPU puts a shell script in the place of stoke-gpu. It notes its starts in the
// file that is returned; "watch" and "check" are functions of the script.
func stokeGPU(t *testing.T, script string) (starts string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("runs of programs need Linux")
	}
	dir := t.TempDir()
	starts = filepath.Join(dir, "starts")
	text := fmt.Sprintf("#!/bin/sh\nwatch() { exec cat; }\ncheck() { exit 3; }\n%s\necho \"$1\" >> %s\n$1\n", script, starts)
	if err := os.WriteFile(filepath.Join(dir, "stoke-gpu"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	return starts
}

// verdict is a function "check" of the script.
func verdict(v gpu.Severity, code int, text string) string {
	return fmt.Sprintf(`check() { echo '{"verdict":"%s","findings":[{"rule":"xid-unfit","severity":"%[1]s","gpu":0,"text":"%s"}],"readings":{"gpus":[]}}'; exit %d; }`,
		v, text, code)
}

// startsOfGPU lists the starts of stoke-gpu.
func startsOfGPU(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// gpuRun is a run of a program with 8 ranks on 2 workers, on GPUs.
func gpuRun(t *testing.T, parameters map[string]any) spec.Spec {
	t.Helper()
	s := programRun(t, 2, 4, parameters)
	s.Worker.GPUs = 4
	return s
}

// The readings of GPUs are in the status and in the history of a run, from one
// process for all ranks; its worst health stays when the GPU has recovered.
func TestGPUsOfARun(t *testing.T) {
	t.Setenv("STOKE_USAGE_INTERVAL", "50ms")
	lost := filepath.Join(t.TempDir(), "lost")
	starts := stokeGPU(t, fmt.Sprintf(`watch() { while sleep 0.05; do if [ -e %s ]; then echo '%s'; else echo '%s'; fi; done; }`, lost, lostGPU, oneGPU))
	r := launchProgram(t, gpuRun(t, map[string]any{"steps": 1_000_000, "pause": 0.01, "serve": true}))
	r.start()
	of := watchUsage(t, r.folder, "the GPU is read", func(of map[string]spec.Usage) bool { return len(of["coordinator"].GPUs.GPUs) == 1 })
	if s := of["coordinator"].GPUs; s.Driver != "580.65.06" || s.GPUs[0].Values[gpu.Utilization] != 97 || s.GPUs[0].Name == "" {
		t.Errorf("%+v", s)
	}
	health := func() *spec.GPUHealth { return must(r.folder.Status()).GPUHealth }
	eventually(t, "the GPU is fit", func() bool { return health() != nil && health().Severity == gpu.Fit })
	must(0, os.WriteFile(lost, nil, 0o600))
	eventually(t, "the GPU is lost", func() bool { return health().Severity == gpu.Unfit })
	must(0, os.Remove(lost))
	watchUsage(t, r.folder, "the GPU is read again", func(of map[string]spec.Usage) bool {
		all := of["coordinator"].GPUs.GPUs
		return len(all) == 1 && all[0].Fault == ""
	})
	eventually(t, "a reading is in the history", func() bool {
		return bytes.Contains(must(os.ReadFile(r.folder.Metrics())), fmt.Appendf(nil, "%q:61", gpu.Temperature))
	})
	stopWatched(t, r, "coordinator", "worker-0", "worker-1")
	if h := health(); h == nil || h.Rule != gpu.RuleLost || h.Role != "coordinator" || h.String() != "unfit: coordinator: GPU 0: it has fallen off the bus" {
		t.Errorf("health %+v", h)
	}
	var told []string
	all, _ := events(t, r.folder.Metrics())
	read := 0
	for _, e := range all {
		if e.Type == spec.EventGPU {
			told = append(told, e.Message)
		}
		if e.Usage == nil {
			continue
		}
		for _, g := range e.Usage.GPUs.GPUs {
			if g.Name != "" || g.Processes != nil {
				t.Errorf("the history has %+v", g)
			}
			if _, has := g.Values[gpu.Corrected]; g.Values[gpu.Temperature] == 61 && !has {
				read++
			}
		}
	}
	if read == 0 || !slices.Equal(told, []string{"unfit: coordinator: GPU 0: it has fallen off the bus"}) {
		t.Errorf("%d readings, told %q", read, told)
	}
	if s := startsOfGPU(t, starts); !slices.Equal(s, []string{"watch"}) {
		t.Errorf("stoke-gpu was started: %v", s)
	}
	checkLeft(t, r.folder)
}

// A worker in a pod watches its own GPUs, with one process for all ranks.
func TestGPUsOfAPod(t *testing.T) {
	starts := stokeGPU(t, fmt.Sprintf(`watch() { while sleep 0.05; do echo '%s'; done; }`, oneGPU))
	s := gpuRun(t, map[string]any{"steps": 1_000_000, "pause": 0.01, "serve": true})
	s.Worker.Replicas, s.Program.Processes = 1, 8
	s.Worker.GPUs = 8
	c := newCell(t, s)
	c.env = []string{"PATH=" + os.Getenv("PATH"), "STOKE_USAGE_INTERVAL=50ms"}
	c.coordinate("--run", "demo")
	dir := t.TempDir()
	c.start("worker", "--index", "0", "--coordinator", c.workers, "--api", "http://"+c.api, "--run", "demo",
		"--state", filepath.Join(dir, "state"), "--logs", dir)
	ready := func(s spec.Status) bool {
		u := s.Usage["worker-0"]
		return len(u.GPUs.GPUs) == 1 && u.Processes > 9 && s.Usage["coordinator"].GPUs.GPUs == nil // the ranks, the agent and stoke-gpu
	}
	c.until("the ranks run and the GPU is read", ready)
	if all := startsOfGPU(t, starts); !slices.Equal(all, []string{"watch"}) {
		t.Errorf("stoke-gpu was started: %v", all)
	}
}

// A run goes on when stoke-gpu is killed, prints garbage or hangs, and its log says so
// once.
func TestRunWithoutReadings(t *testing.T) {
	t.Setenv("STOKE_USAGE_INTERVAL", "50ms")
	for name, watch := range map[string]string{"killed": "kill -9 $$", "garbage": "echo oops; exec cat", "hangs": "exec sleep 1000"} {
		t.Run(name, func(t *testing.T) {
			starts := stokeGPU(t, "watch() { "+watch+"; }")
			r := launchProgram(t, gpuRun(t, map[string]any{"steps": 1_000_000, "pause": 0.01, "serve": true}))
			r.start()
			told := func() int {
				text, _ := os.ReadFile(filepath.Join(r.folder.Logs(), "coordinator-0.log"))
				return strings.Count(string(text), "the GPUs are not watched")
			}
			eventually(t, "stoke-gpu is started", func() bool { return len(startsOfGPU(t, starts)) > 0 })
			if name != "hangs" { // probe tests that a silent one is told after 10 seconds
				eventually(t, "it is told", func() bool { return told() > 0 })
			}
			of := watchUsage(t, r.folder, "the ranks run", func(of map[string]spec.Usage) bool { return of["worker-0"].Processes == 5 })
			if g := of["coordinator"].GPUs; g.GPUs != nil {
				t.Errorf("%+v", g)
			}
			stopWatched(t, r, "coordinator", "worker-0", "worker-1")
			if n := told(); n > 1 {
				t.Errorf("told %d times", n)
			}
			checkLeft(t, r.folder)
		})
	}
}

// Where gpu_health is required, no rank starts on an unfit GPU, and the run stops for a
// reason that passes. Where it is reported, they start.
func TestGPUHealthIsRequired(t *testing.T) {
	for _, c := range []struct {
		name, health, check string
		phase               spec.Phase
		says                string
	}{
		{"unfit", spec.GPUHealthRequired, verdict(gpu.Unfit, 1, "XID 79"), spec.Stopped, "the GPUs are unfit: GPU 0: XID 79"},
		{"no verdict", spec.GPUHealthRequired, "", spec.Stopped, "the GPUs cannot be checked: stoke-gpu check: exit status 3"},
		{"warning", spec.GPUHealthRequired, verdict(gpu.Warning, 0, "XID 63"), spec.Succeeded, ""},
		{"reported", spec.GPUHealthReported, verdict(gpu.Unfit, 1, "XID 79"), spec.Succeeded, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			stokeGPU(t, c.check)
			s := gpuRun(t, map[string]any{"steps": 1})
			s.GPUHealth = c.health
			r := launchProgram(t, s)
			r.start()
			st := r.wait()
			if st.Phase != c.phase || !strings.Contains(st.Message, c.says) || st.Phase == spec.Stopped && st.Cause != spec.CauseGPU {
				t.Errorf("status %+v", st)
			}
			if _, err := os.Stat(startsOf(s)); (err == nil) != (c.phase == spec.Succeeded) {
				t.Errorf("the ranks' starts: %v", err)
			}
		})
	}
}

// startsOf returns the file in which ranks note their starts.
func startsOf(s spec.Spec) string {
	for _, v := range s.Program.Variables() {
		if path, ok := strings.CutPrefix(v, "TEST_STARTS="); ok {
			return path
		}
	}
	return ""
}

// A driver that hangs is asked once, not for each GPU of the machine: a worker is not
// held up for longer than one check. An unfit GPU is left out, and the next one is asked.
func TestSilentDriverIsAskedOnce(t *testing.T) {
	before := slotFolder
	t.Cleanup(func() { slotFolder = before })
	slotFolder = filepath.Join(t.TempDir(), "slots")
	silent := `check() { echo '{"verdict":"unfit","findings":[{"rule":"driver-silent","severity":"unfit","gpu":-1,"text":"the driver does not answer"}],` +
		`"readings":{"gpus":[],"fault":"silent"}}'; exit 1; }`
	for name, c := range map[string]struct {
		check string
		asked int
	}{"silent": {silent, 1}, "no verdict": {"", 1}, "unfit": {verdict(gpu.Unfit, 1, "XID 79"), 8}} {
		starts := stokeGPU(t, c.check)
		r := &role{spec: small(), log: slog.New(slog.DiscardHandler)}
		r.spec.Worker.GPUs, r.spec.GPUHealth = 1, spec.GPUHealthRequired
		var devices []engine.Device
		for i := range 8 {
			devices = append(devices, engine.Device{Index: i, UUID: fmt.Sprintf("GPU-%d", i)})
		}
		_, err := r.takeGPU(t.Context(), devices)
		if all := startsOfGPU(t, starts); !errors.As(err, new(worker.GPUError)) || len(all) != c.asked {
			t.Errorf("%s: asked %d times, %v", name, len(all), err)
		}
	}
}

// Of two workers of a run, one takes the only fit GPU of the machine; the other one reports
// that its GPU is unfit, and does not wait for the first one. A GPU that was unfit for one
// worker for a moment, and is in use by the other one, counts for the run.
func TestUnfitGPULeavesTooFew(t *testing.T) {
	before := slotFolder
	t.Cleanup(func() { slotFolder = before })
	ctx, cancel := context.WithTimeout(t.Context(), limit) // of a wait that does not end
	defer cancel()
	devices := []engine.Device{{Index: 0, UUID: "GPU-0"}, {Index: 1, UUID: "GPU-1"}}
	for _, passes := range []bool{false, true} {
		slotFolder = filepath.Join(t.TempDir(), "slots")
		fit := filepath.Join(t.TempDir(), "fit")
		stokeGPU(t, strings.Replace(verdict(gpu.Unfit, 1, "XID 79"), "{", fmt.Sprintf(`{ if [ -e %[1]s ] || [ "$all" != "${all#*GPU-1}" ]; then echo '{"verdict":"fit","findings":[],"readings":{"gpus":[]}}'; exit 0; fi;`, fit), 1)+"\nall=$*")
		member := func(log slog.Handler) (int, error) {
			r := &role{spec: small(), log: slog.New(log)}
			r.spec.Worker.GPUs, r.spec.Worker.Replicas, r.spec.Worker.MinReplicas, r.spec.GPUHealth = 1, 2, 2, spec.GPUHealthRequired
			s, err := r.takeGPU(ctx, devices)
			if err != nil {
				return -1, err
			}
			t.Cleanup(s.Release)
			return s.Device.Index, nil
		}
		var other int
		var err error
		between := told(func() { // the first one has released GPU 0, and takes no other one yet
			if passes {
				must(0, os.WriteFile(fit, nil, 0o600))
				other, err = member(slog.DiscardHandler)
			}
		})
		if got, err := member(between); got != 1 || err != nil {
			t.Errorf("passes %v: the first worker takes GPU %d, %v", passes, got, err)
		}
		if !passes {
			other, err = member(slog.DiscardHandler)
		}
		if passes && (other != 0 || err != nil) || !passes && !errors.As(err, new(worker.GPUError)) {
			t.Errorf("passes %v: the second worker takes GPU %d, %v", passes, other, err)
		}
	}
}

// told is a log that calls a function where an unfit GPU is left out.
type told func()

func (told) Enabled(context.Context, slog.Level) bool { return true }
func (f told) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "unfit GPU is left out") {
		f()
	}
	return nil
}
func (f told) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f told) WithGroup(string) slog.Handler      { return f }

// A worker expects as many GPUs as it asked for, and at least one where it has instances of
// MIG. The GPU of a slot is one.
func TestCheckExpectsTheGPUsOfAWorker(t *testing.T) {
	for _, c := range []struct {
		cuda, container string
		names           []string
		want            string
	}{
		{"", "", nil, "--count 2"},
		{"", "GPU-1,GPU-2", nil, "--count 2"},
		{"MIG-1,MIG-2", "", nil, "--count 1"},
		{"", "MIG-1,MIG-2", nil, "--count 1"},
		{"", "", []string{"GPU-1"}, "--count 2 --gpus GPU-1"},
	} {
		stokeGPU(t, "")
		t.Setenv("CUDA_VISIBLE_DEVICES", c.cuda)
		t.Setenv("NVIDIA_VISIBLE_DEVICES", c.container)
		path := probe.Path()
		script := `echo "$@" > "$0.args"; echo '{"verdict":"fit","findings":[],"readings":{"gpus":[]}}'`
		must(0, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
		r := &role{spec: small(), log: slog.New(slog.DiscardHandler)}
		r.spec.Worker.GPUs, r.spec.GPUHealth = 2, spec.GPUHealthRequired
		if err := r.checkGPUs(t.Context(), c.names); err != nil {
			t.Error(err)
		}
		if args := string(must(os.ReadFile(path + ".args"))); args != "check --json "+c.want+"\n" {
			t.Errorf("%+v: %s", c, args)
		}
	}
}

// A worker of a built-in model is checked with the GPU of its slot only, and gives an
// unfit one back.
func TestGPUHealthOfASlot(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for health, phase := range map[string]spec.Phase{spec.GPUHealthRequired: spec.Stopped, spec.GPUHealthReported: spec.Succeeded} {
		t.Run(health, func(t *testing.T) {
			stokeGPU(t, verdict(gpu.Unfit, 1, "XID 79"))
			s := small()
			s.Worker.GPUs, s.Worker.Replicas, s.GPUHealth = 1, 1, health
			f := run.Folder(filepath.Join(t.TempDir(), "run"))
			if err := f.Create(s); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "supervise", "--run", string(f))
			cmd.Env = append(os.Environ(), asTrainer+"=1", pretended+"=1", pretendedHome+"="+filepath.Join(t.TempDir(), "slots"))
			r := relaunchBy(t, f, cmd)
			r.start()
			if st := r.wait(); st.Phase != phase || phase == spec.Stopped && st.Cause != spec.CauseGPU {
				r.dump()
				t.Errorf("status %+v", st)
			}
		})
	}
}
