package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterrupt ends a run during a suite: the processes of the suite end, those
// too that its command has started.
func TestInterrupt(t *testing.T) {
	r, _ := smallRunner(t)
	r.out = io.Discard
	var stop context.CancelFunc
	r.ctx, stop = context.WithCancel(t.Context())
	defer stop()
	file := filepath.Join(r.root, "pid")
	s := suite{name: "long", always: true, command: []string{"sh", "-c", "sleep 600 & echo $! > " + file + ".part && mv " + file + ".part " + file + " && wait"}}
	ended := make(chan result)
	go func() { ended <- r.run(&s) }()
	var pid int
	for pid == 0 {
		text, err := os.ReadFile(file)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if res := <-ended; res.outcome != interrupted {
		t.Errorf("the suite is %s %s", res.outcome, res.detail)
	}
	for syscall.Kill(pid, 0) == nil && !defunct(pid) {
		time.Sleep(10 * time.Millisecond) // the test's own time limit ends this
	}
	if res := r.run(&s); res.outcome != interrupted {
		t.Errorf("the next suite is %s %s", res.outcome, res.detail)
	}
}

// TestInterruptKillsWhatIsLeft ends a run whose command leaves a process that SIGTERM does
// not end, and that does not hold the output.
func TestInterruptKillsWhatIsLeft(t *testing.T) {
	r, _ := smallRunner(t)
	r.out = io.Discard
	var stop context.CancelFunc
	r.ctx, stop = context.WithCancel(t.Context())
	defer stop()
	file := filepath.Join(r.root, "pid")
	left := "(trap '' TERM; echo ready > " + file + ".ready; while :; do sleep 600; done) >/dev/null 2>&1 & echo $! > " + file
	s := suite{name: "long", always: true, command: []string{"sh", "-c", left + "; sleep 600"}}
	ended := make(chan result)
	go func() { ended <- r.run(&s) }()
	for {
		if _, err := os.Stat(file + ".ready"); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	var pid int
	for pid == 0 {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	was := stopTime
	defer func() { stopTime = was }()
	stopTime = time.Hour
	stop()
	<-ended
	for syscall.Kill(pid, 0) == nil && !defunct(pid) {
		time.Sleep(10 * time.Millisecond) // the test's own time limit ends this
	}
}

// defunct reports whether a process has ended, and its parent has not read how.
func defunct(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}
