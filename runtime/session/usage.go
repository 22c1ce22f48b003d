package session

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// Times and limits of usage.
const (
	usageAge   = 30 * time.Second // of a role's newest usage, before it is dropped
	usagePause = time.Second      // between two events about the usage of one role, at least
	usageBytes = 64 << 10         // of a report
)

// usages has the newest usage of each role. The loop owns it.
type usages struct {
	newest map[string]spec.Usage // published with statuses: it is replaced and never changed
	noted  map[string]time.Time  // the time of a role's newest event
}

// put replaces the usage of a role, and reports whether an event about it is due.
func (u *usages) put(of spec.Usage) (due bool) {
	u.newest = maps.Clone(u.newest)
	if u.newest == nil {
		u.newest, u.noted = make(map[string]spec.Usage), make(map[string]time.Time)
	}
	u.newest[of.Role] = of
	if due = of.At.Sub(u.noted[of.Role]) >= usagePause; due {
		u.noted[of.Role] = of.At
	}
	return due
}

// drop drops the usage of roles that no longer report.
func (u *usages) drop(now time.Time) {
	for name, of := range u.newest {
		if now.Sub(of.At) > usageAge {
			u.newest = maps.Clone(u.newest)
			delete(u.newest, name)
			delete(u.noted, name)
		}
	}
}

// takeUsage keeps the usage of a role for the status, and notes it in the history.
// An event that cannot be written is left out: a run does not end for that.
func (s server) takeUsage(now time.Time, role string, of spec.Usage) {
	of.Role, of.At = role, now
	s.judge(now, role, of.GPUs)
	if !s.usages.put(of) {
		return
	}
	of.At, of.GPUs, of.Waiting = time.Time{}, of.GPUs.Brief(), ""
	if err := s.note(spec.Event{Type: spec.EventUsage, Usage: &of}); err != nil {
		s.Log.Warn("a role's usage is not in the history", "role", role, "error", err)
	}
}

// postUsage takes the report of a worker or server, also of one that the run no longer
// needs and that has not left yet.
func (s server) postUsage(w http.ResponseWriter, r *http.Request) {
	var report spec.UsageReport
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, usageBytes))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		Refuse(w, http.StatusBadRequest, "Usage not understood", err.Error())
		return
	}
	if err := report.Usage.Validate(); err != nil {
		Refuse(w, http.StatusUnprocessableEntity, "Usage refused", err.Error())
		return
	}
	at, known := Seat{report.Role, report.Index}, false
	if !s.Do(r.Context(), func() {
		if known = at.isIn(&s.Spec) || s.members[at] != nil; known {
			s.takeUsage(time.Now(), at.String(), report.Usage)
		}
	}) {
		Refuse(w, http.StatusServiceUnavailable, "The run is over", "It no longer takes reports: see "+api.PathStatus+".")
		return
	}
	if !known {
		Refuse(w, http.StatusUnprocessableEntity, "No such role", "role is worker or ps, and index is below their number.")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
