package providers

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// ErrNoRun says that nothing is there of a run that the state has.
var ErrNoRun = errors.New("there is nothing left of the run")

// Runs is what a linked-in provider may offer beside Provider: some of its
// objects stand for something that goes on by itself, such as a training.
type Runs interface {
	// Types lists the resource types whose objects are runs.
	Types() []string
	// Run finds the run of an object: ErrNoRun where there is none. It changes
	// nothing, and needs no configuration of the provider.
	Run(ctx context.Context, o RunObject) (Run, error)
}

// RunObject is an object as a state has it.
type RunObject struct {
	Type string
	// Value is the stored object, or what was planned of one that is being made.
	Value cty.Value
	// Operation is that of a create without a result yet; "" = there is a result.
	Operation string
}

// Run is one run. ctx bounds every call; following ends without an error when
// the run does, or when ctx is done. An error of the callback ends a call.
type Run interface {
	Status(ctx context.Context) (RunStatus, error)
	Logs(ctx context.Context, o RunLogs, line func(RunLine) error) error
	// Metrics gives the events of the run, the oldest first.
	Metrics(ctx context.Context, follow bool, event func(RunEvent) error) error
}

// RunStatus is how a run stands.
type RunStatus struct {
	Run        string             `json:"run"`
	Phase      string             `json:"phase"`
	Message    string             `json:"message,omitempty"` // what it waits for, why it failed
	Progress   string             `json:"progress"`          // in words
	Percent    float64            `json:"percent"`           // -1: unknown
	Step       int64              `json:"step"`
	Steps      int64              `json:"steps"`
	Epoch      int                `json:"epoch"`
	Epochs     int                `json:"epochs"`
	Workers    int                `json:"workers"`
	Wanted     int                `json:"workers_wanted"`
	Checkpoint int64              `json:"checkpoint"` // step of the newest; -1: none
	Version    string             `json:"trainer_version,omitempty"`
	Started    time.Time          `json:"started_at,omitzero"`
	Ended      time.Time          `json:"finished_at,omitzero"`
	Metrics    map[string]float64 `json:"metrics"`
	Roles      []RunRole          `json:"roles"`
}

// RunRole is one process of a run.
type RunRole struct {
	Name     string    `json:"name"` // worker-1
	Phase    string    `json:"phase"`
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since,omitzero"`
	Node     string    `json:"node,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// RunLogs says which lines are wanted; "" is all.
type RunLogs struct {
	Role   string
	Stream string // stdout or stderr
	Follow bool
}

// RunLine is one line of a log.
type RunLine struct {
	Role   string    `json:"role"`
	Stream string    `json:"stream"`
	Time   time.Time `json:"time,omitzero"`
	Text   string    `json:"text"`
}

// RunEvent is something that happened in a run, with what was measured.
type RunEvent struct {
	Number  int64
	Time    time.Time
	Type    string
	Step    int64
	Epoch   int
	Values  map[string]float64
	Message string
	JSON    json.RawMessage // the whole of it, as the run wrote it
}
