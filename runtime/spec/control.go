package spec

import "time"

// Control is one line to the supervisor.
type Control struct {
	Workers   *int    `json:"workers,omitempty"`   // how many should run from now on
	Hung      *Hung   `json:"hung,omitempty"`      // a process that does not answer
	Beat      *Beat   `json:"beat,omitempty"`      // the coordinator lives
	Committed bool    `json:"committed,omitempty"` // it has committed an update, the first one since it was started
	Outcome   *Status `json:"outcome,omitempty"`   // the run is over
}

// Beat is a sign of life.
type Beat struct {
	Idle float64 `json:"idle_seconds"` // since the coordinator's loop last got on
}

// StuckTime is how long a coordinator's loop may take for one event. It does not
// wait for servers or remote files; a local disk may be slow.
const StuckTime = 5 * time.Minute

// Hung names a process that is to be ended, so that another one can take its
// place.
type Hung struct {
	Server *int `json:"server,omitempty"` // index
	Worker *int `json:"worker,omitempty"` // index
	PID    int  `json:"pid,omitempty"`    // which of those that had the index; 0: the present one
}

// Endpoints are the addresses of a run's roles, host:port each.
type Endpoints struct {
	Coordinator string   `json:"coordinator"`
	Servers     []string `json:"servers"`
}
