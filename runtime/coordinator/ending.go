package coordinator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/workload"
)

// stopped ends the run in a state that it can go on from; its text is for
// people.
type stopped struct {
	cause spec.Cause
	text  string
}

func (s stopped) Error() string { return s.text }

var errStop = stopped{spec.CauseRequest, "stopped by request"}

// failure ends the run as failed: it would fail again, for a reason of
// spec.Reasons. Its text is for people.
type failure struct {
	reason spec.Reason
	text   string
}

func (f failure) Error() string { return f.text }

func fail(reason spec.Reason, format string, args ...any) error {
	return failure{reason, fmt.Sprintf(format, args...)}
}

// errStorage is about what could not be written.
var errStorage = errors.New("storage")

// full stops the run because its ledger cannot be written.
func full(err error) error {
	return stopped{spec.CauseDisk, fmt.Sprintf("the ledger cannot be written: %v", err)}
}

// ran is how long the run has had the workers that it needs, over all
// coordinators: what its deadline bounds. Waiting for a place on a full cluster
// does not count.
func (c *coordinator) ran() time.Duration { return c.ranBefore + c.attended.read() }

// outcome sorts an error into how the run ended: failed is only what would
// fail again.
func outcome(err error) (spec.Phase, spec.Cause, string) {
	var f failure
	var s stopped
	switch {
	case errors.Is(err, errSuperseded):
		return spec.Stopped, spec.CauseSuperseded, err.Error()
	case err == nil:
		return spec.Succeeded, "", ""
	case errors.As(err, &s):
		return spec.Stopped, s.cause, s.text
	case errors.As(err, &f):
		return spec.Failed, "", f.text
	}
	for _, disk := range []error{errStorage, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, disk) {
			return spec.Stopped, spec.CauseDisk, err.Error()
		}
	}
	// Whatever it is, it is not known that it would happen again.
	return spec.Stopped, spec.CauseTrainer, err.Error()
}

// end is the run's outcome, of which whoever owns the run is told.
func (c *coordinator) end(err error) spec.Status {
	c.clock.pause()
	phase, cause, text := outcome(err)
	c.message = text
	if phase == spec.Stopped && cause != spec.CauseSuperseded {
		if c.saved > 0 {
			c.message += fmt.Sprintf("; started again, it goes on from its checkpoint of step %d", c.saved)
		} else if c.version > 0 {
			c.message += "; nothing of it was saved"
		}
	}
	c.reason = nil
	c.publish(phase)
	s := *c.status.Load()
	s.Ended, s.Cause, s.Log = time.Now(), cause, c.whyLog
	if f := (failure{}); errors.As(err, &f) && phase == spec.Failed {
		s.Reason = f.reason
	}
	defer c.tell(spec.Control{Outcome: &s})
	if cause == spec.CauseSuperseded {
		c.Log.Warn("ended", "message", c.message, "steps", c.version)
		return s
	}
	c.status.Store(&s)
	e := spec.Event{Type: spec.EventEnd, Term: c.term, Generation: c.generation, Step: c.version, Epoch: s.Epoch, Metrics: s.Metrics, Message: string(phase)}
	if err := c.journal.add(e); err != nil {
		c.Log.Error("cannot write metrics", "error", err)
	}
	c.Log.Info("ended", "phase", phase, "message", c.message, "steps", c.version)
	if c.Ended != nil {
		c.keeping.Lock() // an older status that is being written would come after the end
		c.Ended(s)
		c.keeping.Unlock()
	}
	return s
}

// Hopeless tells the supervisor that the run cannot begin, for a reason that
// starting again does not mend.
func Hopeless(control io.Writer, f run.Folder, why error) error {
	var s spec.Status
	if err := run.ReadJSON(f.StatusFile(), &s); err != nil {
		return err
	}
	s = Unable(s, why)
	return json.NewEncoder(control).Encode(spec.Control{Outcome: &s})
}

// Unable returns the end of a run that stood as s says and cannot go on as it was
// started. One that has learned something is stopped, so that a wrong argument
// costs no checkpoint; so is one without its data, which may be there later.
func Unable(s spec.Status, why error) spec.Status {
	s.Phase, s.Cause, s.Reason, s.Message, s.Ended = spec.Failed, "", spec.ReasonRejected, why.Error(), time.Now()
	switch {
	case errors.As(why, new(workload.DataError)):
		s.Phase, s.Cause, s.Reason = spec.Stopped, spec.CauseData, ""
	case s.Step > 0 || s.Saved > 0:
		s.Phase, s.Cause, s.Reason = spec.Stopped, spec.CauseTrainer, ""
	}
	return s
}
