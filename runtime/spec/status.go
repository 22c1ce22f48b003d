package spec

import "time"

// Phase is where a run is in its life.
type Phase string

const (
	Pending   Phase = "pending" // made, or waiting for its roles
	Running   Phase = "running"
	Succeeded Phase = "succeeded"
	Failed    Phase = "failed"  // for a reason that it would fail for again
	Stopped   Phase = "stopped" // before its end, for a reason that passes (Cause): it can go on
	Lost      Phase = "lost"    // its supervisor is gone and left no final status
)

// Cause says why a run was stopped.
type Cause string

const (
	CauseRequest  Cause = "request"
	CauseDeadline Cause = "deadline" // it has run for as long as it may
	CauseRestarts Cause = "restarts" // its processes ended again and again
	CauseDisk     Cause = "disk"     // what it must write could not be written
	CauseTrainer  Cause = "trainer"  // this stoke-trainer cannot go on from its checkpoint
	CauseData     Cause = "data"     // its records cannot be read
	CauseGPU      Cause = "gpu"      // gpu_health is required, and the GPUs of too many workers are unfit
	// CauseCheckpoints: it has checkpoints, and none of them can be used.
	CauseCheckpoints Cause = "checkpoints"
	// CauseSuperseded is a coordinator's that has found another one speaking for
	// the run: it writes nothing more, and the run itself goes on.
	CauseSuperseded Cause = "superseded"
)

// Final phases never change by themselves. A lost run is not final; lost and
// stopped ones can be resumed.
func (p Phase) Final() bool { return p == Succeeded || p == Failed || p == Stopped }

// Status is the progress of a run. Once Phase is final it is also the result.
type Status struct {
	Run     string `json:"run"`               // the folder's name
	Hash    string `json:"hash"`              // of the spec
	Trainer string `json:"trainer,omitempty"` // version of the stoke-trainer that says this
	Phase   Phase  `json:"phase"`             //
	Message string `json:"message"`           // one line for people: what it waits for, why it failed
	Cause   Cause  `json:"cause,omitempty"`   // of a stopped run
	Reason  Reason `json:"reason,omitempty"`  // of a failed run
	Log     string `json:"log,omitempty"`     // last lines of the log that tells why a run ended early
	Step    int64  `json:"step"`              // updates committed
	Steps   int64  `json:"steps"`             // updates that the whole run has, as known now
	Epoch   int    `json:"epoch"`             // counted from 0; the number of epochs once all are done
	Epochs  int    `json:"epochs"`            //
	Records int64  `json:"records"`           // committed, over all epochs
	Skipped int64  `json:"skipped"`           // updates left out because their gradients were not finite
	Loss    Number `json:"loss"`              // mean over the last update's records
	Saved   int64  `json:"saved"`             // step of the newest checkpoint that is written; 0: none
	Resumed int    `json:"resumed"`           // times the run went back to a checkpoint (or its start)
	Workers int    `json:"workers"`           // alive now
	Wanted  int    `json:"workers_wanted"`    //
	Class   string `json:"class,omitempty"`   // of the machines that a deterministic run is computed on

	// Metrics has the newest evaluation (accuracy, loss, …) under the model's
	// names, and samples_per_second, training_seconds, elapsed_seconds,
	// steps, records. Loss here is the evaluation's.
	Metrics map[string]float64 `json:"metrics"`
	// Evaluated is the version (number of updates) that the evaluation in
	// Metrics is about; -1 when there was none.
	Evaluated int64 `json:"evaluated"`

	// Usage has the newest usage of each role of a run that is not over, by its
	// name. Roles that have not reported for half a minute are left out.
	Usage map[string]Usage `json:"usage,omitempty"`

	// GPUHealth is the worst verdict about the run's GPUs so far; nil: they were not
	// watched.
	GPUHealth *GPUHealth `json:"gpu_health,omitempty"`

	// Change is the newest change of the spec; nil: there was none.
	Change *LastChange `json:"change,omitempty"`

	// Term is that of the coordinator that says this: it fences. Generation
	// numbers memberships: it rises when a worker joins or leaves.
	Term       int64 `json:"term,omitempty"`
	Generation int64 `json:"generation,omitempty"`

	// Ran is how many seconds the run has had at least min_replicas workers, over
	// all starts: what a deadline bounds. Earlier versions counted all seconds of its
	// coordinators.
	Ran     float64   `json:"ran_seconds"`
	Started time.Time `json:"started"` // when its roles were first started
	Ended   time.Time `json:"ended,omitzero"`
	Updated time.Time `json:"updated"`
}

