package session

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// Stopped ends the run in a state that it can go on from. Text is for people.
type Stopped struct {
	Cause spec.Cause
	Text  string
}

func (s Stopped) Error() string { return s.Text }

var errStop = Stopped{spec.CauseRequest, "stopped by request"}

// Failure ends the run as failed: it would fail again, for a reason of
// spec.Reasons. Text is for people.
type Failure struct {
	Reason spec.Reason
	Text   string
}

func (f Failure) Error() string { return f.Text }

// Fail returns a Failure.
func Fail(reason spec.Reason, format string, args ...any) error {
	return Failure{reason, fmt.Sprintf(format, args...)}
}

// ErrStorage is about a file that could not be written.
var ErrStorage = errors.New("storage")

// Full returns the error that stops the run because its history, or its ledger,
// cannot be written; nil stays nil.
func Full(err error) error {
	if err == nil {
		return nil
	}
	return Stopped{spec.CauseDisk, fmt.Sprintf("the ledger cannot be written: %v", err)}
}

// Outcome sorts an error into how the run ends: failed is only what would fail
// again.
func Outcome(err error) (spec.Phase, spec.Cause, string) {
	var f Failure
	var s Stopped
	switch {
	case errors.Is(err, ErrSuperseded):
		return spec.Stopped, spec.CauseSuperseded, err.Error()
	case err == nil:
		return spec.Succeeded, "", ""
	case errors.As(err, &s):
		return spec.Stopped, s.Cause, s.Text
	case errors.As(err, &f):
		return spec.Failed, "", f.Text
	}
	for _, disk := range []error{ErrStorage, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, disk) {
			return spec.Stopped, spec.CauseDisk, err.Error()
		}
	}
	// Whatever it is, it is not known that it would happen again.
	return spec.Stopped, spec.CauseTrainer, err.Error()
}

// end returns the run's outcome, and tells the supervisor and Ended of it.
func (s *Session) end(err error) spec.Status {
	s.attended.Pause()
	phase, cause, text := Outcome(err)
	s.reason, s.message = nil, text
	s.publish(phase)
	st := *s.status.Load()
	if phase == spec.Stopped && cause != spec.CauseSuperseded {
		if st.Saved > 0 {
			st.Message += fmt.Sprintf("; started again, it goes on from its checkpoint of step %d", st.Saved)
		} else if st.Step > 0 {
			st.Message += "; nothing of it was saved"
		}
	}
	st.Ended, st.Cause, st.Log = time.Now(), cause, s.whyLog
	if f := (Failure{}); errors.As(err, &f) && phase == spec.Failed {
		st.Reason = f.Reason
	}
	defer s.TellSupervisor(spec.Control{Outcome: &st})
	if cause == spec.CauseSuperseded {
		s.Log.Warn("ended", "message", st.Message, "steps", st.Step)
		return st
	}
	s.status.Store(&st)
	e := spec.Event{Type: spec.EventEnd, Term: s.Term(), Generation: s.generation, Step: st.Step, Epoch: st.Epoch, Metrics: st.Metrics, Message: string(phase)}
	if err := s.add(e); err != nil {
		s.Log.Error("cannot write metrics", "error", err)
	}
	s.Log.Info("ended", "phase", phase, "message", st.Message, "steps", st.Step)
	if s.Ended != nil {
		s.keeping.Lock() // an older status that is being written would come after the end
		s.Ended(st)
		s.keeping.Unlock()
	}
	return st
}
