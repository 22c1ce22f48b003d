package program

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRanksGetTheirEnvironment(t *testing.T) {
	s := newSpec(t, "environment", 2)
	s.Command = append(s.Command, "--lr={{lr}}")
	s.Parameters = map[string]any{"lr": 0.5, "name": "x"}
	g, r := launch(t, s)
	if result := g.Wait(); result.Cause != Succeeded || result.First != -1 || len(result.Leftovers) != 0 {
		t.Fatalf("%+v", result)
	}
	for local, rank := range []string{"0", "1"} {
		text, err := os.ReadFile(filepath.Join(s.Folder, "environment-"+rank))
		if err != nil {
			t.Fatal(err)
		}
		var seen struct{ Args, Environment []string }
		if err := json.Unmarshal(text, &seen); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"RANK=" + rank, "LOCAL_RANK=" + rank, "WORLD_SIZE=2", "OMP_NUM_THREADS=1", "STOKE_PARAM_LR=0.5"} {
			if !slices.Contains(seen.Environment, want) {
				t.Errorf("rank %s has no %s", rank, want)
			}
		}
		if diff := cmp.Diff([]string{"--lr=0.5"}, seen.Args); diff != "" {
			t.Error(diff)
		}
		if got := g.Tail(local); len(got) != 1 || got[0] != "input /dev/null <nil> group true" {
			t.Errorf("%q", got)
		}
	}
	text, err := os.ReadFile(filepath.Join(s.Scratch, "parameters.json"))
	if err != nil || string(text) != `{"lr":0.5,"name":"x"}`+"\n" {
		t.Errorf("%s, %v", text, err)
	}
	if diff := cmp.Diff([]Kind{Started, Started, Ended, Ended}, kinds(r.all())); diff != "" {
		t.Error(diff)
	}
}

func TestStopEndsAProgramThatIgnoresSIGTERM(t *testing.T) {
	s := newSpec(t, "deaf", 2)
	s.Grace = 0
	g, r := launch(t, s)
	ready(t, g, 1)
	result := g.Stop(t.Context())
	if result.Cause != Stopped || result.First != -1 {
		t.Errorf("%+v", result)
	}
	for _, e := range result.Ranks {
		if e.Signal != syscall.SIGKILL || !e.Asked || e.Lost {
			t.Errorf("%+v", e)
		}
	}
	if diff := cmp.Diff([]Kind{Started, Started, Terminating, Killing, Ended, Ended}, kinds(r.all())); diff != "" {
		t.Error(diff)
	}
}

func TestStopLetsAProgramMakeACheckpoint(t *testing.T) {
	s := newSpec(t, "polite", 1)
	g, r := launch(t, s)
	ready(t, g, 1)
	result := g.Stop(t.Context())
	if result.Cause != Stopped || !result.Ranks[0].OK() {
		t.Errorf("%+v", result)
	}
	path := filepath.Join(s.Checkpoints, "last.pt")
	if found := r.all(Complete); len(found) != 1 || found[0].Checkpoint != path || found[0].Rank != 0 {
		t.Errorf("%+v", found)
	}
	if all, err := Checkpoints(s.Checkpoints); err != nil || len(all) != 1 || all[0].Path != path {
		t.Error(all, err)
	}
	if len(r.all(Killing)) > 0 {
		t.Error("the program was killed")
	}
}