// TermOf is the term of what has been written: earlier versions knew one
// number, the generation, and meant the term by it.
func TermOf(term, generation int64) int64 {
	if term == 0 {
		return generation
	}
	return term
}

// EventType names one kind of line in metrics.jsonl.
type EventType string

const (
	EventUpdate     EventType = "update"     // an update was committed
	EventUpdates    EventType = "updates"    // several older updates, First to Step
	EventEvaluation EventType = "evaluation" //
	EventWorker     EventType = "worker"     // a worker joined or left
	EventServer     EventType = "server"     // a parameter server was lost or came back
	EventRestore    EventType = "restore"    // the run went back to Step: later updates of earlier terms are void
	EventCheckpoint EventType = "checkpoint"
	EventDamage     EventType = "damage" // something that was written could not be read, and was put aside
	EventScale      EventType = "scale"
	EventEpoch      EventType = "epoch"      // an epoch's records have all been committed
	EventGeneration EventType = "generation" // a generation of a program began, or ended
	EventProgram    EventType = "program"    // something about the processes of a program
	EventUsage      EventType = "usage"      // a sample of what a role takes from its machine
	EventGPU        EventType = "gpu"        // a GPU broke a rule of health, or keeps a worker from its start
	EventEnd        EventType = "end"
)

// Event is one line of metrics.jsonl. Fields that an event type does not use
// are left out.
type Event struct {
	Number     int64              `json:"n"` // 1, 2, … over the life of the run
	Time       time.Time          `json:"time"`
	Type       EventType          `json:"type"`
	Term       int64              `json:"term,omitempty"`       // of the coordinator that wrote it; see TermOf
	Generation int64              `json:"generation,omitempty"` // of the memberships: rises when a worker joins or leaves
	Step       int64              `json:"step"`                 // updates committed, this one included
	Epoch      int                `json:"epoch"`
	Records    int64              `json:"records,omitempty"` // in this update
	Loss       Number             `json:"loss,omitempty"`
	Norm       Number             `json:"norm,omitempty"`      // of the mean gradient
	Staleness  int64              `json:"staleness,omitempty"` // asynchronous: updates since the parameters were pulled
	Skipped    bool               `json:"skipped,omitempty"`
	First      int64              `json:"first,omitempty"`    // of several updates: the first one's step
	Count      int64              `json:"count,omitempty"`    // updates or samples of usage; Loss and Norm are means, Records a sum
	Skips      int64              `json:"skips,omitempty"`    // likewise: how many of them were skipped
	LossMin    Number             `json:"loss_min,omitempty"` //
	LossMax    Number             `json:"loss_max,omitempty"` //
	Taken      []Contribution     `json:"taken,omitempty"`
	Metrics    map[string]float64 `json:"metrics,omitempty"`
	NotFinite  []string           `json:"not_finite,omitempty"` // metrics of a program that are infinite or not a number
	Usage      *Usage             `json:"usage,omitempty"`
	Worker     *int               `json:"worker,omitempty"`
	Message    string             `json:"message,omitempty"`
}

// Contribution is one push that an update was made of: the records at
// positions [Start, End) of the epoch's order (see ledger.Order).
type Contribution struct {
	Epoch      int   `json:"epoch"`
	Start      int64 `json:"start"`
	End        int64 `json:"end"`
	Sequence   int   `json:"sequence"` // its place in the update
	Attempt    int   `json:"attempt"`  // 1 for the first worker that it was given to
	Term       int64 `json:"term,omitempty"`
	Generation int64 `json:"generation"` // of the memberships when it was given
	Worker     int   `json:"worker"`
}

// Ledger says which records have been committed: all of the first Whole
// epochs, and of those behind them what Epochs says.
type Ledger struct {
	Records int64         `json:"records"` // in the training set
	Step    int64         `json:"step"`
	Whole   int           `json:"whole"`
	Epochs  []EpochLedger `json:"epochs"`
}

// EpochLedger is the part of one epoch: disjoint, ascending ranges of
// positions in the epoch's order.
type EpochLedger struct {
	Epoch  int        `json:"epoch"`
	Ranges [][2]int64 `json:"ranges"`
}
