package supervisor

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// The names of the roles, which are stoke-trainer's commands.
const (
	Coordinator = "coordinator"
	Server      = "ps"
	Worker      = "worker"
)

// LeaveSignal asks a coordinator to leave the run as it is, after a checkpoint,
// without saying that it has ended.
const LeaveSignal = syscall.SIGUSR1

// CrashedVariable names the environment variable that tells a worker how the
// process of its index before it crashed.
const CrashedVariable = "STOKE_CRASHED"

// role is one process of the run, restarted or not.
type role struct {
	name    string
	index   int
	process *os.Process // nil: not running
	started time.Time
	starts  int
	endedAt time.Time
	reason  string      // of the last end
	crashed string      // how the last process ended, where that was by itself
	ends    []time.Time // that count, within the window
	pulse   pulse       // the coordinator's
	givenUp bool        // a worker that is not started any more
	due     time.Time
}

func (r *role) String() string { return fmt.Sprintf("%s %d", r.name, r.index) }

// arguments gives a role what it needs: it looks for nothing in the run's
// folder by itself.
func (c *processes) arguments(r *role) []string {
	if c.isAgent(r) {
		return c.agentArguments(r)
	}
	f, at := c.Folder, c.ports.endpoints()
	var servers []string
	if len(at.Servers) > 0 {
		servers = []string{"--servers", strings.Join(at.Servers, ",")}
	}
	data := []string{"--data", c.spec.Dataset.Path}
	args := []string{r.name, "--supervised", "--spec", f.Spec(), "--token-file", f.Token()}
	if r.name != Coordinator {
		args = append(args, "--api", c.ports.apiURL())
	}
	switch r.name {
	case Coordinator:
		args = append(args, "--state", string(f), "--checkpoints", f.Checkpoints())
		if c.spec.HasProgram() {
			return args
		}
		return append(append(args, servers...), data...)
	case Server:
		args = append(args, "--state", string(f), "--checkpoints", f.Checkpoints())
	case Worker:
		args = append(args, "--run", f.Name(), "--coordinator", at.Coordinator)
		if c.spec.Strategy == spec.StrategyAllReduce {
			args = append(args, "--checkpoints", f.Checkpoints())
		}
		args = append(append(args, servers...), data...)
	}
	return append(args, "--index", strconv.Itoa(r.index))
}

// environment returns the environment of a role. The workers of a program share the
// GPUs by their indices; the workers of a built-in model take slots (runtime/slot).
func environment(ours []string, s *spec.Spec, r *role) []string {
	const devices = "CUDA_VISIBLE_DEVICES"
	if n := s.Worker.GPUs; r.name == Worker && n > 0 && s.HasProgram() {
		var all []string
		for _, v := range ours {
			if list, ok := strings.CutPrefix(v, devices+"="); ok {
				all = strings.Split(list, ",")
			}
		}
		var mine []string
		for at := r.index * n; at < (r.index+1)*n; at++ {
			if all == nil {
				mine = append(mine, strconv.Itoa(at))
			} else if at < len(all) { // else there is none: the engine says so
				mine = append(mine, all[at])
			}
		}
		return append(slices.Clone(ours), devices+"="+strings.Join(mine, ","))
	}
	return ours
}

// command prepares a role's process: alive is its input, and what it says on
// its two outputs is kept apart.
func (c *processes) command(r *role, extra []*os.File) (cmd *exec.Cmd, outputs []*os.File, err error) {
	for _, path := range []string{c.Folder.Output(r.name, r.index), c.Folder.Log(r.name, r.index)} {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			closeAll(outputs)
			return nil, nil, fmt.Errorf("open log: %w", err)
		}
		outputs = append(outputs, file)
	}
	cmd = exec.Command(self(c.Program), c.arguments(r)...)
	cmd.Args[0] = c.Program // what people see in a list of processes
	cmd.Dir = "/"
	cmd.Env = environment(os.Environ(), &c.spec, r)
	if r.crashed != "" {
		cmd.Env = append(cmd.Env, CrashedVariable+"="+r.crashed)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.alive, outputs[0], outputs[1]
	cmd.ExtraFiles = extra
	cmd.SysProcAttr = attributes(c.isAgent(r))
	return cmd, outputs, nil
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
