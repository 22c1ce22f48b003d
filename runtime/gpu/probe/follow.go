package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/process"
)

// Options are the options of Follow.
type Options struct {
	Path  string        // of the program
	Every time.Duration // between two readings; 0: 5 s
	Log   *slog.Logger
	// Report gets each snapshot, one at a time; nil: Newest has them.
	Report func(gpu.Snapshot)

	limit   time.Duration // of silence after Every; 0: Limit
	pause   time.Duration // before the child is started again; 0: a minute
	longest time.Duration // of these pauses; 0: an hour
}

// Follower follows the readings of one child.
type Follower struct {
	Options
	mu     sync.Mutex
	pid    int // of the child; 0: it does not run
	stop   context.CancelFunc
	done   chan struct{}
	newest atomic.Pointer[received]
	told   bool
	thread *process.Thread
}

// received is a snapshot with the time at which it came.
type received struct {
	gpu.Snapshot
	at time.Time
}

// Follow starts stoke-gpu, and again after a while where it ends with an error. It
// does not wait.
func Follow(o Options) *Follower {
	orElse := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	orElse(&o.Every, 5*time.Second)
	orElse(&o.limit, Limit)
	orElse(&o.pause, time.Minute)
	orElse(&o.longest, time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{Options: o, stop: cancel, done: make(chan struct{}), thread: process.NewThread(nil)}
	go f.run(ctx)
	return f
}

// Close ends the child. A child that does not end even when it is killed is left.
func (f *Follower) Close() {
	f.stop()
	<-f.done
	f.thread.Close()
}

// Owns reports whether a process is the child.
func (f *Follower) Owns(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pid > 0 && f.pid == pid
}

// Newest returns the newest readings; false: the newest are older than three
// intervals.
func (f *Follower) Newest(now time.Time) (gpu.Snapshot, bool) {
	n := f.newest.Load()
	if n == nil || now.Sub(n.at) > 3*f.Every {
		return gpu.Snapshot{}, false
	}
	return n.Snapshot, true
}

// run starts the child again and again, until the context ends or the child ends
// with success: the machine has no GPUs then.
func (f *Follower) run(ctx context.Context) {
	defer close(f.done)
	for pause := f.pause; ; pause = min(2*pause, f.longest) {
		err := f.follow(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		f.warn(err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// warn logs the first failure only.
func (f *Follower) warn(err error) {
	if !f.told {
		f.Log.Warn("the GPUs are not watched; the run goes on without", "error", err)
	}
	f.told = true
}

// errGarbage is the error of a line that is not a reading.
var errGarbage = errors.New("it printed what is not a reading")

// maxLine is how many bytes one snapshot may have.
const maxLine = 1 << 20

// follow runs the child once.
func (f *Follower) follow(ctx context.Context) error {
	cmd := exec.Command(f.Path, "watch", "--attached", "--every", f.Every.String())
	cmd.SysProcAttr = attributes()
	in, err := cmd.StdinPipe() // the child ends when it is closed
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := f.start(cmd); err != nil {
		return err
	}
	lines, ended := make(chan []byte), make(chan error, 1)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(lines)
		readLines(reading, out, lines)
	}()
	err = f.take(reading, lines)
	if err != nil {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
	}
	in.Close()
	stop()
	go func() { ended <- f.wait(cmd) }()
	select {
	case waited := <-ended:
		if err == nil && waited != nil {
			err = fmt.Errorf("%s ended: %w", Name, waited)
		}
	case <-time.After(f.limit / 10): // in a call of the driver: it ends when that returns
		if err == nil {
			err = fmt.Errorf("%s closed its output and does not end", Name)
		}
		cmd.Process.Kill() //nolint:errcheck // it may have ended
	}
	return err
}

// start starts the child. Owns waits for it, so that each child is known.
func (f *Follower) start(cmd *exec.Cmd) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.thread.Do(cmd.Start)
	if err == nil {
		f.pid = cmd.Process.Pid
	}
	return err
}

// wait returns when the child has ended.
func (f *Follower) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pid == cmd.Process.Pid {
		f.pid = 0
	}
	return err
}

// readLines passes whole lines on.
func readLines(ctx context.Context, out io.Reader, lines chan<- []byte) {
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		select {
		case lines <- append([]byte(nil), scanner.Bytes()...):
		case <-ctx.Done():
			return
		}
	}
	if scanner.Err() != nil {
		select {
		case lines <- nil: // too long
		case <-ctx.Done():
		}
	}
}

// take takes lines until the end of the output; after an error the caller kills the child.
func (f *Follower) take(ctx context.Context, lines <-chan []byte) error {
	silence := time.NewTimer(f.Every + f.limit)
	defer silence.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			var s gpu.Snapshot
			if err := json.Unmarshal(line, &s); err != nil || s.Validate() != nil {
				return errGarbage
			}
			f.newest.Store(&received{s, time.Now()})
			if f.Report != nil {
				f.Report(s)
			}
			silence.Reset(f.Every + f.limit)
		case <-silence.C:
			return fmt.Errorf("%s is silent for %v", Name, f.Every+f.limit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
