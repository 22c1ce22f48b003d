package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// What a coordinator does for whoever looks at it from outside, as in a pod.

// outcome is the file that --outcome names: it is there before, like a
// termination log.
func (c *cell) outcome() string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "termination-log")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func readOutcome(t *testing.T, path string) (s spec.Status, text string) {
	t.Helper()
	data := must(os.ReadFile(path))
	if err := json.Unmarshal(data, &s); err != nil || len(data) > spec.OutcomeBytes {
		t.Fatalf("outcome of %d bytes: %v: %s", len(data), err, data)
	}
	return s, string(data)
}

// lingers waits until the coordinator has said goodbye, and gives its status.
func (c *cell) lingers(p *solo) (s spec.Status) {
	c.t.Helper()
	eventually(c.t, "it waits for its results to be collected", func() bool {
		return bytes.Contains(must(os.ReadFile(p.log)), []byte("to be collected"))
	})
	s, err := c.client().Status(context.Background())
	if err != nil || s.Ended.IsZero() {
		c.t.Fatalf("status %+v, %v", s, err)
	}
	return s
}

// printed gives the events that a coordinator has printed, as they are, and the
// logs of workers between them.
func printed(t *testing.T, p *solo) (events []byte, logs map[string]string) {
	t.Helper()
	logs = make(map[string]string)
	for line := range bytes.Lines(must(os.ReadFile(p.out))) {
		var l struct{ Role, Log string }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("it printed %q: %v", line, err)
		}
		if l.Role == "" {
			events = append(events, line...)
		} else {
			logs[l.Role] += l.Log + "\n"
		}
	}
	return events, logs
}

