package launch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

var (
	// ErrNoRun says that nothing is there of the run.
	ErrNoRun = errors.New("there is no such run")
	// ErrForeign says that something is there under the run's name that does not
	// carry its mark.
	ErrForeign = errors.New("it does not carry the run's mark")
)

// Launcher starts runs in one place and finds them again. A run is named by
// its id, which is recorded in the state and follows from the operation that
// creates it. All methods may be called from several goroutines and by several
// processes at a time; ctx bounds each of them, and unless something else is
// said, a call that it ends has changed nothing or can be repeated.
type Launcher interface {
	// Start makes a new run and releases it. After an error nothing runs and
	// nothing is left, except with a *LeftError: then Start returns the id of
	// the run that has to be removed.
	Start(ctx context.Context, operation string, s spec.Spec, c Code) (id string, err error)
	// Settle decides what became of a Start that was interrupted: it gives the
	// run if it was let go; else it removes what there is: ErrNoRun.
	Settle(ctx context.Context, operation string) (id string, err error)

	// ID names the run that Start makes for an operation, whether it is there or
	// not.
	ID(operation string) string
	// Location says where people find what the run leaves.
	Location(id string) Location
	// Spec gives the specification that the run has now.
	Spec(ctx context.Context, id string) (spec.Spec, error)
	// Status returns the run's status: ErrNoRun, ErrForeign, or why it cannot
	// be read.
	Status(ctx context.Context, id string) (State, error)
	// Watch gives the status at once and then whenever it may have changed, until
	// ctx ends or the caller has seen enough. An error is the last that it gives.
	Watch(ctx context.Context, id string) iter.Seq2[State, error]

	// Change brings the live fields of a running run to those of s.
	Change(ctx context.Context, id string, s spec.Spec) error
	// Resume lets an idle run go on from its newest checkpoint as s says.
	Resume(ctx context.Context, id string, s spec.Spec, c Code) error
	// Stop ends the run's processes and returns once they are gone; where there
	// are none, at once. It lets the run save a checkpoint for so long as patience
	// and ctx allow.
	Stop(ctx context.Context, id string, patience time.Duration) error
	// Remove removes all that is left of a stopped run. A missing run is not an
	// error.
	Remove(ctx context.Context, id string) error

	// Logs gives what the run's processes have said, the oldest line first.
	Logs(ctx context.Context, id string, o LogOptions, line func(Line) error) error
	// Metrics gives the wanted events, the oldest first, and with follow those to
	// come until the run ends or ctx does.
	Metrics(ctx context.Context, id string, want run.EventFilter, follow bool, event func(spec.Event) error) error
}

// Code is the code of a program: a snapshot, and the folder that it was taken of.
// The zero value is the code of a run without a folder.
type Code struct {
	Snapshot *code.Snapshot
	Folder   string
}

// Reachable is a Launcher whose runs commands and connections reach from here.
type Reachable interface {
	OpenAccess(ctx context.Context, id string) (RunAccess, error)
}

// Releaser is a Launcher whose runs may have their place held by a machine that
// is lost, or by a cluster that takes its time.
type Releaser interface {
	// Release takes the processes of lost machines for ended, so that others take
	// their place, and has those come back soon that have made way for others many
	// times. Watch does so, too.
	Release(ctx context.Context, id string) error
}

// RunAccess runs commands and forwards ports next to a run's processes.
type RunAccess interface {
	providers.RunNames
	providers.RunExecutor
	providers.RunForwarder
}

