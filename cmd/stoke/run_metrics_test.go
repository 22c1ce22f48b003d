package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
)

// TestSelection chooses among an update a second, a sample of usage of two roles every
// two seconds, and an evaluation.
func TestSelection(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var events []providers.RunEvent
	for i := range int64(10) {
		at := now.Add(time.Duration(i-10) * time.Second)
		events = append(events, providers.RunEvent{Type: "update", Time: at, Step: i + 1, Values: map[string]float64{"loss": 1}})
		if i%2 == 1 {
			for _, role := range []string{"a", "b"} {
				events = append(events, providers.RunEvent{Type: "usage", Time: at, Step: i + 1, Role: role, Values: map[string]float64{role + ".cpu": 1}})
			}
		}
	}
	events = append(events, providers.RunEvent{Type: "evaluation", Time: now, Step: 10, Values: map[string]float64{"accuracy": 1}})
	for _, test := range []struct{ since, every, want string }{
		{"", "", "u1 u2 A2 B2 u3 u4 A4 B4 u5 u6 A6 B6 u7 u8 A8 B8 u9 u10 A10 B10 e10 "},
		{"9", "", "u9 u10 A10 B10 e10 "},
		{"3s", "", "u8 A8 B8 u9 u10 A10 B10 e10 "},
		{"2026-01-02T02:59:58Z", "", "u9 u10 A10 B10 e10 "},
		{"", "4", "u1 A2 B2 u5 A6 B6 u9 A10 B10 e10 "},
		{"", "5s", "u1 A2 B2 u6 A8 B8 e10 "},
		{"6", "100", "u6 A6 B6 e10 "},
	} {
		o := metricsFlags{since: test.since, every: test.every}
		only, err := o.selection(now)
		if err != nil {
			t.Errorf("%+v: %v", test, err)
			continue
		}
		got := ""
		for _, e := range events {
			if only.take(e) {
				got += fmt.Sprintf("%s%d ", map[string]string{"update": "u", "evaluation": "e", "usagea": "A", "usageb": "B"}[e.Type+e.Role], e.Step)
			}
		}
		if got != test.want {
			t.Errorf("-since=%s -every=%s: got %s, want %s", test.since, test.every, got, test.want)
		}
	}
	for _, o := range []metricsFlags{
		{since: "yesterday"}, {since: "-5m"}, {every: "0"}, {every: "often"}, {every: "-3"}, {asJSON: true, asCSV: true}, {zip: "a", f: true}, {zip: "a", every: "1"}, {force: true},
	} {
		if _, err := o.selection(now); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
