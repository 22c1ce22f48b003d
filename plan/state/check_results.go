package state

import (
	"slices"
	"strings"
)

// CheckKind is the kind of a check result's declaration. The words come from
// Terraform's snapshots.
type CheckKind string

const (
	CheckedResource CheckKind = "resource" // pre- and postconditions
	CheckedOutput   CheckKind = "output"   // preconditions
	CheckedVariable CheckKind = "var"      // validations
	CheckedBlock    CheckKind = "check"    // a check block's assertions
)

// CheckStatus is how a check came out.
type CheckStatus string

const (
	CheckPassed  CheckStatus = "pass"
	CheckFailed  CheckStatus = "fail"
	CheckErred   CheckStatus = "error" // the condition itself is faulty
	CheckUnknown CheckStatus = "unknown"
)

// CheckResult has the results of the conditions of one declaration.
type CheckResult struct {
	Kind    CheckKind
	Config  string // its address without instance keys
	Status  CheckStatus
	Objects []CheckedObject // by address; by address; nil for none, or if they are not known
}

// CheckedObject is one instance of the declaration.
type CheckedObject struct {
	Address  string
	Status   CheckStatus
	Messages []string // of the conditions that are false
}

// worse orders statuses: what of two things that are checked together counts.
var worse = map[CheckStatus]int{CheckPassed: 0, CheckUnknown: 1, CheckFailed: 2, CheckErred: 3}

// And is the status of two things that are checked together.
func (s CheckStatus) And(o CheckStatus) CheckStatus {
	if worse[o] > worse[s] {
		return o
	}
	return s
}

// CheckResults returns the last results of conditions, by address; nil where
// nothing is stored. They are shared and must not be changed.
func (s *State) CheckResults() []CheckResult {
	s.core.mu.RLock()
	defer s.core.mu.RUnlock()
	for i := len(s.core.checks) - 1; i >= 0; i-- {
		if v := s.core.checks[i]; v.at <= s.at {
			return v.list
		}
	}
	return s.core.base.checks
}

type checksVersion struct {
	at   uint64
	list []CheckResult
}

// setChecks adds the check results of record number at.
func (c *core) setChecks(at uint64, list []CheckResult) {
	if list == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks = append(c.checks, checksVersion{at, list})
}

// EqualChecks reports whether two lists of results say the same.
func EqualChecks(a, b []CheckResult) bool {
	return slices.EqualFunc(a, b, func(a, b CheckResult) bool {
		return a.Kind == b.Kind && a.Config == b.Config && a.Status == b.Status &&
			slices.EqualFunc(a.Objects, b.Objects, func(a, b CheckedObject) bool {
				return a.Address == b.Address && a.Status == b.Status && slices.Equal(a.Messages, b.Messages)
			})
	})
}

// SortChecks puts results and their objects into the order of their addresses.
func SortChecks(list []CheckResult) {
	slices.SortFunc(list, func(a, b CheckResult) int { return strings.Compare(a.Config, b.Config) })
}

// checksMember writes check results as Terraform does; no results are null.
func (w *writer) checksMember(name string, list []CheckResult) {
	if len(list) == 0 {
		w.rawMember(name, []byte("null"))
		return
	}
	w.name(name)
	w.open('[')
	for i := range list {
		w.next()
		w.checkResult(&list[i])
	}
	w.close(']')
}

func (w *writer) checkResult(r *CheckResult) {
	w.open('{')
	w.stringMember("object_kind", string(r.Kind))
	w.stringMember("config_addr", r.Config)
	w.stringMember("status", string(r.Status))
	if r.Objects == nil {
		w.rawMember("objects", []byte("null"))
		w.close('}')
		return
	}
	w.name("objects")
	w.open('[')
	for i := range r.Objects {
		o := &r.Objects[i]
		w.next()
		w.open('{')
		w.stringMember("object_addr", o.Address)
		w.stringMember("status", string(o.Status))
		w.stringsMember("failure_messages", o.Messages)
		w.close('}')
	}
	w.close(']')
	w.close('}')
}

// checkResults reads what checksMember writes. Unknown members that a later
// Terraform may add are left out: each run computes the results again.
func (s *scanner) checkResults() []CheckResult {
	if s.null() {
		return nil
	}
	list := []CheckResult{}
	s.array(func() { list = append(list, s.checkResult()) })
	return list
}

func (s *scanner) checkResult() CheckResult {
	var r CheckResult
	s.members(func(name []byte, _ int) {
		switch string(name) {
		case "object_kind":
			r.Kind = CheckKind(s.str())
		case "config_addr":
			r.Config = s.str()
		case "status":
			r.Status = CheckStatus(s.str())
		case "objects":
			if !s.null() {
				s.array(func() { r.Objects = append(r.Objects, s.checkedObject()) })
			}
		default:
			s.skip()
		}
	})
	return r
}

func (s *scanner) checkedObject() CheckedObject {
	var o CheckedObject
	s.members(func(name []byte, _ int) {
		switch string(name) {
		case "object_addr":
			o.Address = s.str()
		case "status":
			o.Status = CheckStatus(s.str())
		case "failure_messages":
			if !s.null() {
				s.array(func() { o.Messages = append(o.Messages, s.str()) })
			}
		default:
			s.skip()
		}
	})
	return o
}
