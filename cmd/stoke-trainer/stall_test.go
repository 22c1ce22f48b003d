package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// commitTimes returns when a run's last updates were committed, as far as the end
// of its history tells.
func commitTimes(b *testing.B, f run.Folder) []time.Time { return eventTimes(b, f, spec.EventUpdate) }

// eventTimes returns the times of the newest events of a type.
func eventTimes(b *testing.B, f run.Folder, kind spec.EventType) (times []time.Time) {
	b.Helper()
	file, err := os.Open(f.Metrics())
	if err != nil {
		return nil // there is none yet
	}
	defer file.Close()
	const tail = 4 << 20
	if info, err := file.Stat(); err == nil && info.Size() > tail {
		file.Seek(-tail, io.SeekEnd)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e spec.Event
		if json.Unmarshal(line, &e) == nil && e.Type == kind { // the first line may be a part
			times = append(times, e.Time)
		}
	}
	return times
}

// longestGap returns the longest time between two updates around a window.
func longestGap(times []time.Time, from, to time.Time) (longest time.Duration) {
	for i := 1; i < len(times); i++ {
		if times[i].After(from) && times[i-1].Before(to) {
			longest = max(longest, times[i].Sub(times[i-1]))
		}
	}
	return longest
}

// workersOf returns the process ids of a run's workers.
func workersOf(program string, f run.Folder) []int { return processesOf(program, f, "worker") }

// processesOf returns the process ids of a run's processes of one role.
func processesOf(program string, f run.Folder, role string) (pids []int) {
	for _, path := range must(filepath.Glob("/proc/[0-9]*/cmdline")) {
		args, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(args), program+"\x00"+role+"\x00") && strings.Contains(string(args), f.Spec()) {
			var pid int
			if json.Unmarshal([]byte(filepath.Base(filepath.Dir(path))), &pid) == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// BenchmarkKilledWorker kills one of the workers in each iteration, and prints
// how long training stood still then, beside the longest time in which an empty
// loop of this process did.
func BenchmarkKilledWorker(b *testing.B) {
	s := small()
	s.Worker.Replicas = 3
	b.Run("now", func(b *testing.B) { killWorkers(b, trainer, s, longestStall) })
	if before := os.Getenv("STOKE_TRAINER_BEFORE"); before != "" {
		b.Run("before", func(b *testing.B) { killWorkers(b, before, s, longestStall) })
	}
}

// aroundKill is the time after a kill that is looked at.
const aroundKill = 1500 * time.Millisecond

// longestStall returns the longest time between two updates after a kill.
func longestStall(b *testing.B, f run.Folder, at time.Time) time.Duration {
	return longestGap(commitTimes(b, f), at, at.Add(aroundKill))
}

// nextUpdate returns the time from a kill to the first update of the group that is formed
// after it; aroundKill: there was none.
func nextUpdate(b *testing.B, f run.Folder, at time.Time) time.Duration {
	for _, formed := range eventTimes(b, f, spec.EventRestore) {
		if formed.Before(at) {
			continue
		}
		for _, update := range commitTimes(b, f) {
			if update.After(formed) {
				return update.Sub(at)
			}
		}
		break
	}
	return aroundKill
}

// BenchmarkLostMember kills one of the four members of an all-reduce in each iteration,
// and prints the time to the next update, which the three others make.
func BenchmarkLostMember(b *testing.B) {
	s := small()
	s.Strategy, s.ParameterServer.Replicas, s.Worker.Replicas = spec.StrategyAllReduce, 0, 4
	killWorkers(b, trainer, s, nextUpdate)
}

func killWorkers(b *testing.B, program string, s spec.Spec, stall func(*testing.B, run.Folder, time.Time) time.Duration) {
	b.Helper()
	s.BatchSize, s.MicroBatch, s.Epochs, s.LearningRate = 64, 0, 1_000_000, 1e-4
	s.Evaluation.EverySteps, s.Checkpoint.EverySteps = 0, 0
	f := run.Folder(filepath.Join(b.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, "supervise", "--run", string(f))
	cmd.Stdin = strings.NewReader(run.Go + "\n")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}()
	var late atomic.Int64 // the empty loop's longest stall
	go func() {
		for at := time.Now(); ; at = time.Now() {
			time.Sleep(time.Millisecond)
			if d := int64(time.Since(at) - time.Millisecond); d > late.Load() {
				late.Store(d)
			}
		}
	}()
	var stalls, empty []time.Duration
	for b.Loop() {
		for deadline := time.Now().Add(5 * time.Minute); len(workersOf(program, f)) < s.Worker.Replicas-1 || len(commitTimes(b, f)) == 0; time.Sleep(50 * time.Millisecond) {
			select {
			case err := <-ended:
				ended <- err
				b.Fatalf("after %d kills the run ended: %v", len(stalls), err)
			default:
			}
			if time.Now().After(deadline) {
				b.Fatal("killed workers do not come back")
			}
		}
		time.Sleep(time.Second + rand.N(100*time.Millisecond)) // it joins, and computes again
		late.Store(0)
		pids, at := workersOf(program, f), time.Now()
		syscall.Kill(pids[len(stalls)%len(pids)], syscall.SIGKILL)
		time.Sleep(aroundKill)
		stalls = append(stalls, stall(b, f, at))
		empty = append(empty, time.Duration(late.Load()))
		b.Logf("stall %v, empty loop %v", stalls[len(stalls)-1], empty[len(empty)-1])
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	longest := func(all []time.Duration) (most time.Duration) {
		for _, d := range all {
			most = max(most, d)
		}
		return most
	}
	b.ReportMetric(ms(middle(stalls)), "ms-median-stall")
	b.ReportMetric(ms(longest(stalls)), "ms-longest-stall")
	b.ReportMetric(ms(middle(empty)), "ms-median-empty-loop")
	b.ReportMetric(ms(longest(empty)), "ms-longest-empty-loop")
}
