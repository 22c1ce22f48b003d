package plan

import (
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/providers"
)

// EventKind is the kind of an event.
type EventKind uint8

const (
	RefreshStart EventKind = iota
	RefreshDone
	ReadStart // a data source
	ReadDone
	PlanSlow // planning an object takes its time; it has taken Elapsed already
	PlanDone // follows PlanSlow alone
	ApplyStart
	ApplyProgress // from the provider: Progress is set
	ApplyDone
	ApplyFailed
	Importing // an existing object is looked up or taken in; Text says which
	Settled   // the outcome of an interrupted operation was found out; Text says which
)

// Event is one sign of life of the engine, for live views. Events of one
// object come in order; events of different objects come from several
// goroutines, one at a time.
type Event struct {
	Kind     EventKind
	Addr     address.Instance
	Deposed  string
	Action   Action    // of Apply events: Create, Update, Delete or Read
	ID       cty.Value // the object's id attribute where it is known
	Elapsed  time.Duration
	Progress providers.Progress
	Text     string
}

// Listener hears events; nil listens to nothing.
type Listener func(Event)

// OneAtATime returns a listener that may be called by many goroutines and calls
// l by one of them at a time. For nil the result does nothing.
func OneAtATime(l Listener) Listener {
	if l == nil {
		return func(Event) {}
	}
	var mu sync.Mutex
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		l(e)
	}
}
