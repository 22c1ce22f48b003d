package providers

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Call carries what the engine passes to a provider beyond Terraform's
// protocol, and its answers. It rides in the context; a provider must work
// without one, so CallFrom never returns nil.
type Call struct {
	// Operation identifies the create that is announced in the journal. A
	// provider stamps it on what it makes. Empty outside of Apply and of a
	// settling Read.
	Operation string
	// Settling marks a Read that asks whether an announced create happened.
	Settling bool
	// Replaces is the object that the planned one replaces; cty.NilVal for none.
	// Such a plan has no prior state, like the plan of a create.
	Replaces cty.Value
	// Planned is the private data that the plan left for this Apply. Terraform's
	// framework hands it to Update and Delete, and not to Create.
	Planned []byte
	// Address is the instance as people write it, for messages and notes.
	Address string
	// Stopping is closed by the first Ctrl-C: a call that only waits returns its
	// result so far, a working one finishes its step.
	Stopping <-chan struct{}
	// Progress, when not nil, hears of steps, percentages and log lines. It
	// may be called from any goroutine and does not block for long.
	Progress func(Progress)
	// Note, when not nil, hears of plan notes. It may be called from any
	// goroutine until the call returns, and does not block for long.
	Note func(Note)
	// Keep, when not nil, is called by an Apply that fails but leaves an
	// object which the next plan finishes by an update.
	Keep func()
	// Declared, in an Import, is the configuration of the object: what the provider reads in other words
	// of the same meaning, or cannot read at all, is then not a difference. nil where it is not known.
	Declared *tfprotov6.DynamicValue
}

// Progress is one sign of life of a call.
type Progress struct {
	Step    string  // what is being done, e.g. "epoch 1 of 2"
	Percent float64 // of the whole call, 0–100; negative when not known
	Line    string  // a line of a log, without its newline
}

// NoteKind classes plan notes.
type NoteKind string

const (
	NoteFact       NoteKind = "fact"       // something observed
	NoteDisruption NoteKind = "disruption" // what the change interrupts
	NoteCost       NoteKind = "cost"       // money; Number in its unit
	NoteForecast   NoteKind = "forecast"   // what to expect, e.g. how long it takes
	NoteChange     NoteKind = "change"     // the class of a change: live, resume, new run
	NoteDeletion   NoteKind = "deletion"   // an update deletes a part of its object; Number is 1 where it makes another in its place
)

// Note accompanies a planned change: views render notes and sum them up.
type Note struct {
	Address string // filled by the engine when empty
	Path    cty.Path
	Kind    NoteKind
	Text    string
	Number  float64
}

type callKey struct{}

// WithCall returns a context that carries c.
func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallFrom returns the context's Call, or an empty one.
func CallFrom(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return &Call{}
}

// Report passes progress on, if there is a listener.
func (c *Call) Report(p Progress) {
	if c.Progress != nil {
		c.Progress(p)
	}
}

// AddNote passes a plan note on and reports whether there is a listener; a
// provider that gets false says the same as a warning.
func (c *Call) AddNote(n Note) bool {
	if c.Note == nil {
		return false
	}
	c.Note(n)
	return true
}

// KeepOnError marks the object as unfinished: the next plan can finish it.
func (c *Call) KeepOnError() {
	if c.Keep != nil {
		c.Keep()
	}
}

// forApply returns a context whose Call has what was planned, and also tells the
// returned function of KeepOnError.
func forApply(ctx context.Context, planned []byte) (context.Context, func() bool) {
	var kept atomic.Bool
	outer := CallFrom(ctx)
	inner := *outer
	inner.Planned = planned
	inner.Keep = func() {
		kept.Store(true)
		outer.KeepOnError()
	}
	return WithCall(ctx, &inner), kept.Load
}
