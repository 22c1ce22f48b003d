package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stokehq/stoke/runtime/durable"
	"github.com/stokehq/stoke/runtime/spec"
)

// Publish sets the status of a run that is not over.
func (s *Session) Publish() { s.publish(spec.Running) }

func (s *Session) publish(phase spec.Phase) {
	if s.Turn != nil {
		s.Turn()
	}
	now := time.Now()
	st := &spec.Status{
		Run: s.Name, Hash: s.hash, Trainer: s.Credentials.Version, Phase: phase, Message: s.message, Resumed: s.resumed,
		Workers: s.CountWorkers(), Wanted: s.Spec.Worker.Replicas, Term: s.Term(), Generation: s.generation,
		Ran: s.runTime().Seconds(), Started: s.started, Updated: now, Metrics: make(map[string]float64),
	}
	if s.reason != nil {
		st.Message = "ending: " + s.reason.Error()
	}
	st.GPUHealth, st.Change = s.gpus.worst, s.changed
	if phase == spec.Running {
		st.Usage = s.usages.newest
	}
	s.work.Report(st)
	st.Metrics["elapsed_seconds"] = now.Sub(s.started).Seconds()
	s.status.Store(st)
}

// Status returns the newest published status. Every goroutine may use it.
func (s *Session) Status() *spec.Status { return s.status.Load() }

// Explain sets the message of the status; "": there is nothing to explain.
func (s *Session) Explain(message string) { s.message = message }

// statusFile writes the status of a session to its file.
type statusFile struct{ *Session }

// keep writes status.json twice a second until ctx is done, outside of the loop:
// a disk may be slow.
func (s statusFile) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for turn := 0; ; turn++ {
		s.save(cancel)
		if turn%2 == 0 { // once a second
			if err := errors.Join(s.work.Sync(), s.history.Thin(s.CheckOutside)); err != nil && !errors.Is(err, ErrSuperseded) {
				s.Log.Error("cannot tidy up the history", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.save(cancel) // the file may have an older one
			return
		}
	}
}

// save writes the newest status.
func (s statusFile) save(cancel context.CancelCauseFunc) {
	s.keeping.Lock()
	err := s.write(s.status.Load())
	s.keeping.Unlock()
	switch {
	case errors.Is(err, ErrSuperseded):
		// Perhaps by a term of its own, which this status is not of yet.
		if err := s.CheckOutside(); errors.Is(err, ErrSuperseded) {
			cancel(err) // whatever it waits for
		}
	case err != nil:
		s.Log.Error("cannot write the status", "error", err)
	}
}

// write replaces status.json, unless another coordinator speaks for the run.
func (s statusFile) write(st *spec.Status) error {
	data, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	draft, err := durable.Create(s.Folder.StatusFile())
	if err != nil {
		return err
	}
	defer draft.Abort()
	if _, err = draft.Write(append(data, '\n')); err == nil {
		err = draft.Sync()
	}
	if err == nil {
		err = s.CheckTerm(st.Term) // writing may take long
	}
	if err == nil {
		err = draft.Commit()
	}
	return err
}

// Note writes an event to the history. Where it cannot be written the run stops.
func (s *Session) Note(e spec.Event) { s.EndUnwritten(s.note(e)) }

// note writes an event to the history.
func (s *Session) note(e spec.Event) error {
	e.Term, e.Generation, e.Step = s.Term(), s.generation, s.work.Step()
	if s.unwritten || s.over.Load() != nil {
		return nil // the run ends, or has ended, at the step that the history has
	}
	return s.add(e)
}

// add writes an event to the history, and passes it to all that follow it.
func (s *Session) add(e spec.Event) error {
	if err := s.history.Add(e); err != nil {
		return err
	}
	s.follow(e)
	return nil
}

// Unwritten reports whether the history, or a file of the work, lacks something.
func (s *Session) Unwritten() bool { return s.unwritten }

// EndUnwritten ends the run after an error in writing its history or a file of
// the work; nil: there was none.
func (s *Session) EndUnwritten(err error) {
	if err != nil {
		s.unwritten = true
		s.Log.Error("cannot write the history", "error", err)
		s.Finish(Full(err))
	}
}

// SyncHistory makes the history durable.
func (s *Session) SyncHistory() error { return s.history.Sync() }

// TellSupervisor sends a line to the supervisor.
func (s *Session) TellSupervisor(line spec.Control) {
	if s.Control == nil {
		return
	}
	data, err := json.Marshal(line)
	if err == nil {
		_, err = s.Control.Write(append(data, '\n'))
	}
	if err != nil {
		s.Log.Error("cannot reach the supervisor", "error", err)
	}
}
