package kubetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// process is one program of the cluster, which may be started again after it
// ended.
type process struct {
	name string   // of the program in the folder of binaries
	path string   // of the program
	args []string // without the name
	dir  string   // where it runs, and its home folder
	log  string   // path of what it says

	mu     sync.Mutex
	pid    int
	ended  chan struct{} // closed when it has ended; nil before the first start
	err    error         // how it ended
	wanted bool          // it is to be running
}

// start starts the program; it must not be running.
//
// On Linux the program is killed when the thread ends that it was started by, so
// that thread waits for it.
func (p *process) start() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = p.dir
	// Nothing of the user's: kwok and kubectl read settings in the home folder.
	cmd.Env = []string{"HOME=" + p.dir, "TMPDIR=" + p.dir, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes()

	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.ended, p.wanted = cmd.Process.Pid, ended, true
	return nil
}

// done is closed when the program has ended; of one that never ran, it is nil.
func (p *process) done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// running tells whether it was started and has not ended.
func (p *process) running() bool {
	done := p.done()
	if done == nil {
		return false
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// crashed reports whether it ended without a call of stop.
func (p *process) crashed() bool {
	if p.running() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// unwanted notes that the program is going to be ended.
func (p *process) unwanted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
}

// signal sends a signal to the program and what it started.
func (p *process) signal(s syscall.Signal) error {
	if !p.running() {
		return fmt.Errorf("%s is not running", p.name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return syscall.Kill(-p.pid, s)
}

// still reports that every thread of the program is stopped, as Linux tells: on a
// busy machine a signal takes a while to reach all of them.
func (p *process) still() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid))
	return !slices.ContainsFunc(threads, func(name string) bool {
		text, err := os.ReadFile(name)
		after := text[bytes.LastIndexByte(text, ')')+1:]
		return err == nil && !bytes.HasPrefix(after, []byte(" T"))
	})
}

// stop ends the program by a signal and waits until it has ended; after ctx it
// is killed.
func (p *process) stop(ctx context.Context, s syscall.Signal) error {
	if err := p.signal(s); err != nil {
		return err
	}
	p.unwanted()
	select {
	case <-p.done():
		return nil
	case <-ctx.Done():
		_ = p.signal(syscall.SIGKILL) // it may have ended just now
		<-p.done()
		return fmt.Errorf("%s did not end by itself", p.name)
	}
}

// kill ends the program at once, if it runs, and waits until it has ended.
func (p *process) kill() {
	p.unwanted()
	if p.running() {
		_ = p.signal(syscall.SIGKILL)
		<-p.done()
	}
}

// failure returns the exit of the program and its last lines of output.
func (p *process) failure() error {
	p.mu.Lock()
	err := p.err
	p.mu.Unlock()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w\n%s", p.name, err, strings.Join(p.said(0, false), "\n"))
}

// size is how much the program has said, in bytes.
func (p *process) size() int64 {
	info, err := os.Stat(p.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// harmless reports whether a line is for information: lines of Kubernetes begin
// with the severity, lines of kwok are JSON.
func harmless(line string) bool {
	return strings.HasPrefix(line, "I") || strings.Contains(line, `"level":"INFO"`)
}

// said returns the last lines of what the program said after an offset in bytes;
// of those that have a severity, all or only warnings and worse.
func (p *process) said(offset int64, worse bool) []string {
	const most = 40
	file, err := os.Open(p.log)
	if err != nil {
		return []string{err.Error()}
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return []string{err.Error()}
	}
	var last []string
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		line = strings.TrimRight(line, "\n")
		if line != "" && (!worse || !harmless(line)) {
			last = append(last, filepath.Base(p.log)+": "+line)
			last = last[max(0, len(last)-most):]
		}
		if err != nil {
			return last
		}
	}
}
