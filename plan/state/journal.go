package state

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stokehq/stoke/plan/seal"
)

// Journal takes down what happens. Its methods may be called by many
// goroutines at once.
type Journal struct {
	file *File
	core *core
	log  *log
	box  *seal.Box

	mu     sync.Mutex
	at     uint64 // sequence number of the last record
	open   map[string]openIntent
	closed bool
}

func newJournal(ctx context.Context, f *File) *Journal {
	j := &Journal{file: f, core: f.core, box: f.snap.box(), at: f.at, open: map[string]openIntent{}}
	for _, in := range f.open {
		j.open[in.ID] = in
	}
	j.log = startLog(ctx, f.store, f.size)
	return j
}

var errClosed = errors.New("the journal is closed")

// payloads are reused: a record is copied into the log's batch.
var payloads = sync.Pool{New: func() any { return new(writer) }}

// Intent records that a provider call is about to be made. The caller must not
// make the call before Intent has returned without an error. It does not wait
// for anything but the disk, so that ctx counts only on entry.
func (j *Journal) Intent(ctx context.Context, in Intent) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("announce %s: %w", in.Address, context.Cause(ctx))
	}
	if err := in.checkStorable(); err != nil {
		return err
	}
	w := payloads.Get().(*writer)
	defer payloads.Put(w)
	*w = writer{buf: w.buf[:0]}
	w.intent(&in)

	wait, err := func() (func() error, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if _, ok := j.open[in.ID]; ok {
			return nil, fmt.Errorf("its id %q is in use", in.ID)
		}
		if err := j.usable(); err != nil {
			return nil, err
		}
		j.at++
		in.Planned, in.Private = clone(in.Planned), clone(in.Private)
		j.open[in.ID] = openIntent{j.at, in}
		return j.log.add(j.at, kindIntent|sealedKind, j.seal(w, kindIntent), in.Durable), nil
	}()
	if err != nil {
		return fmt.Errorf("announce %s: %w", in.Address, err)
	}
	if err := wait(); err != nil {
		// The call will not be made; should the record get to the disk after
		// all, this one must follow it.
		_ = j.Result(ctx, Result{Intent: in.ID, Err: "not started: the journal could not be written"})
		return fmt.Errorf("announce %s: %w", in.Address, err)
	}
	return nil
}

// seal seals what was written, as the record j.at; j.mu is held. The result is
// behind the text in the writer's buffer.
func (j *Journal) seal(w *writer, k kind) []byte {
	n := len(w.buf)
	w.buf = j.box.Seal(w.buf, w.buf, place(j.at, k|sealedKind))
	return w.buf[n:]
}

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// usable reports why no intent can be taken down; j.mu is held.
func (j *Journal) usable() error {
	if j.closed {
		return errClosed
	}
	return j.log.failure()
}

// Result records what came of a call, or any other change. State shows it from
// then on. It is recorded even if ctx has ended. After an error of the store
// the change is held in memory and Close tries again.
func (j *Journal) Result(ctx context.Context, r Result) error {
	for i := range r.Changes {
		if err := r.Changes[i].checkStorable(); err != nil {
			return err
		}
	}
	if err := checkOutputs(r.Outputs); err != nil {
		return err
	}
	w := payloads.Get().(*writer)
	defer payloads.Put(w)
	*w = writer{buf: w.buf[:0]}
	w.result(&r)

	wait, err := func() (func() error, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.closed {
			return nil, errClosed
		}
		if _, ok := j.open[r.Intent]; !ok && r.Intent != "" {
			return nil, fmt.Errorf("the intent %q is not open", r.Intent)
		}
		delete(j.open, r.Intent)
		j.at++
		j.core.apply(j.at, r.Changes, r.Outputs)
		j.core.setChecks(j.at, r.Checks)
		return j.log.add(j.at, kindResult|sealedKind, j.seal(w, kindResult), r.Durable), nil
	}()
	if err == nil {
		err = wait()
	}
	if err != nil {
		return fmt.Errorf("record result: %w", err)
	}
	return nil
}

// State is the state as of now; it costs nothing.
func (j *Journal) State() *State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &State{core: j.core, at: j.at}
}

// Open lists the intents without a result as of now, oldest first.
func (j *Journal) Open() []Intent {
	j.mu.Lock()
	defer j.mu.Unlock()
	return intents(sortedIntents(j.open))
}

// Rescue is the state as of now as a snapshot of version 4, for when Close has
// failed and it has to be kept somewhere else. Its serial is the serial that
// Close would have written.
func (j *Journal) Rescue() []byte {
	s := j.State()
	return s.Encode(s.Serial() + 1)
}

// Close ends the journal. When every intent has its result, it is folded into
// the snapshot, whose serial grows by one if anything changed, and dropped.
// Otherwise it stays next to the snapshot of version 5, for the next run to
// settle. The File then holds the new state and may Begin again.
//
// After an error nothing that was on disk is lost, and Close may be called
// again.
func (j *Journal) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.file
	if f.current != j {
		return errClosed
	}
	j.closed = true
	size, err := j.log.stop(ctx)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	f.at, f.size, f.open = j.at, size, sortedIntents(j.open)
	if len(f.open) > 0 {
		f.current = nil
		return nil
	}
	err = f.fold(ctx)
	if f.journal != journalLive { // else it can be tried again
		f.current = nil
	}
	return err
}
