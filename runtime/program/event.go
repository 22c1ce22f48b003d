package program

import "time"

// Kind is the kind of an Event.
type Kind string

// The kinds of events, in the order of a generation's life.
const (
	Started     Kind = "started"     // a rank
	Metric      Kind = "metric"      // a rank reported Values
	Complete    Kind = "complete"    // a Checkpoint is complete: again when its marker changes, so perhaps twice
	Malformed   Kind = "malformed"   // a rank reported a line that is not as documented; only its first one
	Rotated     Kind = "rotated"     // a log was cut: an older file was dropped or renamed
	Unwritten   Kind = "unwritten"   // output of a rank cannot be written to its log, and is dropped
	Ended       Kind = "ended"       // a rank
	Terminating Kind = "terminating" // SIGTERM was sent to all process groups
	Killing     Kind = "killing"     // SIGKILL was
	Leftover    Kind = "leftover"    // a process was found that is not a rank, and is ended
)

// Event is a fact of a generation as it happens.
type Event struct {
	At         time.Time
	Kind       Kind
	Rank       int    // -1: of no rank
	PID        int    // of Started, Ended and Leftover
	Text       string // for people, harmless to print
	Step       int64  // of Metric; -1 where the line has none
	Values     map[string]float64
	Checkpoint string // the absolute name
	OK         bool   // of Ended: the rank has done all of its work
}
