package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/run"
)

// startTimeout is how long a supervisor may take to say who it is: it only
// takes a lock, opens a port and writes a file.
const startTimeout = 60 * time.Second

// Launched reports whether a supervisor of this folder may ever have started
// roles.
func Launched(f run.Folder) (bool, error) {
	_, err := os.Lstat(filepath.Join(string(f), launchedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Launch starts a supervisor on the folder and lets it go once its identity is
// on disk. When it returns an error, nothing was started. The supervisor
// outlives the caller; if ctx ends before it was let go it ends too. Two
// supervisors never share a folder: the second finds the lock taken, and that
// is the error.
func Launch(ctx context.Context, trainer string, f run.Folder) (run.Supervisor, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := start(trainer, f)
	if err != nil {
		return run.Supervisor{}, fmt.Errorf("launch run: %w", err)
	}
	sup, err := p.introduce(ctx)
	if err == nil {
		err = run.WriteJSON(filepath.Join(string(f), launchedFile), sup.Process)
	}
	if err == nil {
		_, err = io.WriteString(p.stdin, run.Go+"\n")
	}
	if err != nil {
		return run.Supervisor{}, fmt.Errorf("launch run: %w", p.abandon(err))
	}
	p.stdin.Close()
	p.stdout.Close()
	p.stderr.Close()
	// Its parent may not live to wait for it; while we do, a dead child that
	// nobody waited for counts as dead (run.Process.Alive).
	p.cmd.Process.Release()
	return sup, nil
}

// How long to wait for a supervisor that has the run's lock: one whose run is
// running by status.json, which lags behind the API; and one whose run has
// ended, and that still waits for its roles to end.
const (
	lag     = 3 * time.Second
	goodbye = 45 * time.Second
)

// awaitEnding waits for a supervisor whose run has ended and that is about to
// end itself: until then it has the run's lock, and writes the run's status. One
// whose run goes on is left to the lock to find.
func awaitEnding(ctx context.Context, f run.Folder) error {
	sup, err := f.ReadSupervisor()
	if err != nil {
		return nil
	}
	for began := time.Now(); sup.Alive(); {
		limit := lag
		if s, err := f.Status(); err == nil && s.Phase.Final() {
			limit = goodbye
		}
		if time.Since(began) > limit {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the run's last supervisor, process %d, does not end: %w", sup.PID, context.Cause(ctx))
		}
	}
	return nil
}

// pending is a supervisor that waits for "go".
type pending struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
}

func start(trainer string, f run.Folder) (*pending, error) {
	// Pipes of our own: exec's would need a Wait, and a goroutine that copies.
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childIn.Close()
	stdout, childOut, err := os.Pipe()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	defer childOut.Close()
	stderr, err := os.OpenFile(filepath.Join(f.Logs(), "launch.log"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	cmd := exec.Command(trainer, "supervise", "--run", string(f))
	cmd.Dir = string(f) // it must not keep the caller's folder busy
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return !allowed(variable) })
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no Ctrl-C of our terminal
	if err := cmd.Start(); err != nil {
		stdin.Close()
		stdout.Close()
		stderr.Close()
		return nil, err
	}
	return &pending{cmd, stdin, stdout, stderr}, nil
}

// A run lives for days, and its environment can be read by whoever may read its
// processes: it gets what tells it where things are and how to use the machine,
// and nothing that is meant for us.
var (
	allowedNames = []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
		"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK", "GORACE", "GOCOVERDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"VIRTUAL_ENV", "CONDA_PREFIX", "STOKE_PTXAS", "STOKE_LIBDEVICE", // files of CUDA
	}
	allowedPrefixes = []string{"LC_", "XDG_", "CUDA_", "NVIDIA_", "NCCL_", "XLA_", "TF_CPP_", "OMP_", "OPENBLAS_", "MKL_",
		"STOKE_XLA_", "STOKE_CUDA_", "STOKE_GPU_"}
)

// allowed tells the variables that a run gets of our environment.
func allowed(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains(allowedNames, name) ||
		slices.ContainsFunc(allowedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// introduce reads who the supervisor is and checks that it is our child.
func (p *pending) introduce(ctx context.Context) (run.Supervisor, error) {
	type answer struct {
		line []byte
		err  error
	}
	said := make(chan answer, 1)
	go func() { // ends with the read: at the latest when abandon closes the pipe
		line, err := bufio.NewReader(io.LimitReader(p.stdout, 64<<10)).ReadBytes('\n')
		said <- answer{line, err}
	}()
	var a answer
	select {
	case a = <-said:
	case <-ctx.Done():
		p.stdout.Close()
		<-said
		return run.Supervisor{}, fmt.Errorf("supervisor did not say who it is: %w", context.Cause(ctx))
	}
	var sup run.Supervisor
	switch {
	case a.err != nil:
		return sup, errors.New("supervisor ended before it was ready")
	case json.Unmarshal(a.line, &sup) != nil:
		return sup, fmt.Errorf("supervisor introduced itself with %.80q", a.line)
	case sup.PID != p.cmd.Process.Pid || !sup.Alive():
		return sup, fmt.Errorf("supervisor reports process %d, but it is %d", sup.PID, p.cmd.Process.Pid)
	}
	return sup, nil
}

// abandon ends a supervisor that was never let go, waits for it, and adds what
// it said to the error.
func (p *pending) abandon(cause error) error {
	p.stdin.Close() // without "go" it ends by itself
	p.stdout.Close()
	ended := make(chan struct{})
	go func() { p.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Kill() // our child, not yet waited for: the number is its own
		<-ended
	}
	text := tail(p.stderr, 2000)
	p.stderr.Close()
	if text == "" {
		return cause
	}
	return fmt.Errorf("%w; it says: %s", cause, text)
}

// tail reads the last n bytes of a file, from a line's beginning where there
// is one.
func tail(file *os.File, n int64) string {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text := make([]byte, min(n, size))
	if _, err := file.ReadAt(text, size-int64(len(text))); err != nil && err != io.EOF {
		return ""
	}
	s := string(text)
	if size > n {
		if _, rest, ok := strings.Cut(s, "\n"); ok {
			s = rest
		}
	}
	return strings.TrimSpace(s)
}
