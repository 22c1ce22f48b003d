package plan

// fileDeferral is a Deferral in a plan file.
type fileDeferral struct {
	Change   *fileChange `json:"change"`
	Reason   DeferReason `json:"reason"`
	Subject  string      `json:"subject,omitempty"`
	Argument string      `json:"argument,omitempty"`
	Because  []string    `json:"because,omitempty"`
}

func (e *encoder) deferral(d *Deferral) *fileDeferral {
	return &fileDeferral{e.change(d.Change), d.Reason, d.Subject, d.Argument, d.Because}
}

func (d *decoder) deferral(f *fileDeferral) *Deferral {
	if f.Change == nil {
		f.Change = &fileChange{} // an address is missed below
	}
	return &Deferral{Change: d.decodeForDisplay(f.Change), Reason: f.Reason, Subject: f.Subject, Argument: f.Argument, Because: f.Because}
}

func (p *Plan) deferredChanges() []*Change {
	changes := make([]*Change, len(p.Deferred))
	for i, d := range p.Deferred {
		changes[i] = d.Change
	}
	return changes
}
