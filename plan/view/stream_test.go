package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
)

func TestStream(t *testing.T) {
	var b bytes.Buffer
	s := NewStream(&b, func() time.Time { return time.Unix(0, 0) }, "1.2.3")
	a := instance(t, `module.m.terraform_data.a["k"]`)
	s.Log("\nhello\n")
	s.Diagnostics(hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: "Hm", Detail: "d"}}, nil)
	s.Plan(&plan.Plan{
		Changes: []*plan.Change{{Addr: a, Action: plan.DeleteThenCreate, Reason: plan.ReplaceTainted}, {Addr: a}},
		Drift:   []*plan.Change{{Addr: a, Before: str("x"), After: str("y")}},
		Outputs: []*plan.OutputChange{{Name: "o", Action: plan.Create, Sensitive: true, After: str("hunter2")}},
	})
	s.Listen(plan.Event{Kind: plan.RefreshStart, Addr: a, ID: str("i")})
	s.Listen(plan.Event{Kind: plan.ApplyStart, Addr: a, Action: plan.Create})
	s.Listen(plan.Event{Kind: plan.ApplyProgress, Addr: a, Action: plan.Create, Progress: step("epoch 1", 50), Elapsed: time.Minute})
	s.Listen(plan.Event{Kind: plan.ApplyFailed, Addr: a, Action: plan.Create, Elapsed: time.Minute})
	s.Listen(plan.Event{Kind: plan.Settled, Addr: a, Text: "It did happen."})
	s.Applied(&run.Report{Added: 1, Outcomes: []run.Outcome{{Addr: a, Status: run.Skipped, Because: "x_y.z"}}}, plan.Normal)
	s.Outputs(map[string]state.Output{"o": {Value: str("hunter2"), Sensitive: true}, "n": {Value: num(1)}})
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if strings.Contains(b.String(), "hunter2") {
		t.Error("a sensitive value is shown")
	}
	golden(t, "stream.jsonl", b.String())
}