func TestStopLetsTheChildOfAShellMakeACheckpoint(t *testing.T) {
	s := newSpec(t, "child of a shell", 1)
	g, r := launch(t, s)
	ready(t, g, 1)
	results := make(chan Result)
	go func() { results <- g.Stop(context.Background()) }()
	r.await(t, Leftover, 1) // the shell has ended
	if err := os.WriteFile(filepath.Join(s.Folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if result := <-results; result.Cause != Stopped || result.Ranks[0].Signal != syscall.SIGTERM {
		t.Errorf("%+v", result)
	}
	if found := r.all(Complete); len(found) != 1 {
		t.Errorf("%+v", found)
	}
	if found := r.all(Metric); len(found) != 1 || found[0].Values["signals"] != 1 {
		t.Errorf("%+v", found)
	}
	if len(r.all(Killing)) > 0 {
		t.Error("the program was killed")
	}
}

func TestStopThatMayNotWait(t *testing.T) {
	g, r := launch(t, newSpec(t, "deaf", 1)) // an hour of grace
	ready(t, g, 1)
	if result := g.Stop(canceled()); result.Cause != Stopped || result.Ranks[0].Signal != syscall.SIGKILL {
		t.Errorf("%+v", result)
	}
	if diff := cmp.Diff([]Kind{Started, Terminating, Killing, Ended}, kinds(r.all())); diff != "" {
		t.Error(diff)
	}
	if result := g.Stop(t.Context()); result.Cause != Stopped {
		t.Errorf("stopped again: %+v", result)
	}
}

func TestProcessesThatLeaveAreEnded(t *testing.T) {
	s := newSpec(t, "forks", 2)
	s.Grace = 0
	g, r := launch(t, s)
	result := g.Wait()
	if result.Cause != Succeeded || len(result.Leftovers) > 0 {
		t.Errorf("%+v", result)
	}
	found := make(map[int]bool)
	for _, e := range r.all(Leftover) {
		found[e.PID] = true
	}
	for local := range 2 {
		lines := g.Tail(local)
		if len(lines) != 3 {
			t.Errorf("%q", lines)
		}
		for _, line := range lines {
			pid, err := strconv.Atoi(line)
			if err != nil {
				t.Fatal(err)
			}
			if !found[pid] {
				t.Errorf("the process %d is not reported", pid)
			}
			if _, err := readProcess(pid); err == nil {
				t.Errorf("the process %d is still there", pid)
			}
		}
	}
}

func TestProcessesThatLeaveAreAskedFirst(t *testing.T) {
	s := newSpec(t, "daemon", 1)
	var limits []time.Duration
	g, r := launch(t, s, func(m *machine) {
		m.after = func(d time.Duration) <-chan time.Time {
			if d != reapTime {
				limits = append(limits, d)
			}
			return make(chan time.Time) // no limit is over
		}
	})
	if result := g.Wait(); result.Cause != Succeeded {
		t.Errorf("%+v", result)
	}
	if _, err := os.Stat(filepath.Join(s.Folder, "tidy")); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]time.Duration{leftoverTime}, limits); diff != "" {
		t.Error(diff)
	}
	if found := r.all(Leftover); len(found) != 1 || found[0].PID == 0 || found[0].Text == "" {
		t.Errorf("%+v", found)
	}
}

// Without Spec.Sole, children of other parts of the process stay.
func TestOtherChildrenStay(t *testing.T) {
	other := exec.Command("sleep", "1000")
	s := newSpec(t, "forks", 1)
	s.Sole, s.Grace = false, 0
	g, r := launch(t, s)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	g.Wait()
	lines := g.Tail(0)
	for i, line := range lines {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		p, err := readProcess(pid)
		if gone := err != nil || p.zombie; gone != (i < 2) { // the last one cleared its environment
			t.Errorf("process %d of %d is gone: %v", i, len(lines), gone)
		}
		if i == 2 {
			p.signal(syscall.SIGKILL)
			awaitExit(pid)
			p.reap()
		}
	}
	if p, err := readProcess(other.Process.Pid); err != nil || p.zombie {
		t.Error("a process of another part was ended")
	}
	for _, e := range r.all(Leftover) {
		if e.PID == other.Process.Pid {
			t.Error("a process of another part is reported")
		}
	}
	for _, p := range childrenOf(t, os.Getpid()) { // sleeps of the shell
		if p.pid != other.Process.Pid {
			p.signal(syscall.SIGKILL)
			awaitExit(p.pid)
			p.reap()
		}
	}
}

