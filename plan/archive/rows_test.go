package archive

import (
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Every event is at least one row: a reader sees where the run went back.
func TestEveryEventHasARow(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		event providers.RunEvent
		rows  string
	}{
		{providers.RunEvent{Number: 1, Time: at, Type: "update", Epoch: 2, Step: 30, Values: map[string]float64{"norm": 2, "loss": 0.5}},
			"1,2026-01-02T03:04:05Z,update,2,30,loss,0.5\n1,2026-01-02T03:04:05Z,update,2,30,norm,2\n"},
		{providers.RunEvent{Number: 2, Time: at, Type: "restore", Epoch: 1, Step: 20, Message: "step-000000000020-term-000001"},
			"2,2026-01-02T03:04:05Z,restore,1,20,,\n"},
		{providers.RunEvent{Number: 3, Time: at, Type: "server", Step: 20, Message: `server 0, "lost"`},
			"3,2026-01-02T03:04:05Z,server,0,20,,\n"},
	} {
		if got := Rows(tt.event); got != tt.rows {
			t.Errorf("%s:\n%swant\n%s", tt.event.Type, got, tt.rows)
		}
	}
}
