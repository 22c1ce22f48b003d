package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// What is worth least goes first, and what is left is always a status.
func TestOutcomeFits(t *testing.T) {
	long := strings.Repeat("línea \"quoted\" <&>\n", 2000)
	many := map[string]float64{"loss": 0.25, "accuracy": 0.75, "training_seconds": 9, "broken": math.NaN()}
	for i := range 500 {
		many[fmt.Sprintf("metric_%03d", i)] = float64(i) / 3
	}
	few := map[string]float64{"loss": 0.25, "accuracy": 0.75}
	for name, tt := range map[string]struct {
		status       Status
		limit        int
		log, message bool // is there some of it
		metrics      int  // at least
	}{
		"short":        {Status{Message: "why", Log: "a\nb", Metrics: few}, OutcomeBytes, true, true, 2},
		"long log":     {Status{Message: "why", Log: long, Metrics: few}, OutcomeBytes, true, true, 2},
		"many metrics": {Status{Message: "why", Log: long, Metrics: many}, OutcomeBytes, false, true, 3},
		"long message": {Status{Message: long, Log: long, Metrics: many}, OutcomeBytes, false, true, 0},
		"little room":  {Status{Message: long, Log: long, Metrics: many}, 1024, false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.status
			s.Run, s.Hash, s.Phase, s.Cause = strings.Repeat("r", 63), "sha256:"+strings.Repeat("0", 64), Failed, CauseRestarts
			s.Step, s.Steps, s.Epoch, s.Epochs, s.Records = math.MaxInt64, math.MaxInt64, math.MaxInt32, math.MaxInt32, math.MaxInt64
			s.Loss, s.Workers, s.Wanted, s.Started, s.Ended, s.Updated = 1.0/3, 1e6, 1e6, time.Now(), time.Now(), time.Now()
			data, err := s.Outcome(tt.limit)
			if err != nil || len(data) > tt.limit {
				t.Fatalf("%d bytes of %d, %v", len(data), tt.limit, err)
			}
			var got Status
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if (got.Log != "") != tt.log || (got.Message != "") != tt.message || len(got.Metrics) < tt.metrics {
				t.Errorf("left of it: %s", data)
			}
			if tt.metrics >= 2 && (got.Metrics["loss"] != 0.25 || got.Metrics["accuracy"] != 0.75) {
				t.Errorf("metrics %v", got.Metrics)
			}
			if !strings.HasSuffix(s.Log, got.Log) || !strings.HasPrefix(s.Message, got.Message) {
				t.Errorf("log %q, message %q", got.Log, got.Message)
			}
			if got.Run != s.Run || got.Hash != s.Hash || got.Phase != s.Phase || got.Cause != s.Cause || got.Step != s.Step || !got.Ended.Equal(s.Ended) {
				t.Errorf("lost: %s", data)
			}
			// Room is used: nothing is thrown away that would have fitted.
			if tt.log && len(s.Log) > tt.limit && len(data) < tt.limit-100 {
				t.Errorf("%d of %d bytes used", len(data), tt.limit)
			}
		})
	}
	if _, err := (Status{Run: strings.Repeat("r", 5000)}).Outcome(OutcomeBytes); err == nil {
		t.Error("a name that does not fit is no error")
	}
}