// State is the status of a run, with the files and roles that remain.
type State struct {
	spec.Status
	Saved   int64  // step of the newest checkpoint that is there; -1: none
	Version string // of the trainer that runs it, "" where that is unknown
	Roles   []Role // the processes, as far as they are known
	Program bool   `json:"-"` // its workers run a program: no epochs, and steps only where the program reports them

	// CheckpointsLost: the coordinator and its checkpoints are lost. The run starts
	// over.
	CheckpointsLost bool `json:"Perished,omitempty"`
	// CannotContinue is the reason why a run is lost although its coordinator runs or could
	// run; "" without one.
	CannotContinue string `json:"-"`
	// RestartReason is why a running run must be stopped at a checkpoint and resumed, without
	// loss; "" without a reason.
	RestartReason string `json:"-"`
	// Warnings say what threatens a run that goes on, and that stopping it would not
	// mend.
	Warnings []string `json:"-"`
	// DiesWithCoordinator reports that the coordinator's end removes all checkpoints of the
	// run.
	DiesWithCoordinator bool `json:"-"`
	// HeldRoles have places on nodes that do not answer. DelayedRoles come back minutes
	// after they could. Releaser is about both.
	HeldRoles, DelayedRoles []string `json:"-"`
}

// Waiting says which roles do not run although they are to, and why.
func (s State) Waiting() []string {
	var all []string
	for _, r := range s.Roles {
		if r.Phase == Waiting && r.Reason != "" {
			all = append(all, r.Name+": "+r.Reason)
		}
	}
	return all
}

// Phases of a role.
const (
	Running = "running"
	Waiting = "waiting" // is yet to run
)

// Role is one process of a run, restarted or not.
type Role struct {
	Name     string    // worker-1
	Phase    string    // running, waiting, ended or given up
	Restarts int       //
	Since    time.Time // of the present process, or of its end
	Node     string    // where it runs
	Address  string    // IP address of its own, as a pod has one; "" on a machine
	Reason   string    // why it does not run, or did not
}

// Location says where people find what a run leaves; what is not anywhere is
// "".
type Location struct {
	Place   string // in which runs are: a Launcher is made from it again
	Run     string // the run's own
	Logs    string
	Metrics string // every event, one JSON object per line
}

// LogOptions say which lines are wanted; zero values are all of them.
type LogOptions struct {
	Role   string // worker-1
	Stream string // Stdout or Stderr
	Follow bool   // also what is to come, until the run ends
}

// The streams of a process.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Line is one line of a log, without its end.
type Line struct {
	Role   string
	Stream string
	Time   time.Time // zero where the line has none
	Text   string
}

// Check refuses a status that no run with this id can have: it comes from
// processes that may have died or gone wrong at any point.
func Check(s spec.Status, id string) error {
	switch s.Phase {
	case spec.Pending, spec.Running, spec.Succeeded, spec.Failed, spec.Stopped, spec.Lost:
	default:
		return fmt.Errorf("the status names no known phase: %.40q", s.Phase)
	}
	if s.Run != id {
		return fmt.Errorf("the status is about another run: %.40q", s.Run)
	}
	if len(s.Metrics) > 1000 {
		return fmt.Errorf("the status has %d metrics", len(s.Metrics))
	}
	for name, v := range s.Metrics {
		if len(name) > 200 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("the status has a malformed metric %.40q", name)
		}
	}
	if s.GPUHealth != nil {
		if err := s.GPUHealth.Validate(); err != nil {
			return fmt.Errorf("the status is malformed: %w", err)
		}
	}
	if len(s.Usage) > maxRoles {
		return fmt.Errorf("the status has the usage of %d roles", len(s.Usage))
	}
	for name, u := range s.Usage {
		if len(name) > 200 {
			return fmt.Errorf("the status has the usage of a role %.40q", name)
		}
		if err := u.Validate(); err != nil {
			return fmt.Errorf("the status has a malformed usage of %q: %w", name, err)
		}
	}
	return nil
}

// maxRoles is how many roles a status may have the usage of.
const maxRoles = 100_000

// UsageOf returns the usage of a role that runs; nil: it is not known. The only
// coordinator has an index in a cluster, and none on one machine.
func (s State) UsageOf(r Role) *spec.Usage {
	u, ok := s.Usage[r.Name]
	if !ok {
		u, ok = s.Usage[strings.TrimSuffix(r.Name, "-0")]
	}
	if !ok || r.Phase != Running {
		return nil
	}
	return &u
}

// Idle reports whether a phase is unfinished and has no running processes.
func Idle(p spec.Phase) bool { return p == spec.Lost || p == spec.Stopped }
