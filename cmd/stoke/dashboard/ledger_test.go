package dashboard

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Ledger gives fakeRun a ledger.
func (r *fakeRun) Ledger(context.Context) (providers.RunLedger, error) {
	if r.ledger == nil {
		return providers.RunLedger{}, providers.ErrNoLedger
	}
	return *r.ledger, nil
}

func TestLedger(t *testing.T) {
	f := someRuns()
	ended := f.runs[0]
	ended.ledger = &providers.RunLedger{Records: 50_000, Step: 2000, Whole: 3, Parts: []providers.RunEpoch{{Epoch: 3, Committed: 1200, Ranges: 2}},
		Leases: []providers.RunLeases{{Worker: 1, Leases: 12, Records: 384, Again: 2}}, First: 1900, Updates: 100}
	ended.status.Metrics["records"] = 151_200
	ended.status.Change = &providers.RunChange{At: began, Class: "live", Fields: []string{"worker.replicas", "<b>"}}
	s := open(t, f)
	get := func(r *fakeRun) (v ledgerView) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.get(of("/data/ledger", r))), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := get(ended)
	if !v.Exact || len(v.Epochs) != 2 || v.Epochs[1][0] != "4" || v.Epochs[1][3] != "48\u202f800" || len(v.Leases) != 1 || v.Leases[0][3] != "2" {
		t.Errorf("%+v", v)
	}
	ended.ledger.Parts[0].Committed--
	if v := get(ended); v.Exact || !strings.Contains(v.Message, "151\u202f200") {
		t.Errorf("a record is missing: %+v", v)
	}
	if v := get(f.runs[2]); v.Exact || !strings.Contains(v.Message, "No ledger") {
		t.Errorf("without a ledger: %+v", v)
	}
	if page := s.get(of("/run", ended)); !strings.Contains(page, "live, ") || !strings.Contains(page, "worker.replicas, &lt;b&gt;") {
		t.Error("the page does not have the class of the last change")
	}
	if page := s.get(of("/run", f.runs[2])); !strings.Contains(page, "it is a new run") {
		t.Error("the page does not say that there was no change")
	}
}

// The GPUs of a role are one curve, and shares of a worker's time have curves.
func TestUsageOfGPUs(t *testing.T) {
	r := newRun("gpus", 1, 0.1)
	r.add(providers.RunEvent{Time: time.Now(), Type: "usage", Role: "worker-0", Values: map[string]float64{
		"worker-0.cpu": 1, "worker-0.gpu0.utilization_percent": 90, "worker-0.gpu1.utilization_percent": 70, "worker-0.gpu0.power_watts": 300,
		"worker-0.gpu1.power_watts": 200, "worker-0.gpu0.temperature_celsius": 60, "worker-0.gpu1.temperature_celsius": 71, "worker-0.data_share": 0.25,
	}})
	feeds := newFeeds()
	defer feeds.close()
	one, release := feeds.open(row{Entry: Entry{Address: "x"}, run: r}, ofRoles)
	defer release()
	if err := one.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"gpu.utilization_percent": 80, "gpu.power_watts": 500, "gpu.temperature_celsius": 71, "data_share": 0.25, "cpu": 1} {
		if c := one.set.Find("worker-0", name); c == nil || c.Points[0].Mean != want {
			t.Errorf("%s is %+v, want %g", name, c, want)
		}
	}
}
