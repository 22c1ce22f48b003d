package supervisor

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/run"
)

// The names of the roles, which are stoke-trainer's commands.
const (
	Coordinator = "coordinator"
	Server      = "ps"
	Worker      = "worker"
)

// role is one process of the run, restarted or not.
type role struct {
	name    string
	index   int
	process *os.Process // nil: not running
	started time.Time
	ends    []time.Time // that count, within the window
	givenUp bool        // a worker that is not started any more
	due     time.Time
}

func (r *role) String() string { return fmt.Sprintf("%s %d", r.name, r.index) }

// starter starts processes from one thread that lives as long as the
// supervisor: Linux sends the death signal when the *thread* that started a
// process ends.
type starter struct {
	requests chan func()
}

func newStarter() *starter {
	s := &starter{requests: make(chan func())}
	go func() { // until close
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range s.requests {
			f()
		}
	}()
	return s
}

func (s *starter) close() { close(s.requests) }

func (s *starter) start(cmd *exec.Cmd) error {
	done := make(chan error)
	s.requests <- func() { done <- cmd.Start() }
	return <-done
}

// command prepares a role's process: its log is its output, alive its input.
func command(o Options, r *role, alive *os.File, extra []*os.File) (*exec.Cmd, *os.File, error) {
	log, err := os.OpenFile(o.Folder.Log(r.name, r.index), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	args := []string{r.name, "--run", string(o.Folder), "--supervised"}
	if r.name != Coordinator {
		args = append(args, "--index", strconv.Itoa(r.index))
	}
	cmd := exec.Command(self(o.Program), args...)
	cmd.Args[0] = o.Program // what people see in a list of processes
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = alive, log, log
	cmd.ExtraFiles = extra
	cmd.SysProcAttr = attributes()
	return cmd, log, nil
}

// tail is the end of a role's log, for a message that says why it failed.
func tail(f run.Folder, r *role) string {
	const most, lines = 4 << 10, 15
	file, err := os.Open(f.Log(r.name, r.index))
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		file.Seek(-most, io.SeekEnd) // from the start, if it cannot
	}
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(data), "?"), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