// unpack writes a tar stream into a folder and gives the names in it.
func unpack(t *testing.T, in io.ReadCloser, to string) (names []string) {
	t.Helper()
	defer in.Close()
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if _, err := io.Copy(io.Discard, in); err != nil {
				t.Fatal(err)
			}
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		path := filepath.Join(to, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, must(io.ReadAll(r)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A run's results are there until they are collected: status, events and model
// by the API, the end in a file, the events in the output. A coordinator that is
// started again behind the end has all of it again, and trains nothing.
func TestResultsAreCollected(t *testing.T) {
	t.Parallel()
	s := small()
	s.ParameterServer.Replicas = 2
	c := newCell(t, s)
	path := c.outcome()
	inode := must(os.Stat(path))
	ctx := context.Background()
	others := []*solo{c.server("0"), c.server("1")}
	more := []string{"--run", "demo", "--outcome", path, "--metrics", "-", "--linger", "1h"}
	first := c.coordinate(more...)
	var f api.Failure
	if _, err := c.client().Model(ctx); !errors.As(err, &f) || f.Summary != "No finished model" {
		t.Errorf("the model before there is one: %v", err)
	}
	if err := c.client().Collected(ctx); !errors.As(err, &f) || f.Summary != "The run is not over" {
		t.Errorf("collected before the end: %v", err)
	}
	for _, p := range append(others, c.worker("0"), c.worker("0", "--first-index", "1")) {
		p.ends(spec.EndFinished)
	}
	state := run.Folder(filepath.Join(c.dir, "state"))
	check := func(p *solo) (end spec.Status, text string) {
		end = c.lingers(p)
		if end.Run != "demo" || end.Phase != spec.Succeeded || end.Records != records(s) {
			t.Errorf("status %+v", end)
		}
		told, text := readOutcome(t, path)
		if !os.SameFile(inode, must(os.Stat(path))) || told.Run != "demo" || told.Phase != spec.Succeeded || told.Step != end.Step || told.Metrics["accuracy"] != end.Metrics["accuracy"] {
			t.Errorf("outcome %s", text)
		}
		if l, err := c.client().Ledger(ctx); err != nil || l.Step != end.Step || l.Whole != s.Epochs {
			t.Errorf("ledger %+v, %v", l, err)
		}
		model, err := c.client().Model(ctx)
		if err != nil {
			t.Fatal(err)
		}
		home := run.Folder(t.TempDir())
		names := unpack(t, model, string(home))
		final := must(filepath.Glob(filepath.Join(c.dir, "elsewhere", spec.FinalPrefix+"*", "*")))
		if len(names) != 3 || len(final) != 3 || !strings.HasSuffix(names[2], "/"+spec.ManifestFile) {
			t.Errorf("the model has %q, of %q", names, final)
		}
		for _, there := range final {
			here := filepath.Join(home.Checkpoints(), filepath.Base(filepath.Dir(there)), filepath.Base(there))
			if !bytes.Equal(must(os.ReadFile(here)), must(os.ReadFile(there))) {
				t.Errorf("%s is not %s", here, there)
			}
		}
		if finals, err := home.Finals(); err != nil || len(finals) != 1 {
			t.Errorf("as a run's folder, it has the finished models %q, %v", finals, err)
		}
		c.worker("1").ends(spec.EndFinished) // it comes late, and finds no server
		return end, text
	}
	status, text := check(first)
	if err := c.client().Collected(ctx); err != nil {
		t.Fatal(err)
	}
	first.ends(spec.EndFinished)
	lines := must(os.ReadFile(state.Metrics()))
	got, logs := printed(t, first)
	for _, worker := range []string{"worker-0", "worker-1"} { // what the policy of a Job would take away
		if !strings.Contains(logs[worker], "msg=connected") || !strings.Contains(logs[worker], "msg=leaving") {
			t.Errorf("the log of %s is %q", worker, logs[worker])
		}
	}
	if !bytes.Equal(got, lines) || bytes.Count(got, []byte("\n")) < int(status.Step) {
		t.Errorf("it printed\n%s, the events are\n%s", got, lines)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	again := c.coordinate(append(more, "--data", filepath.Join(c.dir, "gone"))...) // what it trained with is not needed
	if s, told := check(again); !s.Ended.Equal(status.Ended) || told != text {
		t.Errorf("the second time it ended %v with %s, the first time %v with %s", s.Ended, told, status.Ended, text)
	}
	c.start("ps", "--index", "1", "--listen", c.servers[1]).ends(spec.EndFinished) // it comes late
	again.signal(syscall.SIGTERM)
	again.ends(spec.EndFinished)
	if got, _ := printed(t, again); !bytes.Equal(got, lines) || !bytes.Equal(must(os.ReadFile(state.Metrics())), lines) {
		t.Errorf("the second time it printed\n%s, the events are\n%s", got, lines)
	}
}

// A run that fails ends by itself, and stays failed.
func TestFailedRunStaysFailed(t *testing.T) {
	t.Parallel()
	s := small()
	s.Worker.GPUs = 1 // which this build has no engine for
	path := filepath.Join(t.TempDir(), "outcome")
	c, first, others := started(t, s, "--outcome", path, "--linger", "1h")
	status := c.lingers(first)
	for _, p := range others { // a worker that reports before another one has is to be started again
		if <-p.done; spec.End(p.cmd.ProcessState.ExitCode()) != spec.EndError {
			p.ends(spec.EndOtherwise)
		}
	}
	told, text := readOutcome(t, path)
	if status.Phase != spec.Failed || told.Phase != spec.Failed || told.Message != status.Message || !strings.Contains(told.Log, "no engine") {
		t.Errorf("outcome %s, status %+v", text, status)
	}
	first.signal(syscall.SIGKILL)
	<-first.done
	again := c.coordinate("--outcome", path, "--linger", "1h")
	if s := c.lingers(again); !s.Ended.Equal(status.Ended) {
		t.Errorf("status %+v, was %+v", s, status)
	}
	if _, now := readOutcome(t, path); now != text {
		t.Errorf("outcome %s, was %s", now, text)
	}
	c.worker("0").ends(spec.EndOtherwise)
	again.signal(syscall.SIGTERM)
	again.ends(spec.EndFinished) // what starts it again would have it fail for ever: the outcome says it
	c.coordinate("--linger", "100ms").ends(spec.EndOtherwise)
}

// A run that cannot begin says why, to all who wait for it; with what it lacks
// it can.
func TestHopelessRunSaysWhy(t *testing.T) {
	t.Parallel()
	c := newCell(t, small())
	path := c.outcome()
	server := c.server("0")
	p := c.coordinate("--data", filepath.Join(c.dir, "nowhere"), "--outcome", path, "--linger", "1h")
	c.worker("0").ends(spec.EndOtherwise)
	server.ends(spec.EndOtherwise)
	c.lingers(p)
	if told, text := readOutcome(t, path); told.Phase != spec.Stopped || told.Cause != spec.CauseData || !strings.Contains(told.Message, "nowhere") || told.Run != "state" {
		t.Errorf("outcome %s", text)
	}
	p.signal(syscall.SIGTERM)
	p.ends(spec.EndFinished)
	c.servers, c.workers = nil, ""
	c.server("0")
	next := c.coordinate()
	c.worker("0")
	next.ends(spec.EndFinished)
}

// A run that has learned something and is started again without its dataset is
// stopped: with the dataset it goes on from its checkpoint. Whether the folder of
// the coordinator's own is still there changes nothing.
func TestWrongDatasetLosesNothing(t *testing.T) {
	t.Parallel()
	s := long()
	s.Epochs, s.Checkpoint.EverySteps = 1<<20, 10 // it is stopped in the end
	c, first, others := started(t, s)
	var before spec.Status
	c.until("there is a checkpoint", func(s spec.Status) bool { before = s; return s.Saved >= 10 })
	state := run.Folder(filepath.Join(c.dir, "state"))
	first.signal(syscall.SIGKILL)
	<-first.done
	path := c.outcome()
	for _, lost := range []bool{false, true} {
		if lost {
			if err := os.RemoveAll(string(state)); err != nil {
				t.Fatal(err)
			}
		}
		p := c.coordinate("--data", filepath.Join(c.dir, "nowhere"), "--outcome", path, "--linger", "1h")
		if !lost {
			for _, p := range others {
				p.ends(spec.EndOtherwise) // they are told of the end, as of any other
			}
		}
		c.lingers(p)
		if err := c.client().Collected(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.ends(spec.EndFinished)
		told, text := readOutcome(t, path)
		if told.Phase != spec.Stopped || told.Cause != spec.CauseData || told.Saved < before.Saved || !strings.Contains(told.Message, "nowhere") || told.Ended.IsZero() {
			t.Errorf("without its dataset, folder lost %v: outcome %s", lost, text)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	c.servers, c.workers = nil, ""
	c.server("0")
	c.server("1")
	next := c.coordinate()
	c.worker("0")
	c.until("the run goes on", func(s spec.Status) bool { return s.Step > before.Saved })
	if err := c.client().Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	next.ends(spec.EndOtherwise)
}

// A coordinator that has lost the folder of its own goes on from the
// checkpoints, in a term above all that there were.
func TestFolderOfTheCoordinatorIsLost(t *testing.T) {
	t.Parallel()
	s := long()
	s.Epochs, s.Checkpoint.EverySteps = 1<<20, 10 // it is stopped in the end
	c, coordinator, others := started(t, s)
	var before spec.Status
	for range 3 { // in the last ones nothing is saved
		c.until("there is a checkpoint", func(s spec.Status) bool { before = s; return s.Saved >= 10 && s.Workers == 2 })
		coordinator.signal(syscall.SIGKILL)
		<-coordinator.done
		if err := os.RemoveAll(filepath.Join(c.dir, "state")); err != nil {
			t.Fatal(err)
		}
		coordinator = c.coordinate()
		c.until("the run goes on", func(s spec.Status) bool {
			return s.Step > before.Saved && s.Workers == 2 && s.Term > before.Term
		})
	}
	all, _ := events(t, filepath.Join(c.dir, "state", "metrics.jsonl"))
	if i := slices.IndexFunc(all, func(e spec.Event) bool { return e.Type == spec.EventRestore }); i < 0 || all[i].Step < before.Saved {
		t.Errorf("it went on from %+v, saved was %d", all, before.Saved)
	}
	if err := c.client().Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(others, coordinator) {
		p.ends(spec.EndOtherwise)
	}
}
