package coordinator

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/workload"
)

// ReportHopeless tells the supervisor that the run cannot begin, for a reason that
// starting again does not mend.
func ReportHopeless(control io.Writer, f run.Folder, why error) error {
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
