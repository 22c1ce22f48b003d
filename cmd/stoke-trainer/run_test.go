package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// The program under test and its data, made once.
var (
	trainer string
	ranks   string // a user's program
	digits  spec.Dataset
)

func TestMain(m *testing.M) {
	if how := os.Getenv(bareExchange); how != "" { // this process is compared with the all-reduce
		if err := exchangeBare(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(asTrainer) != "" { // this process is a role of a run under test
		if os.Getenv(partitionFile) != "" {
			announced = throughProxy
			newCPU = func() engine.Engine { return lingering{cpu.New()} }
		} else if os.Getenv(stepTime) != "" {
			newCPU = func() engine.Engine { return sleeping{cpu.New()} }
		} else {
			newCPU = func() engine.Engine { return stalling{cpu.New()} }
		}
		pretendGPUs()
		version = os.Getenv(trainerVersion) // the other roles reject another version than theirs
		main()
	}
	os.Exit(func() int {
		if err := os.Unsetenv("GOGC"); err != nil { // it is for the tests' own memory
			panic(err)
		}
		dir, err := os.MkdirTemp("", "stoke-trainer-test-*")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if trainer, err = programtest.Trainer(dir, raceBuild); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if ranks, err = programtest.Rank(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		text, err := exec.Command(trainer, "version").Output()
		if err != nil {
			fmt.Fprintln(os.Stderr, "the trainer's version:", err)
			return 1
		}
		os.Setenv(trainerVersion, strings.TrimSpace(string(text)))
		if digits, err = prepareDigits(filepath.Join(dir, "digits"), 1500); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// Runs wait more than they compute: more of them at a time than cores.
		flag.Parse()
		if f := flag.Lookup("test.parallel"); f.Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
			f.Value.Set("6")
		}
		return m.Run()
	}())
}

// prepareDigits makes a data set of so many training records and 400 test records.
func prepareDigits(path string, train int) (spec.Dataset, error) {
	out, err := exec.Command(trainer, "dataset", "prepare", "--format", "synthetic-digits",
		"--train", fmt.Sprint(train), "--test", "400", "--to", path).Output()
	var manifest dataset.Manifest
	if err == nil {
		err = json.Unmarshal(out, &manifest)
	}
	if err != nil {
		return spec.Dataset{}, fmt.Errorf("prepare: %w\n%s", err, out)
	}
	return spec.Dataset{Path: path, Hash: manifest.Hash}, nil
}

// small is a run of a few seconds at most.
func small() spec.Spec {
	s := spec.Default()
	s.Name, s.Model, s.Dataset = "test", "mlp", digits
	s.BatchSize, s.MicroBatch, s.Epochs, s.Seed = 40, 10, 2, 5
	s.Worker.Replicas, s.Worker.Threads = 2, 1
	return s
}

// trial is a supervised run under test.
type trial struct {
	t       *testing.T
	folder  run.Folder
	cmd     *exec.Cmd
	in      io.WriteCloser
	self    run.Supervisor
	reaped  chan struct{}
	success bool
	end     spec.End
}

// launch creates a run's folder, starts its supervisor and waits for its
// identity; "go" is not said yet.
func launch(t *testing.T, s spec.Spec) *trial {
	t.Helper()
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	return relaunch(t, f)
}

func supervise(f run.Folder) *exec.Cmd {
	cmd := exec.Command(trainer, "supervise", "--run", string(f))
	cmd.Env = append(os.Environ(), "STOKE_ACCOUNTS="+accounts(f))
	return cmd
}

// accounts is where the workers of a run note which records they read: beside
// its folder.
func accounts(f run.Folder) string { return filepath.Dir(filepath.Dir(string(f))) }

func relaunch(t *testing.T, f run.Folder) *trial {
	t.Helper()
	return relaunchBy(t, f, supervise(f))
}

func relaunchBy(t *testing.T, f run.Folder, supervisor *exec.Cmd) *trial {
	t.Helper()
	r := &trial{t: t, folder: f, reaped: make(chan struct{}), cmd: supervisor}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r.cmd.Stderr = os.Stderr
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r.self)
	}
	if err != nil {
		r.cmd.Process.Kill()
		r.cmd.Wait()
		t.Fatalf("identity %q: %v", line, err)
	}
	go func() {
		defer close(r.reaped)
		r.success = r.cmd.Wait() == nil
		r.end = spec.End(r.cmd.ProcessState.ExitCode())
	}()
	t.Cleanup(func() {
		r.in.Close()
		r.cmd.Process.Kill()
		<-r.reaped
		eventually(t, "no role is left", func() bool { return len(roles(t, f)) == 0 })
	})
	return r
}

