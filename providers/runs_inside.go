package providers

import (
	"context"
	"io"
)

// RunNames is a Run that takes more names for roles than its status lists.
type RunNames interface {
	Names(ctx context.Context) ([]string, error)
}

// RunExecutor is a Run in which commands can be run.
type RunExecutor interface {
	// Exec runs a command beside the processes of a role, "" for one that runs, and
	// returns its exit code once it has ended. An error says that it could not be
	// run, or that its end is not known.
	Exec(ctx context.Context, role string, command []string, s RunStreams) (code int, err error)
}

// RunStreams are what a command reads and writes.
type RunStreams struct {
	In       io.Reader // nil: nothing, not even its end
	Out, Err io.Writer
	// Terminal says that the command gets a terminal: then what it writes comes
	// through Out alone. Sizes are those of the terminal that it is shown on, the
	// present one first.
	Terminal bool
	Sizes    <-chan RunSize
	// Chosen, when not nil, hears which role was taken where none was named and
	// there are several.
	Chosen func(role string)
}

// RunSize is the size of a terminal in characters.
type RunSize struct{ Columns, Rows uint16 }

// RunForwarder is a Run whose ports can be had on this machine.
type RunForwarder interface {
	// Forward listens on loopback and passes every connection on to the ports of a
	// role, "" for one that runs. It goes on until ctx is done, which is no error,
	// or the role is not there any more.
	Forward(ctx context.Context, role string, ports []RunPort, o RunForward) error
}

// RunPort is a port of a run, and the one on this machine that leads there.
type RunPort struct {
	Local  uint16 // 0: any that is free
	Remote string // its number, or the name that the run has for it
}

// RunForward hears how forwarding goes; both are called from one goroutine at a
// time.
type RunForward struct {
	// Ready hears to which role the ports lead, and which they are on this machine:
	// at first, and whenever they lead to another role.
	Ready func(role string, ports []RunPort)
	// Trouble hears what went wrong though it goes on, such as that nothing listens
	// on a port over there.
	Trouble func(text string)
}
