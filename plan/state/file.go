package state

import (
	"context"
	"errors"
)

// File is a snapshot and journal as they were read.
type File struct {
	store Store
	state *State
	open  []Intent
	notes []string
}

// Open reads snapshot and journal. Where neither exists the state is empty
// and has a new lineage. Errors that say what is wrong: *CorruptError,
// *NewerVersionError, *OlderVersionError.
func Open(ctx context.Context, s Store) (*File, error) { return nil, errors.New("not yet") }

// State is the state with everything that the journal holds.
func (f *File) State() *State { return f.state }

// Open lists the intents without a result, oldest first. They are to be
// settled by reading before anything else is done.
func (f *File) Open() []Intent { return f.open }

// Notes says what people should know of how the files were found, such as a
// torn last record that was dropped.
func (f *File) Notes() []string { return f.notes }

// Begin opens the journal for writing, or goes on with the one that is there.
// From here to Close the snapshot says version 5, so that Terraform refuses
// it. The store should be locked. The journal is written regardless of ctx's
// end.
func (f *File) Begin(ctx context.Context) (*Journal, error) { return nil, errors.New("not yet") }

// Journal takes down what happens. Its methods may be called by many
// goroutines at once.
type Journal struct{}

// Intent records that a provider call is about to be made. Nobody may make
// the call before it has returned without an error.
func (j *Journal) Intent(ctx context.Context, in Intent) error { return errors.New("not yet") }

// Result records what came of a call, or any other change. State shows it
// from then on. What has happened is recorded even if ctx has ended. After an
// error the change is held in memory and Close tries again.
func (j *Journal) Result(ctx context.Context, r Result) error { return errors.New("not yet") }

// State is the state as of now; it costs nothing.
func (j *Journal) State() *State { return nil }

// Open lists the intents without a result as of now, oldest first.
func (j *Journal) Open() []Intent { return nil }

// Close ends the journal. When every intent has its result, it is folded into
// the snapshot, whose serial grows by one if anything changed, and dropped.
// Otherwise it stays beside the snapshot of version 5, for the next run to
// settle. The File then holds the new state and may Begin again.
func (j *Journal) Close(ctx context.Context) error { return errors.New("not yet") }

// Rescue is the state as of now as a snapshot of version 4, for when Close
// has failed and it has to be kept somewhere else.
func (j *Journal) Rescue() []byte { return nil }