func (r *trial) start() {
	r.t.Helper()
	if _, err := io.WriteString(r.in, "go\n"); err != nil {
		r.t.Fatal(err)
	}
	r.in.Close()
}

// wait waits for the supervisor's end and returns the final status.
func (r *trial) wait() spec.Status {
	r.t.Helper()
	st := r.reap()
	if r.t.Failed() || st.Phase == spec.Lost {
		r.dump()
	}
	if (st.Phase == spec.Succeeded) != r.success {
		r.t.Errorf("phase %s, but the supervisor's success is %v", st.Phase, r.success)
	}
	logs := must(filepath.Glob(filepath.Join(r.folder.Logs(), "*.log")))
	for _, l := range logs {
		if data := must(os.ReadFile(l)); bytes.Contains(data, []byte("DATA RACE")) || bytes.Contains(data, []byte("panic:")) {
			r.t.Errorf("%s:\n%s", filepath.Base(l), data)
		}
	}
	if left := roles(r.t, r.folder); len(left) > 0 {
		r.t.Errorf("roles left after the end: %v", left)
	}
	return st
}

// reap waits for the supervisor's end, whatever its exit status: it may have been
// killed after the run's end.
func (r *trial) reap() spec.Status {
	r.t.Helper()
	select {
	case <-r.reaped:
	case <-time.After(8 * time.Minute):
		r.dump()
		r.t.Fatal("the run does not end")
	}
	st, err := r.folder.Status()
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func (r *trial) dump() {
	logs, _ := filepath.Glob(filepath.Join(r.folder.Logs(), "*.log"))
	for _, l := range logs {
		data, _ := os.ReadFile(l)
		r.t.Logf("%s:\n%s", filepath.Base(l), data[max(0, len(data)-4000):])
	}
}

// eventually waits for what must come true soon, whatever soon is here.
func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !true(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not come true: %s", what)
		}
	}
}

// process is a live role of a run.
type process struct {
	pid  int
	role string // "worker 0"
}

// roles lists the live processes of the run, but for its supervisor.
func roles(t *testing.T, f run.Folder) []process {
	t.Helper()
	var found []process
	self := must(os.Executable()) // of a run with a test's own trainer
	for _, dir := range must(filepath.Glob("/proc/[0-9]*")) {
		data, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		args := strings.Split(string(data), "\x00")
		if err != nil || len(args) < 5 || args[0] != trainer && args[0] != self || args[4] != f.Spec() {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if _, err := run.Identify(pid); err != nil {
			continue // ended, not reaped yet
		}
		p := process{pid: pid, role: args[1]}
		for i, a := range args {
			if a == "--index" {
				p.role += " " + args[i+1]
			}
		}
		found = append(found, p)
	}
	return found
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// events reads a file of events, leaving out what a later restore voided.
func events(t *testing.T, path string) (all, valid []spec.Event) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1] // the run may be writing the rest of a line
	for line := range bytes.Lines(whole) {
		var e spec.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		all = append(all, e)
		switch e.Type {
		case spec.EventRestore:
			kept := valid[:0]
			for _, v := range valid {
				if v.Step <= e.Step {
					kept = append(kept, v)
				}
			}
			valid = kept
		case spec.EventUpdate:
			valid = append(valid, e)
		}
	}
	return all, valid
}
