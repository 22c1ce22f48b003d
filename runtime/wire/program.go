package wire

import "time"

// Messages between the coordinator of a run of a program and its agents, which
// are the members of its session.

// Ready reports that an agent runs no generation, with the addresses of its processes
// in the next one.
type Ready struct {
	Began   int    `json:"began"`   // the newest generation that it has begun; 0: none
	Address string `json:"address"` // name or IP of its machine, for other members
	Port    int    `json:"port"`    // that it holds for the generation's master
	Ports   []int  `json:"ports"`   // that it holds for its processes, one each
	// Checkpoints are the names of complete checkpoints in the agent's folder, the
	// newest one last.
	Checkpoints []string `json:"checkpoints,omitempty"`
}

// Begin has an agent start its processes of a generation.
type Begin struct {
	Term       int64               `json:"term"`
	Generation int                 `json:"generation"`
	Role       string              `json:"role"`   // of its processes: worker, ps, chief or evaluator
	Task       int                 `json:"task"`   // of its first process among all of the role
	Rank       int                 `json:"rank"`   // of its first process
	World      int                 `json:"world"`  // all ranks
	Group      int                 `json:"group"`  // the agent among all of the generation
	Groups     int                 `json:"groups"` // all agents of the generation
	Address    string              `json:"address"`
	Port       int                 `json:"port"`
	Restarts   int                 `json:"restarts"`
	Members    map[string][]string `json:"members"`          // host:port of each process by role, in the order of tasks
	Resume     string              `json:"resume,omitempty"` // name of the checkpoint to begin with
	Grace      float64             `json:"grace"`            // seconds from SIGTERM to SIGKILL
	Most       int                 `json:"most"`             // restarts that the program may have
}

// Halt has an agent end its processes of a generation.
type Halt struct {
	Term       int64  `json:"term"`
	Generation int    `json:"generation"`
	Reason     string `json:"reason"`
}

// Running reports that an agent runs a generation: at its start, and again after each
// connection.
type Running struct {
	Begin
}

// Result reports the end of an agent's processes of a generation: at their end, and
// again after each connection until the next generation.
type Result struct {
	Begin
	Cause string    `json:"cause"`          // as program.Cause
	Text  string    `json:"text"`           // for people: rank and signal or exit status
	At    time.Time `json:"at"`             // of the end that ended the others
	Last  []string  `json:"last,omitempty"` // lines that the rank printed last
}

// Observed has what an agent saw of its processes since the last one.
type Observed struct {
	Generation  int          `json:"generation"`
	Points      []Point      `json:"points,omitempty"`
	Checkpoints []Checkpoint `json:"checkpoints,omitempty"` // that became complete
	Facts       []string     `json:"facts,omitempty"`       // for people
	Done        []int        `json:"done,omitempty"`        // ranks that have ended with 0
}

// Checkpoint is a checkpoint that became complete.
type Checkpoint struct {
	Name string `json:"name"`
	Step int64  `json:"step"` // the newest step of the ranks at that time; -1: they report no steps
}

// Point has the newest values of metrics that a rank reported.
type Point struct {
	Rank   int                `json:"rank"`
	Step   int64              `json:"step"` // -1: the lines had none
	Values map[string]float64 `json:"values"`
	// NotFinite are the names of metrics whose newest value is infinite or not a
	// number.
	NotFinite []string `json:"not_finite,omitempty"`
}
