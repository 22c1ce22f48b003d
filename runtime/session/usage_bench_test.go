package session

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/usage"
)

// sampleTime is the time between two samples of a role.
const sampleTime = 5 * time.Second

// processorTime returns the processor time that this process has had.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// reportShare reports the share of a core that one role costs which does each
// iteration every 5 seconds.
func reportShare(b *testing.B, began time.Duration) {
	b.Helper()
	b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N)/sampleTime.Seconds()*100, "%core/role")
}

// start starts a program that sleeps.
func start(b *testing.B, name string, args ...string) int {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	return cmd.Process.Pid
}

// BenchmarkUsage measures what usage costs for each role, of 4 processes on a machine
// of at least 100: a sample with its report, the coordinator's part of that included,
// with and without encryption; and what the coordinator writes for it.
func BenchmarkUsage(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("there is no /proc here")
	}
	const processes = 100
	root := start(b, "sh", "-c", "sleep 9999 & sleep 9999 & sleep 9999 & wait")
	for pids, _ := filepath.Glob("/proc/[0-9]*"); len(pids) < processes; pids, _ = filepath.Glob("/proc/[0-9]*") {
		start(b, "sleep", "9999")
	}
	for _, encrypted := range []bool{false, true} {
		b.Run(fmt.Sprintf("report/encrypted=%v", encrypted), func(b *testing.B) { benchmarkReport(b, root, encrypted) })
	}
	b.Run("written", benchmarkWritten)
}

func benchmarkReport(b *testing.B, root int, encrypted bool) {
	c := newBench(b, 2)
	scheme := "http"
	if encrypted {
		scheme = "https"
		key, err := certificate.Make("run")
		if err != nil {
			b.Fatal(err)
		}
		c.options.Credentials.Certificate, c.options.Credentials.Key = &key.Pin, key
	}
	c.begin(c.opened())
	client := api.New(scheme+"://"+c.options.API.Addr().String(), token, c.options.Credentials.Certificate)
	defer client.Close()
	meter := usage.NewProcesses(func() []int { return []int{root} })
	began := processorTime(b)
	for b.Loop() {
		s, err := meter.Sample(time.Now())
		if err != nil || s.Processes != 4 {
			b.Fatalf("sample %+v, %v", s, err)
		}
		err = client.Usage(context.Background(), spec.UsageReport{Role: "worker", Usage: spec.Usage{CPU: 1.5, Memory: s.Memory, Processes: s.Processes}})
		if err != nil {
			b.Fatal(err)
		}
	}
	reportShare(b, began)
}

// benchmarkWritten writes the samples of 10 roles between 20,000 updates, and merges
// them.
func benchmarkWritten(b *testing.B) {
	c := newBench(b, 10)
	c.options.Log = slog.New(slog.DiscardHandler)
	s := c.opened()
	if err := s.Begin(); err != nil {
		b.Fatal(err)
	}
	for step := range int64(20_000) {
		s.Note(spec.Event{Type: spec.EventUpdate, Step: step, Records: 32, Loss: 0.5, Norm: 1.25})
	}
	began, now := processorTime(b), time.Unix(0, 0)
	for i := 0; b.Loop(); i++ {
		server{s.Session}.takeUsage(now, "worker-"+strconv.Itoa(i%10), spec.Usage{CPU: 1.5, Memory: 1 << 30, Processes: 4})
		if i%10 == 0 {
			now = now.Add(sampleTime)
			if err := s.history.Thin(func() error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	reportShare(b, began)
	if info, err := os.Stat(s.Folder.Metrics()); err == nil {
		b.ReportMetric(float64(info.Size()), "bytes")
	}
}
