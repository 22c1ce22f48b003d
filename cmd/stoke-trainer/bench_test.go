package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/workload"
)

// peak is the most memory that a process has had, in bytes.
func peak(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// timed runs an experiment with a stoke-trainer: records and updates per second,
// and a server's memory.
func timed(b *testing.B, program string, s spec.Spec) (records, seconds float64, memory int64) {
	b.Helper()
	f := run.Folder(filepath.Join(b.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, "supervise", "--run", string(f))
	cmd.Stdin = strings.NewReader(run.Go + "\n")
	ended := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			st, serr := f.Status()
			if err != nil || serr != nil || st.Phase != spec.Succeeded {
				b.Fatalf("%s: %v, %v, %+v", program, err, serr, st)
			}
			return st.Metrics["samples_per_second"], st.Metrics["training_seconds"] / float64(st.Step), memory
		case <-time.After(200 * time.Millisecond):
		}
		for _, stat := range must(filepath.Glob("/proc/[0-9]*/cmdline")) {
			args, err := os.ReadFile(stat)
			if line := string(args); err == nil && strings.HasPrefix(line, program+"\x00ps\x00") && strings.Contains(line, string(f)) {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
				memory = max(memory, peak(pid))
			}
		}
	}
}

// kernelTime is how long the kernel alone is measured, before each run.
const kernelTime = time.Second

// cpuSeconds returns the CPU time of this process, or of its children that have
// ended, with theirs.
func cpuSeconds(b *testing.B, who int) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// kernel returns the records per second that all workers of a run compute at
// once, each on its threads, without reading, exchange or updates; and per
// second of CPU time.
func kernel(b *testing.B, s spec.Spec) (rate, perCPU float64) {
	b.Helper()
	w, err := workload.Open(&s)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	micro := s.MicroBatchSize()
	info := w.Train.Info()
	batch := engine.Batch{Records: make([]int64, micro), Weights: make([]float32, micro)}
	features, labels := make([]byte, micro*info.FeatureBytes()), make([]byte, micro*4)
	for i := range batch.Records {
		batch.Records[i], batch.Weights[i] = int64(i), 1
	}
	if err := w.Train.Read(b.Context(), batch.Records, features, labels); err != nil {
		b.Fatal(err)
	}
	batch.Inputs = []engine.Input{
		{Type: info.Type, Shape: append([]int{micro}, info.Shape...), Data: features},
		{Type: model.I32, Shape: []int{micro}, Data: labels},
	}
	var computed atomic.Int64
	var workers errgroup.Group
	began, used := time.Now(), cpuSeconds(b, syscall.RUSAGE_SELF)
	for range s.Worker.Replicas {
		workers.Go(func() error {
			r, err := cpu.New().Build(w.Model, engine.Options{Threads: s.Worker.Threads, MicroBatch: micro, Seed: s.Seed})
			if err != nil {
				return err
			}
			defer r.Close()
			staged, err := r.Stage(b.Context(), &batch, nil)
			for first := true; err == nil && time.Since(began) < kernelTime; first = false {
				_, err = r.Step(b.Context(), staged, engine.Pass{First: first, LossScale: 1})
				computed.Add(int64(micro))
			}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		b.Fatal(err)
	}
	n := float64(computed.Load())
	return n / time.Since(began).Seconds(), n / (cpuSeconds(b, syscall.RUSAGE_SELF) - used)
}

// measured is what the runs of one program gave.
type measured struct{ rates, shares, cpuShares, overheads []float64 }

// BenchmarkRuntime trains whole runs, in turn with the program that
// STOKE_TRAINER_BEFORE names: the same machine is never equally fast for long.
// The share is the run's rate by that of the kernel on the same cores, measured
// around it: it means something on a quiet machine. The share of the CPU time
// that all roles use, from their start to their end, means something on a busy
// one as well. The overhead is the additional time of an update.
func BenchmarkRuntime(b *testing.B) {
	programs := []string{trainer}
	if before := os.Getenv("STOKE_TRAINER_BEFORE"); before != "" {
		programs = append(programs, before)
	}
	for _, batch := range []int{64, 256, 1024} {
		b.Run(fmt.Sprintf("mlp/batch=%d", batch), func(b *testing.B) {
			s := small()
			s.BatchSize, s.MicroBatch, s.Optimizer.Momentum, s.Epochs = batch, 0, 0.9, 100
			found := make([]measured, len(programs))
			var ratios []float64
			for b.Loop() {
				alone, aloneCPU := kernel(b, s)
				for i, p := range programs {
					used := cpuSeconds(b, syscall.RUSAGE_CHILDREN)
					records, seconds, memory := timed(b, p, s)
					used = cpuSeconds(b, syscall.RUSAGE_CHILDREN) - used
					after, afterCPU := kernel(b, s)
					rate, f := (alone+after)/2, &found[i]
					cpuShare := float64(s.Epochs) * 1500 / used / ((aloneCPU + afterCPU) / 2)
					alone, aloneCPU = after, afterCPU
					f.cpuShares = append(f.cpuShares, cpuShare)
					overhead := 1000 * (seconds - float64(batch)/rate)
					f.rates, f.shares, f.overheads = append(f.rates, records), append(f.shares, records/rate), append(f.overheads, overhead)
					b.Logf("%s: %.0f records/s, %.2f of the kernel's %.0f, %.2f by CPU time; %.2f ms per update, %.2f of them overhead; %d MB in the server",
						filepath.Base(filepath.Dir(p)), records, records/rate, rate, cpuShare, 1000*seconds, overhead, memory>>20)
				}
				if n := len(found[0].rates) - 1; len(programs) > 1 {
					ratios = append(ratios, found[0].rates[n]/found[1].rates[n])
				}
			}
			b.ReportMetric(middle(found[0].rates), "records/s")
			b.ReportMetric(middle(found[0].shares), "of-kernel")
			b.ReportMetric(middle(found[0].cpuShares), "of-kernel-by-CPU")
			b.ReportMetric(middle(found[0].overheads), "ms-overhead/update")
			if len(ratios) > 0 {
				b.ReportMetric(middle(found[1].rates), "records/s-before")
				b.ReportMetric(middle(found[1].shares), "of-kernel-before")
				b.ReportMetric(middle(found[1].cpuShares), "of-kernel-by-CPU-before")
				b.ReportMetric(middle(found[1].overheads), "ms-overhead/update-before")
				b.ReportMetric(middle(ratios), "×before")
			}
		})
	}
}

func middle[T cmp.Ordered](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
