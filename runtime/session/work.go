package session

import (
	"context"
	"net/http"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Prompt is embedded in a Work whose surplus members leave at once.
type Prompt struct{}

// Keeps implements Work.
func (Prompt) Keeps(Seat) bool { return false }

// Work is the computation that the members of a session make together. The loop
// of the session calls its methods, one at a time, except where another caller
// is named. They do not wait for members, servers or remote files: the work
// starts a goroutine for a call that may take long, which reaches the loop by
// Session.Post or Session.Do.
type Work interface {
	// Follow takes every event of the run's history: Open passes the events of
	// earlier coordinators, Note passes new ones.
	Follow(e spec.Event)
	// Advance makes all moves that can be made now, and reports whether the run
	// is over. An error ends the run: see Outcome. The context ends with the
	// loop.
	Advance(ctx context.Context) (over bool, err error)
	// Wake returns a channel that receives when Advance may have a move to make.
	Wake() <-chan struct{}
	// Tick looks after what happens by time. It is called twice a second.
	Tick(now time.Time)
	// Handle takes an event that the work posted.
	Handle(event any) error

	// Keeps reports whether a member stays for now that the specification no longer
	// needs: the work dismisses it later.
	Keeps(at Seat) bool
	// Join takes a member in. Where it reports false, the work has dismissed
	// it. The work knows no other member of its index at that time.
	Join(m *Member) (taken bool, err error)
	// Leave takes a member out whose connection has ended, or whose place
	// another process has taken.
	Leave(m *Member) error
	// Decode reads a message of a type that the session does not know. The
	// goroutine of the member's connection calls it.
	Decode(m *wire.Message) (message any, err error)
	// Receive takes a decoded message of a member.
	Receive(m *Member, message any) error
	// Unable takes the report of a process that cannot work, and returns how
	// the process must end. An error ends the run.
	Unable(r Inability) (wire.Leave, error)

	// Change takes on the specification after a live change, and dismisses surplus
	// members by Session.DismissSurplus, now or later.
	Change(next spec.Spec)
	// Dismissed takes back the tasks of a member that is dismissed.
	Dismissed(m *Member)
	// Finish gives up what is under way: the run ends at its present step, for
	// this reason, once Advance reports that it is over.
	Finish(reason error)

	// Step returns the run's progress, as events have it.
	Step() int64
	// Report adds the work's figures to a status. Metrics is never nil.
	Report(s *spec.Status)
	// Sync makes the files of the work durable. A goroutine outside of the loop
	// calls it, once a second.
	Sync() error
	// Routes adds the work's paths to the API. The API's goroutines call the
	// handlers.
	Routes(mux *http.ServeMux)
	// Close ends the goroutines of the work, after the loop's end.
	Close()
}
