package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// ErrNoRun says that nothing is there of a run that the state has.
var ErrNoRun = errors.New("there is nothing left of the run")

// Runs is an optional interface of linked-in providers: some of their objects
// have a run behind them, such as a training.
type Runs interface {
	// Types lists the resource types whose objects are runs.
	Types() []string
	// Is reports, without a request, whether an object of one of these types has a
	// run behind it. Not every set of a cluster's objects has pods.
	Is(o RunObject) bool
	// Run finds the run of an object: ErrNoRun where there is none. It changes
	// nothing.
	Run(ctx context.Context, o RunObject) (Run, error)
}

// MachineRuns is a Runs that finds runs of this machine without a state.
type MachineRuns interface {
	// OnMachine returns an object for each run in a folder, sorted by the run's id; ""
	// is the folder of a provider without configuration. Run takes them.
	OnMachine(folder string) ([]MachineRun, error)
}

// RunBenchmarks is a Runs that measures what its runs exchange.
type RunBenchmarks interface {
	// Benchmark measures the all-reduce of a temporary run, which it removes, also where
	// ctx has ended. An error of the callback ends it.
	Benchmark(ctx context.Context, o RunBenchmark, each func(RunReduction) error) error
}

// RunBenchmark is a run that is measured.
type RunBenchmark struct {
	Workers int
	// Cluster is an object with the connection to a cluster as its attribute cluster, and
	// with the image and the program of an experiment; nil: the run is on this machine.
	Cluster   *RunObject
	Namespace string // in a cluster
	Image     string // in a cluster; "": the one that the experiment's pods would have
}

// RunReduction is the time of an all-reduce of vectors of one length.
type RunReduction struct {
	Floats    int     `json:"floats"`
	Bytes     int     `json:"bytes"`
	Updates   int     `json:"updates"`         // that were measured
	Seconds   float64 `json:"seconds"`         // median of the means of 5 updates in a row
	Fastest   float64 `json:"fastest_seconds"` // the lowest of these means
	Bandwidth float64 `json:"bytes_per_second"`
}

// MachineRun is a run of this machine.
type MachineRun struct {
	ID     string
	Object RunObject
}

// RunObject is an object as a state has it.
type RunObject struct {
	Type string
	// Value is the stored object, or what was planned of one that is being made.
	Value cty.Value
	// Operation is that of a create without a result yet; "" = there is a result.
	Operation string
	// Configured is the provider as the configuration has it, for runs that lie
	// where only its block leads; the configuration is read when this is called.
	// nil: there is none. Whoever made the RunObject closes it.
	Configured func(ctx context.Context) (Provider, error)
}

// RunError is an error for people: what was tried and does not work in at most
// eight words, and what to do about it in sentences.
type RunError struct {
	Summary, Detail string
	Err             error // nil: there is none below
}

func (e *RunError) Error() string { return e.Summary + ": " + e.Detail }
func (e *RunError) Unwrap() error { return e.Err }

// RunLeftError is the error of a benchmark whose run could not be removed.
type RunLeftError struct {
	Run, Place string
	Err        error
}

func (e *RunLeftError) Error() string {
	return fmt.Sprintf("the run %s could not be removed from %s: %v", e.Run, e.Place, e.Err)
}
func (e *RunLeftError) Unwrap() error { return e.Err }

// Run is one run. ctx bounds every call; following ends without an error when
// the run does, or when ctx is done. An error of the callback ends a call.
type Run interface {
	Status(ctx context.Context) (RunStatus, error)
	Logs(ctx context.Context, o RunLogs, line func(RunLine) error) error
	// Metrics gives the wanted events of the run, the oldest first.
	Metrics(ctx context.Context, o RunMetrics, event func(RunEvent) error) error
}

// RunMetrics selects events; the zero value selects all. A run with millions of them
// returns, and if possible reads, only the selected events.
type RunMetrics struct {
	Follow bool
	After  int64     // number of the last event that the caller has
	Since  time.Time // leaves out older events; zero: none
	Usage  RunUsageEvents
	Role   string // of usage: only this role's; "": of all roles
	Brief  bool   // leaves JSON out
}

// RunUsageEvents selects samples of usage, other events, or both.
type RunUsageEvents int

// The values of RunUsageEvents.
const (
	WithUsage RunUsageEvents = iota
	WithoutUsage
	OnlyUsage
)

