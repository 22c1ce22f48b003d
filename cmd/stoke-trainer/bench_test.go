package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/ledger"
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

// timed runs an experiment with a stoke-trainer, and returns its status at the end and
// the most memory of a server, where it has servers.
func timed(b *testing.B, program string, s spec.Spec) (st spec.Status, memory int64) {
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
			return st, memory
		case <-time.After(200 * time.Millisecond):
		}
		if s.ParameterServer.Replicas == 0 { // a look at all processes takes CPU time of the run
			continue
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

// kernel returns the records per second that all workers of a run compute at once, each on
// its threads: the steps of the engine count, the reads between them do not. The second
// number is per second of CPU time, for workers of one thread. As in a run, the records of
// each step are others: in steps of the same records a processor predicts which of their
// values are zero, and gonum's kernel passes over those.
func kernel(b *testing.B, s spec.Spec) (rate, perCPU float64) {
	b.Helper()
	w, err := workload.Open(&s)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	var workers errgroup.Group
	all := make([]alone, s.Worker.Replicas)
	used := cpuSeconds(b, syscall.RUSAGE_SELF)
	for i := range s.Worker.Replicas {
		workers.Go(func() (err error) {
			all[i], err = stepAlone(b.Context(), s, w, i)
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		b.Fatal(err)
	}
	var records, in, total float64
	for _, w := range all {
		rate += w.records / w.in.Seconds()
		records += w.records
		in += w.in.Seconds()
		total += w.total.Seconds()
	}
	return rate, records / (in / total * (cpuSeconds(b, syscall.RUSAGE_SELF) - used))
}

// alone is what a worker has computed by itself: records, in this time within its steps, and
// in this time with the reads between them.
type alone struct {
	records   float64
	in, total time.Duration
}

// stepAlone computes gradients of one worker's records for kernelTime.
func stepAlone(ctx context.Context, s spec.Spec, w *workload.Workload, worker int) (a alone, err error) {
	micro, info := s.MicroBatchSize(), w.Train.Info()
	r, err := cpu.New().Build(w.Model, engine.Options{Threads: s.Worker.Threads, MicroBatch: micro, Seed: s.Seed})
	if err != nil {
		return a, err
	}
	defer r.Close()
	batch := engine.Batch{Records: make([]int64, micro), Weights: slices.Repeat([]float32{1}, micro)}
	features, labels := make([]byte, micro*info.FeatureBytes()), make([]byte, micro*info.TargetBytes())
	target, targets := info.Target.Batch(micro)
	batch.Inputs = []engine.Input{
		{Type: info.Type, Shape: append([]int{micro}, info.Shape...), Data: features},
		{Type: target, Shape: targets, Data: labels},
	}
	order := ledger.NewOrder(s.Seed, worker, info.Records, 0)
	for began, steps := time.Now(), 0; a.total < kernelTime; steps++ {
		for i := range batch.Records {
			batch.Records[i] = order.RecordAt(int64(steps*micro+i) % info.Records)
		}
		if err := w.Train.Read(ctx, batch.Records, features, labels); err != nil {
			return a, err
		}
		staged, err := r.Stage(ctx, &batch, nil)
		if err != nil {
			return a, err
		}
		from := time.Now()
		_, err = r.Step(ctx, staged, engine.Pass{First: steps == 0, LossScale: 1})
		a.in += time.Since(from)
		a.total, a.records = time.Since(began), a.records+float64(micro)
		if staged.Release(); err != nil {
			return a, err
		}
	}
	return a, nil
}

// measured is what the runs of one program gave, by the metric.
type measured map[string][]float64

func (m measured) add(metric string, v float64) { m[metric] = append(m[metric], v) }

// programs returns the trainers that are measured in turn, and a place for what each gives.
func programs() (all []string, found []measured) {
	all = append(all, trainer)
	if before := os.Getenv("STOKE_TRAINER_BEFORE"); before != "" {
		all = append(all, before)
	}
	for range all {
		found = append(found, make(measured))
	}
	return all, found
}

// report reports the medians of each program.
func report(b *testing.B, found []measured) {
	for i, suffix := range []string{"", "-before"}[:len(found)] {
		for metric, all := range found[i] {
			b.ReportMetric(middle(all), metric+suffix)
		}
	}
	if rates := found[0]["records/s"]; len(found) > 1 && len(rates) > 0 {
		var ratios []float64
		for i, rate := range rates {
			ratios = append(ratios, rate/found[1]["records/s"][i])
		}
		b.ReportMetric(middle(ratios), "×before")
	}
}

// runtimes returns the experiments of BenchmarkRuntime: the quickstart's model with both
// strategies, and 100 updates of ElasticDL's tutorial, of 64 records of each of two workers.
func runtimes(b *testing.B) map[string]spec.Spec {
	all := make(map[string]spec.Spec)
	data := must(prepareDigits(filepath.Join(b.TempDir(), "quickstart"), 20_000))
	for _, batch := range []int{64, 256, 1024} {
		for strategy, servers := range map[string]int{spec.StrategyParameterServer: 1, spec.StrategyAllReduce: 0} {
			s := small()
			s.Dataset, s.Strategy, s.ParameterServer.Replicas = data, strategy, servers
			s.BatchSize, s.MicroBatch, s.Optimizer.Momentum, s.Epochs = batch, 0, 0.9, 12
			all[fmt.Sprintf("mlp/%s/batch=%04d", strategy, batch)] = s
		}
	}
	s := small()
	s.Name, s.Model, s.Strategy, s.ParameterServer.Replicas = "elasticdl", "mnist-cnn", spec.StrategyAllReduce, 0
	s.BatchSize, s.BatchPer, s.MicroBatch, s.Epochs, s.MaxSteps = 64, spec.BatchPerWorker, 0, 1, 100
	s.Dataset = must(prepareDigits(filepath.Join(b.TempDir(), "digits"), 12_800))
	all["elasticdl"] = s
	return all
}

// BenchmarkRuntime trains whole runs, in turn with the program that
// STOKE_TRAINER_BEFORE names: the same machine is never equally fast for long.
// The share is the run's rate by that of the kernel on the same cores, measured
// around it: it means something on a quiet machine. The share of the CPU time
// that all roles use, from their start to their end, means something on a busy
// one as well. The overhead is the additional time of an update.
func BenchmarkRuntime(b *testing.B) {
	all := runtimes(b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			s := all[name]
			trainers, found := programs()
			for b.Loop() {
				alone, aloneCPU := kernel(b, s)
				for i, p := range trainers {
					used := cpuSeconds(b, syscall.RUSAGE_CHILDREN)
					st, memory := timed(b, p, s)
					used = cpuSeconds(b, syscall.RUSAGE_CHILDREN) - used
					after, afterCPU := kernel(b, s)
					rate, rateCPU := (alone+after)/2, (aloneCPU+afterCPU)/2
					alone, aloneCPU = after, afterCPU
					records, update := st.Metrics["samples_per_second"], 1e6*st.Metrics["training_seconds"]/float64(st.Step)
					share, shareCPU := records/rate, float64(st.Records)/used/rateCPU
					f := found[i]
					f.add("records/s", records)
					f.add("of-kernel", share)
					f.add("of-kernel-by-CPU", shareCPU)
					f.add("µs-overhead/update", update*(1-share))
					f.add("µs-kernel/record", 1e6/rate)
					b.Logf("%s: %.0f records/s, %.2f of the kernel's (%s on the cores of %d workers: %.2f µs per record), %.2f by CPU time; "+
						"%.0f µs per update, %.0f of them overhead; %d MB in the server", filepath.Base(filepath.Dir(p)),
						records, share, cpu.Kernel, s.Worker.Replicas, 1e6/rate, shareCPU, update, update*(1-share), memory>>20)
				}
			}
			report(b, found)
		})
	}
}

// BenchmarkShortRun measures the CPU time of 200 updates as in the tutorial of the chart
// distributed-tensorflow: 20 records an update, two servers, two workers, and a
// perceptron with 128 hidden units (there: 100). What a run of one update takes, start and
// end included, does not count.
func BenchmarkShortRun(b *testing.B) {
	data := must(prepareDigits(filepath.Join(b.TempDir(), "digits"), 4000))
	for _, asynchronous := range []bool{true, false} {
		b.Run(fmt.Sprintf("asynchronous=%t", asynchronous), func(b *testing.B) {
			s := small()
			s.Dataset, s.Asynchronous, s.ParameterServer.Replicas = data, asynchronous, 2
			s.BatchSize, s.MicroBatch, s.Epochs = 20, 0, 2
			trainers, found := programs()
			for b.Loop() {
				for i, p := range trainers {
					var used [2]float64
					for j, steps := range []int{1, 201} {
						s.MaxSteps = steps
						before := cpuSeconds(b, syscall.RUSAGE_CHILDREN)
						timed(b, p, s)
						used[j] = cpuSeconds(b, syscall.RUSAGE_CHILDREN) - before
					}
					found[i].add("CPU-s/200-updates", used[1]-used[0])
					found[i].add("CPU-s/start", used[0])
					b.Logf("%s: 200 updates took %.2f s of CPU time, and a run of one update %.2f s",
						filepath.Base(filepath.Dir(p)), used[1]-used[0], used[0])
				}
			}
			report(b, found)
		})
	}
}

func middle[T cmp.Ordered](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
