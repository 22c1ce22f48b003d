package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
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

// BenchmarkRuntime trains whole runs, in turn with the program that
// STOKE_TRAINER_BEFORE names: the same machine is never equally fast for long.
func BenchmarkRuntime(b *testing.B) {
	programs := []string{trainer}
	if before := os.Getenv("STOKE_TRAINER_BEFORE"); before != "" {
		programs = append(programs, before)
	}
	for _, batch := range []int{64, 256, 1024} {
		b.Run(fmt.Sprintf("mlp/batch=%d", batch), func(b *testing.B) {
			s := small()
			s.BatchSize, s.MicroBatch, s.Optimizer.Momentum, s.Epochs = batch, 0, 0.9, 20
			found := make([][]float64, len(programs))
			var ratios []float64
			for b.Loop() {
				for i, p := range programs {
					records, seconds, memory := timed(b, p, s)
					found[i] = append(found[i], records)
					b.Logf("%s: %.0f records/s, %.2f ms per update, %d MB in the server", p, records, 1000*seconds, memory>>20)
				}
				if n := len(found[0]) - 1; len(programs) > 1 {
					ratios = append(ratios, found[0][n]/found[1][n])
				}
			}
			middle := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
			b.ReportMetric(middle(found[0]), "records/s")
			if len(ratios) > 0 {
				b.ReportMetric(middle(found[1]), "records/s-before")
				b.ReportMetric(middle(ratios), "×before")
			}
		})
	}
}
