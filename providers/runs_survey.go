package providers

import (
	"context"
	"errors"
	"time"
)

// ErrNoSurvey is the error for a run whose machines are not known.
var ErrNoSurvey = errors.New("the machines of the run are not known")

// RunSurveyor is a Run that knows the machines of its place: the nodes of its cluster, or
// this machine.
type RunSurveyor interface {
	// Survey returns the machines with their tenants, of all runs and of others. It
	// changes nothing; ErrNoSurvey where the machines are not known.
	Survey(ctx context.Context) (RunSurvey, error)
}

// RunSurvey is the capacity of a cluster or of this machine, and who uses it.
type RunSurvey struct {
	Place   string      // in words; surveys with the same ID are of the same place
	ID      string      //
	IsHere  bool        // it is this machine: tenants are known by the statuses of runs
	Nodes   []RunNode   // by name
	Pending []RunTenant // that wait for a node, the oldest first
	Partly  string      // why nodes or tenants are missing; "": none are
}

// RunNode is one machine.
type RunNode struct {
	Name     string
	Phase    string  // ready, not ready, or cordoned
	CPU      float64 // processors that tenants can have
	Memory   int64   // bytes, likewise
	GPUs     int64   // likewise
	GPUModel string  // "": it is not known
	Tenants  []RunTenant
	Holders  []RunHolder // of this machine's GPUs
}

// RunTenant is a pod, or a process, on a node or waiting for one.
type RunTenant struct {
	Name   string // of the pod, with its namespace
	Run    string // id of its run; "": it is not known
	CPU    float64
	Memory int64
	GPUs   int64     // all three: what it has asked for
	Reason string    // why it waits, as the scheduler says
	Since  time.Time // it was created
}

// RunHolder has the slot of a GPU of this machine.
type RunHolder struct {
	GPU string // index and model, for people
	By  string // the run and the process; "": the slot is free
}