// RunStatus is how a run stands.
type RunStatus struct {
	// Trains says that steps, epochs, workers, the checkpoint and metrics mean
	// something.
	Trains     bool               `json:"-"`
	Run        string             `json:"run"`
	Where      string             `json:"-"` // the machine or the cluster, in words; "" where that is unknown
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
	Checkpoint int64              `json:"checkpoint"`       // step of the newest; -1: none
	Change     *RunChange         `json:"change,omitempty"` // nil: none since the start
	Version    string             `json:"trainer_version,omitempty"`
	GPUHealth  string             `json:"gpu_health,omitempty"` // the worst so far, in words; "": the GPUs are not watched
	Started    time.Time          `json:"started_at,omitzero"`
	Ended      time.Time          `json:"finished_at,omitzero"`
	Metrics    map[string]float64 `json:"metrics"`
	Roles      []RunRole          `json:"roles"`
}

// RunRole is one process of a run.
type RunRole struct {
	Name     string    `json:"name"` // worker-1
	Phase    string    `json:"phase"`
	Ready    string    `json:"ready,omitempty"` // containers that are, of how many: "1/2"; "" where that means nothing
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since,omitzero"`
	Node     string    `json:"node,omitempty"`
	// Address is the IP address of its own; "" where it shares that of its node.
	Address string    `json:"address,omitempty"`
	Pod     string    `json:"-"` // its namespace and name, such as "lab/web-0"; "" where runs know their pods by RunTenant.Run
	Reason  string    `json:"reason,omitempty"`
	Usage   *RunUsage `json:"usage,omitempty"` // nil: it is not known
}

// RunUsage is what the processes of a role take from their machine. Numbers that
// the machine does not count are 0.
type RunUsage struct {
	At        time.Time `json:"at"`
	CPU       float64   `json:"cpu"`                 // mean number of busy processors since the sample before
	Memory    int64     `json:"memory_bytes"`        // resident
	Limit     int64     `json:"memory_limit_bytes"`  // 0: none is known
	Received  float64   `json:"received_per_second"` // bytes, from the network
	Sent      float64   `json:"sent_per_second"`     // likewise, to it
	Read      float64   `json:"read_per_second"`     // bytes, from disks
	Written   float64   `json:"written_per_second"`  // likewise, to them
	Network   bool      `json:"network_counted"`     // in containers, which have a network of their own
	Processes int       `json:"processes"`
	Partly    string    `json:"partly,omitempty"` // why numbers are missing
	// Shares of the time since the sample before, of a worker of a built-in model: the
	// rest of it, the worker waits.
	Compute     float64  `json:"compute_share,omitempty"`
	Communicate float64  `json:"communication_share,omitempty"`
	Data        float64  `json:"data_share,omitempty"`
	GPUs        []RunGPU `json:"gpus,omitempty"` // of the role's machine
}

// RunGPU is what a GPU of a run reports of itself.
type RunGPU struct {
	Index   int                `json:"index"`
	Name    string             `json:"name,omitempty"`
	UUID    string             `json:"uuid,omitempty"`
	Values  map[string]float64 `json:"values"`           // by the names of docs/gpu-health.md; others are not supported
	Health  string             `json:"health"`           // fit, warning or unfit
	Reasons string             `json:"reason,omitempty"` // why it is not fit
}

// RunLogs says which lines are wanted; "" is all.
type RunLogs struct {
	Role   string
	Stream string // stdout or stderr
	Follow bool
	// Previous is for what was said before the last restart, in place of what was
	// said since. It means nothing to runs that keep all in one log.
	Previous bool
	// Waiting, when not nil, hears why a role has no log yet, and again when the
	// reason is another one. It is called from one goroutine at a time, never
	// together with the callback for lines.
	Waiting func(role, reason string)
}

// RunLine is one line of a log.
type RunLine struct {
	Role   string    `json:"role"`
	Stream string    `json:"stream,omitempty"` // "" where they are not told apart
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
	Role    string              // of usage: the names of its values begin with the role and a dot
	Count   int64               // updates or samples that Values are means of; 0: it is one
	Ranges  map[string]RunRange // of values that are means, where they are known
	Message string
	Worker  *int            // index of the worker, or the server, that it is about; nil: none
	JSON    json.RawMessage // the whole of it, as the run wrote it; nil where RunMetrics.Brief
}

// RunRange has the least and the largest of several values.
type RunRange struct{ Min, Max float64 }

// RunExporter is a Run whose model can be written to a file.
type RunExporter interface {
	// Export writes the model in the format safetensors: all of the file, or nothing
	// of it.
	Export(ctx context.Context, o RunExport) (RunModel, error)
}

// RunExport is a request to write a model.
type RunExport struct {
	Path    string // of the file
	Step    int64  // of a checkpoint; -1: the finished model
	Replace bool   // a file that exists
}

// RunModel describes a model that was written.
type RunModel struct {
	Name       string `json:"name"`
	Step       int64  `json:"step"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}
