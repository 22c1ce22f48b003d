package spec

// Control is one line to the supervisor.
type Control struct {
	Workers *int    `json:"workers,omitempty"` // how many should run from now on
	Hung    *Hung   `json:"hung,omitempty"`    // a process that does not answer
	Outcome *Status `json:"outcome,omitempty"` // the run is over
}

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