func TestOrphansAreReapedWhileTheProgramRuns(t *testing.T) {
	s := newSpec(t, "orphan", 1)
	s.Grace = 0
	g, _ := launch(t, s, func(m *machine) {
		m.after = func(d time.Duration) <-chan time.Time {
			if d == reapTime {
				d = time.Millisecond
			}
			return time.After(d)
		}
	})
	ready(t, g, 1)
	for {
		if _, err := os.Stat(filepath.Join(s.Folder, "orphan")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for left := 0; left != 1; time.Sleep(time.Millisecond) { // only the rank
		left = len(childrenOf(t, os.Getpid()))
	}
	if result := g.Stop(t.Context()); result.Cause != Stopped {
		t.Errorf("%+v", result)
	}
}

func TestMuchOutputCostsLittleMemory(t *testing.T) {
	s := newSpec(t, "prints", 1)
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	g, r := launch(t, s, func(m *machine) { m.logBytes = limit })
	result := g.Wait()
	runtime.ReadMemStats(&after)
	if result.Cause != Succeeded || result.Ranks[0].Dropped != 0 {
		t.Errorf("%+v", result)
	}
	if rotated := len(r.all(Rotated)); rotated < 63 || rotated > 67 {
		t.Errorf("%d rotations of 64 MiB in files of 1 MiB", rotated)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 8<<20 {
		t.Errorf("%d bytes were allocated for 64 MiB of output", made)
	}
	sizes := make(map[string]int64)
	files, err := os.ReadDir(s.Logs)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		sizes[f.Name()] = info.Size()
	}
	if len(sizes) != 2 || sizes["rank-0.log"] > limit || sizes["rank-0.log.1"] > limit || sizes["rank-0.log.1"] < limit/2 {
		t.Errorf("%v", sizes)
	}
	if last := g.Tail(0); len(last) != tailLines || last[tailLines-1] != "the end" && last[tailLines-1] != strings.Repeat("x", tailColumn-1)+"…" {
		t.Errorf("%.40q", last)
	}
}

func TestOneLineOfControlCharacters(t *testing.T) {
	g, _ := launch(t, newSpec(t, "one line", 1))
	result := g.Wait()
	if result.Cause != Failed || result.Ranks[0].Code != 3 || len(result.Last) != 1 {
		t.Fatalf("%+v", result)
	}
	text := result.String()
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' }) || len(text) > 1000 || !strings.Contains(text, "X?X?") {
		t.Errorf("%q", text)
	}
	if !strings.HasPrefix(text, "rank 0 ended with 3; its last lines:\n") {
		t.Errorf("%q", text)
	}
}

func TestARankThatHasDoneItsWorkIsFine(t *testing.T) {
	g, r := launch(t, newSpec(t, "one hangs", 3))
	ended := r.await(t, Ended, 1)
	if ended[0].Rank != 0 || len(r.all(Terminating)) > 0 {
		t.Errorf("%+v", r.all())
	}
	result := g.Stop(t.Context())
	if result.Cause != Stopped || !result.Ranks[0].OK() || result.Ranks[0].Asked {
		t.Errorf("%+v", result)
	}
	for _, e := range result.Ranks[1:] {
		if e.Signal != syscall.SIGTERM || !e.Asked {
			t.Errorf("%+v", e)
		}
	}
}

func TestTheFirstRankThatFailsEndsTheOthers(t *testing.T) {
	g, r := launch(t, newSpec(t, "crashes", 3))
	result := g.Wait()
	if result.Cause != Failed || result.First != 1 || result.Ranks[1].Code != 1 || result.Ranks[1].Asked {
		t.Errorf("%+v", result)
	}
	for _, local := range []int{0, 2} {
		if e := result.Ranks[local]; e.Signal != syscall.SIGTERM || !e.Asked {
			t.Errorf("%+v", e)
		}
	}
	want := "rank 1 ended with 1; its last lines:\nTraceback (most recent call last):\nImportError: No module named 'torch'"
	if got := result.String(); got != want {
		t.Errorf("%q", got)
	}
	if diff := cmp.Diff([]Kind{Started, Started, Started, Ended, Terminating, Ended, Ended}, kinds(r.all())); diff != "" {
		t.Error(diff)
	}
	if first := r.all(Ended)[0]; first.Rank != 1 || first.PID != result.Ranks[1].PID {
		t.Errorf("%+v", first)
	}
}

func TestASlowStartIsNotAFailure(t *testing.T) {
	s := newSpec(t, "slow", 2)
	limits := 0
	g, r := launch(t, s, func(m *machine) {
		m.after = func(d time.Duration) <-chan time.Time {
			if d != reapTime && d != leftoverTime {
				limits++
			}
			return time.After(d)
		}
	})
	if err := os.WriteFile(filepath.Join(s.Folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if result := g.Wait(); result.Cause != Succeeded || limits > 0 {
		t.Errorf("%+v, %d limits", result, limits)
	}
	if diff := cmp.Diff([]Kind{Started, Started, Ended, Ended}, kinds(r.all())); diff != "" {
		t.Error(diff)
	}
}

func TestALogOnAFullDisk(t *testing.T) {
	s := newSpec(t, "prints", 1)
	g, r := launch(t, s, func(m *machine) {
		m.openLog = func(string) (io.WriteCloser, int64, error) { return &disk{full: true}, 0, nil }
	})
	result := g.Wait()
	if result.Cause != Succeeded || result.Ranks[0].Dropped != 64<<20+8 {
		t.Errorf("%+v", result)
	}
	found := r.all(Unwritten)
	if len(found) != 1 || found[0].Rank != 0 || !strings.Contains(found[0].Text, "no space left") {
		t.Errorf("%+v", found)
	}
	if len(g.Tail(0)) != tailLines {
		t.Error("the last lines are lost")
	}
}

func TestAProgramThatClosesItsOutput(t *testing.T) {
	g, r := launch(t, newSpec(t, "closes", 2))
	if result := g.Wait(); result.Cause != Succeeded {
		t.Errorf("%+v", result)
	}
	found := r.all(Metric)
	if len(found) != 2 || found[0].Rank == found[1].Rank {
		t.Fatalf("%+v", found)
	}
	for _, e := range found {
		if e.Step != 1 || e.Values["loss"] != 0.5 {
			t.Errorf("%+v", e)
		}
	}
}

func TestAProgramThatOpensManyFiles(t *testing.T) {
	g, _ := launch(t, newSpec(t, "opens", 1))
	result := g.Wait()
	if result.Cause != Failed || result.Ranks[0].Code != 24 || len(result.Last) != 1 || !strings.HasPrefix(result.Last[0], "opened ") {
		t.Errorf("%+v", result)
	}
}

func TestHalfACheckpointIsNotOne(t *testing.T) {
	s := newSpec(t, "half a checkpoint", 1)
	g, r := launch(t, s)
	result := g.Wait()
	if result.Cause != Killed || result.First != 0 || result.Ranks[0].Signal != syscall.SIGKILL {
		t.Errorf("%+v", result)
	}
	if !strings.Contains(result.String(), "lack of memory") {
		t.Error(result)
	}
	var reported []string
	for _, e := range r.all(Complete) {
		reported = append(reported, filepath.Base(e.Checkpoint))
	}
	slices.Sort(reported)
	reported = slices.Compact(reported) // a marker is made and then written
	if diff := cmp.Diff([]string{"step-1", "step-2.pt"}, reported); diff != "" {
		t.Error(diff)
	}
	all, err := Checkpoints(s.Checkpoints)
	if err != nil || len(all) != 2 {
		t.Error(all, err)
	}
	if found := r.all(Metric); len(found) != 1 || found[0].Values["loss"] != 1 {
		t.Errorf("%+v", found)
	}
}

func TestMalformedLinesAreReportedOnce(t *testing.T) {
	g, r := launch(t, newSpec(t, "talks badly", 1))
	result := g.Wait()
	if result.Cause != Succeeded || result.Ranks[0].Malformed != 102 {
		t.Errorf("%+v", result)
	}
	if found := r.all(Malformed); len(found) != 1 || found[0].Rank != 0 {
		t.Errorf("%+v", found)
	}
	if found := r.all(Metric); len(found) != 1 || found[0].Values["loss"] != 3 {
		t.Errorf("%+v", found)
	}
	if found := r.all(Complete); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestCauses(t *testing.T) {
	for _, test := range []struct {
		mode string
		want Cause
	}{{"segfault", Failed}, {"shell", Killed}} {
		g, _ := launch(t, newSpec(t, test.mode, 1))
		if result := g.Wait(); result.Cause != test.want {
			t.Errorf("%s: %+v", test.mode, result)
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		g, _ := launch(t, newSpec(t, "sleep", 2))
		ready(t, g, 1)
		syscall.Kill(g.PIDs()[1], signal)
		result := g.Wait()
		if result.Cause != Killed || result.First != 1 || result.Ranks[1].Signal != signal || result.Ranks[1].Asked || !result.Ranks[0].Asked {
			t.Errorf("%v: %+v", signal, result)
		}
	}
}
