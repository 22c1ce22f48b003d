package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// stepTime has, in the environment of the test's own program, the time of each step.
const stepTime = "STOKE_TRAINER_TEST_STEP"

// inSteps returns the variables of the test's own program as a trainer whose steps take that long.
func inSteps(pause string) []string { return []string{asTrainer + "=1", stepTime + "=" + pause} }

// sleeping is an engine whose steps take the time in stepTime.
type sleeping struct{ engine.Engine }

func (e sleeping) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	pause, err := time.ParseDuration(os.Getenv(stepTime))
	if err != nil {
		return nil, err
	}
	r, err := e.Engine.Build(m, o)
	return sleepingReplica{r, pause}, err
}

type sleepingReplica struct {
	engine.Replica
	pause time.Duration
}

func (r sleepingReplica) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	time.Sleep(r.pause)
	return r.Replica.Step(ctx, s, p)
}

// BenchmarkGoodput measures the goodput of a run whose steps take 0.2 s, and that loses one
// of its four workers every 100 updates: the time that a run without losses takes, by the time
// that it took. A third run, which saves a checkpoint every 25 updates, restarts all its
// processes at each loss. The three train beside each other, on the same busy or idle machine.
func BenchmarkGoodput(b *testing.B) {
	const every, least = 100, 0.9
	losses := 20
	if text := os.Getenv("STOKE_LOSSES"); text != "" {
		losses = must(strconv.Atoi(text))
	}
	for b.Loop() {
		elastic := &lossyRun{every: every, losses: losses, lose: func(r *lossyRun, i int) {
			if pids := processesOf(r.program, r.folder, "worker"); len(pids) > 0 {
				_ = syscall.Kill(pids[i%len(pids)], syscall.SIGKILL)
			}
		}}
		restarted := &lossyRun{every: every, losses: losses, checkpoints: 25, lose: func(r *lossyRun, _ int) {
			for _, role := range []string{"coordinator", "worker"} {
				for _, pid := range processesOf(r.program, r.folder, role) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}}
		whole := &lossyRun{every: every, losses: losses, lose: func(*lossyRun, int) {}}
		var all errgroup.Group
		for _, r := range []*lossyRun{whole, elastic, restarted} {
			all.Go(func() error { return r.train(b) })
		}
		if err := all.Wait(); err != nil {
			b.Fatal(err)
		}
		goodput, restarting := whole.took.Seconds()/elastic.took.Seconds(), whole.took.Seconds()/restarted.took.Seconds()
		b.Logf("%d updates took %v without losses, %v with %d losses (goodput %.3f), %v where all processes were restarted (goodput %.3f)",
			whole.updates, whole.took, elastic.took, losses, goodput, restarted.took, restarting)
		b.ReportMetric(goodput, "goodput")
		b.ReportMetric(restarting, "goodput-restarting-all")
		b.ReportMetric(whole.took.Seconds()/float64(whole.updates), "s/update")
		if goodput < least {
			b.Fatalf("goodput %.3f is less than %.1f", goodput, least)
		}
	}
}

// lossyRun is a run that loses processes.
type lossyRun struct {
	every, losses int
	checkpoints   int // updates from one checkpoint to the next; 0: only the last
	lose          func(r *lossyRun, i int)

	program string
	folder  run.Folder
	updates int64         // from the first one on
	took    time.Duration // from the first update to the last
}

// train makes the updates, and measures them.
func (r *lossyRun) train(b *testing.B) error {
	s := small()
	s.Strategy, s.ParameterServer.Replicas, s.Worker.Replicas = spec.StrategyAllReduce, 0, 4
	s.Epochs, s.LearningRate, s.Evaluation.EverySteps = 1_000_000, 1e-4, 0
	s.Checkpoint.EverySteps, s.Checkpoint.EverySeconds = r.checkpoints, 0
	s.MaxSteps = r.every * (r.losses + 1)
	r.folder = run.Folder(filepath.Join(b.TempDir(), "run"))
	if err := r.folder.Create(s); err != nil {
		return err
	}
	r.program = must(os.Executable())
	cmd := exec.Command(r.program, "supervise", "--run", string(r.folder))
	cmd.Env = append(os.Environ(), inSteps("200ms")...)
	cmd.Stdin = strings.NewReader(run.Go + "\n")
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	at := func(i int) int64 { return int64(i*r.every + 12) } // midway between two checkpoints
	for lost := 0; ; {
		select {
		case err := <-ended:
			if err == nil {
				err = r.measure(b)
			}
			return err
		case <-time.After(20 * time.Millisecond):
		}
		if st, err := r.folder.Status(); err == nil && lost < r.losses && st.Step >= at(lost+1) {
			r.lose(r, lost)
			lost++
		}
	}
}

// measure reads the time of the updates from the run's history.
func (r *lossyRun) measure(b *testing.B) error {
	data, err := os.ReadFile(r.folder.Metrics())
	if err != nil {
		return err
	}
	var first, last spec.Event
	for line := range bytes.Lines(data) {
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Type != spec.EventUpdate {
			continue
		}
		if last = e; first.Step == 0 {
			first = e
		}
	}
	r.updates, r.took = last.Step-first.Step, last.Time.Sub(first.Time)
	if want := int64(r.every*(r.losses+1)) - first.Step; r.updates != want {
		b.Errorf("the run made %d updates after its first one, want %d", r.updates, want)
	}
	return nil
}
