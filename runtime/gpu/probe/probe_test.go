package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
)

// fake is a program in the place of stoke-gpu, written in shell.
func fake(t *testing.T, script string) string {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no shell here")
	}
	path := filepath.Join(t.TempDir(), Name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// logged is a log that goroutines write.
type logged struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

// followed follows a program until the test ends.
func followed(t *testing.T, script string, change func(*Options)) (f *Follower, log *logged, seen chan gpu.Snapshot) {
	t.Helper()
	log, seen = new(logged), make(chan gpu.Snapshot, 100)
	o := Options{Path: fake(t, script), Every: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil)),
		pause: 10 * time.Millisecond, longest: 20 * time.Millisecond,
		Report: func(s gpu.Snapshot) {
			select {
			case seen <- s:
			default:
			}
		}}
	if change != nil {
		change(&o)
	}
	f = Follow(o)
	t.Cleanup(f.Close)
	return f, log, seen
}

// await waits for a condition, as long as the test may run.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatal(what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// childOf returns the number of the child.
func childOf(f *Follower) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pid
}

const line = `{"driver":"580.65.06","gpus":[{"index":0,"values":{"temperature_celsius":50}}]}`

// Readings come, are the newest for a while, and the child ends with the follower.
func TestFollow(t *testing.T) {
	f, log, seen := followed(t, "echo '"+line+"'\nexec cat\n", func(o *Options) { o.Every = time.Hour })
	s := <-seen
	if s.Driver != "580.65.06" || s.GPUs[0].Values[gpu.Temperature] != 50 {
		t.Errorf("%+v", s)
	}
	if n, ok := f.Newest(time.Now()); !ok || n.Driver != s.Driver {
		t.Errorf("%+v, %v", n, ok)
	}
	if _, ok := f.Newest(time.Now().Add(4 * time.Hour)); ok {
		t.Error("old readings are the newest")
	}
	pid := childOf(f)
	if !f.Owns(pid) || f.Owns(0) || f.Owns(os.Getpid()) {
		t.Errorf("process %d", pid)
	}
	f.stop()
	<-f.done
	await(t, "the child ends", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if log.text() != "" {
		t.Error(log.text())
	}
}

// A child that dies, prints garbage or too much, or is silent is told once, however
// often that happens. It is started again.
func TestTroubleIsToldOnce(t *testing.T) {
	count := `echo x >> "$0.starts"` + "\n"
	for name, c := range map[string]struct{ script, told string }{
		"killed":             {count + "kill -9 $$\n", "signal: killed"},
		"killed after lines": {count + "echo '" + line + "'\nkill -9 $$\n", "signal: killed"},
		"error":              {count + "exit 3\n", "exit status 3"},
		"garbage":            {count + "echo 'Segmentation fault'\nexec cat\n", "not a reading"},
		"unknown readings":   {count + `echo '{"gpus":[{"index":0,"values":{"height":1}}]}'` + "\nexec cat\n", "not a reading"},
		"endless line":       {count + "exec cat /dev/zero\n", "not a reading"},
		"silent":             {count + "exec sleep 1000\n", "silent"},
		"closed output":      {count + "exec >&-\nexec sleep 1000\n", "does not end"},
	} {
		t.Run(name, func(t *testing.T) {
			f, log, _ := followed(t, c.script, func(o *Options) {
				if name == "silent" || name == "closed output" {
					o.limit = 20 * time.Millisecond
				}
			})
			await(t, "it is started again", func() bool {
				text, err := os.ReadFile(f.Path + ".starts")
				return err == nil && len(text) >= 2*3
			})
			f.stop()
			<-f.done
			if text := log.text(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, c.told) {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}

// A program that is missing is told once, and one that finds no GPU is not started
// again.
func TestNoProgramAndNoGPU(t *testing.T) {
	f, log, _ := followed(t, "", func(o *Options) { o.Path += ".missing" })
	await(t, "it is told", func() bool { return strings.Contains(log.text(), "no such file") })
	f.stop()
	f, log, seen := followed(t, `echo '{"gpus":[],"absent":"no driver"}'`+"\n", nil)
	if s := <-seen; s.Absent != "no driver" {
		t.Errorf("%+v", s)
	}
	<-f.done
	if log.text() != "" {
		t.Error(log.text())
	}
}

// A check returns the verdict, also an unfit one; anything else is an error.
func TestCheck(t *testing.T) {
	verdict := func(v string, code int) string {
		return fmt.Sprintf(`echo '{"verdict":"%s","findings":[],"readings":{"gpus":[]}}'`+"\nexit %d\n", v, code)
	}
	for v, code := range map[string]int{"fit": 0, "warning": 0, "unfit": 1} {
		r, err := Check(t.Context(), fake(t, verdict(v, code)), gpu.Expectation{Count: 2})
		if err != nil || string(r.Verdict) != v {
			t.Errorf("%s: %+v, %v", v, r, err)
		}
	}
	for name, script := range map[string]string{
		"unknown": verdict("perhaps", 0), "garbage": "echo oops\n", "nothing": "", "another code": verdict("fit", 3), "killed": "kill -9 $$\n",
	} {
		if r, err := Check(t.Context(), fake(t, script), gpu.Expectation{}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	began := time.Now()
	_, err := checkWithin(t.Context(), 20*time.Millisecond, fake(t, "exec sleep 1000\n"), gpu.Expectation{})
	if err == nil || !strings.Contains(err.Error(), "does not answer") || time.Since(began) > 500*time.Second {
		t.Error(err)
	}
	if _, err := Check(t.Context(), "", gpu.Expectation{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	path := fake(t, `echo "$@" > "$0.args"`+"\n"+verdict("fit", 0))
	if _, err := Check(t.Context(), path, gpu.Expectation{Count: 3, Driver: "580", Idle: true, GPUs: []string{"1", "GPU-x"}}); err != nil {
		t.Error(err)
	}
	if args, _ := os.ReadFile(path + ".args"); string(args) != "check --json --count 3 --driver 580 --idle --gpus 1,GPU-x\n" {
		t.Errorf("%s", args)
	}
}

// The child ends when this process is killed, also one that reads no input.
func TestEndsWithItsParent(t *testing.T) {
	if os.Getenv("PROBE_PARENT") != "" {
		f := Follow(Options{Path: os.Getenv("PROBE_PARENT"), Log: slog.Default()})
		await(t, "it runs", func() bool { return childOf(f) != 0 })
		fmt.Println("child", childOf(f))
		select {} // the test kills this process
	}
	pid := startParent(t, fake(t, "exec sleep 1000\n"))
	await(t, "the child ends", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
}
