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
	// Exec runs a command in a running role ("" chooses one), and returns its exit
	// code. An error says that it could not be run, or that its end is not known.
	Exec(ctx context.Context, role string, command []string, s RunStreams) (code int, err error)
}

// RunStreams are what a command reads and writes.
type RunStreams struct {
	In       io.Reader // nil: nothing, not even its end
	Out, Err io.Writer
	// Terminal allocates a terminal; then all output is in Out. Sizes receives the
	// sizes of the user's terminal, the present one first.
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
	// Forward listens on loopback and forwards every connection to the ports of a
	// role ("" chooses a running one). It ends without an error when ctx is done,
	// and with one when the role no longer exists.
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
	// Ready is called with the role of the ports and the local ports: at first, and
	// whenever the role changes.
	Ready func(role string, ports []RunPort)
	// Trouble is called with faults that do not end the forwarding, such as a
	// remote port without a listener.
	Trouble func(text string)
}
