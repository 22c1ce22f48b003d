package gpu

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The JSON of readings and verdicts is a contract with stoke-gpu of other versions.
func TestJSONIsStable(t *testing.T) {
	s := Snapshot{Driver: "580.65.06", CUDA: "13.0", GPUs: []Reading{{
		Index: 1, UUID: "GPU-1", Name: "NVIDIA H100", Values: map[string]float64{Temperature: 61, Power: 412.5}, Throttle: []string{"power_cap"},
		XIDs: []uint64{79}, Processes: []Process{{PID: 7, Memory: 5}},
	}}}
	text, err := json.Marshal(s)
	want := `{"driver":"580.65.06","cuda":"13.0","gpus":[{"index":1,"uuid":"GPU-1","name":"NVIDIA H100",` +
		`"values":{"power_watts":412.5,"temperature_celsius":61},"throttle":["power_cap"],"xids":[79],"processes":[{"pid":7,"memory_bytes":5}]}]}`
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	text, err = json.Marshal(Judge(s, Expectation{}))
	want = `{"verdict":"unfit","findings":[{"rule":"xid-unfit","severity":"unfit","gpu":1,"uuid":"GPU-1",` +
		`"text":"XID 79, the GPU has fallen off the bus: the machine needs a restart"}]}`
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
}

// The tables are whole: names are unique, each rule has a check and a source, each
// reason names a rule.
func TestTables(t *testing.T) {
	var ids []string
	for _, r := range Rules() {
		ids = append(ids, r.ID)
		if r.machine == nil && r.gpu == nil || r.Proof == "" || !strings.HasPrefix(r.Source, "https://docs.nvidia.com/") || r.Severity.rank() < 1 {
			t.Errorf("rule %+v", r)
		}
	}
	for _, r := range Reasons() {
		if r.Rule != "" && !slices.Contains(ids, r.Rule) {
			t.Errorf("reason %+v", r)
		}
		ids = append(ids, r.Name)
	}
	for _, r := range Table() {
		if r.Unit == "" || !strings.HasPrefix(r.NVML, "nvmlDeviceGet") || r.About == "" {
			t.Errorf("row %+v", r)
		}
		ids = append(ids, r.Key)
	}
	slices.Sort(ids)
	if n := len(ids); len(slices.Compact(ids)) != n {
		t.Errorf("names are not unique: %v", ids)
	}
}

// The worst findings come first, and decide.
func TestVerdict(t *testing.T) {
	s := Snapshot{GPUs: []Reading{{Index: 0, Values: map[string]float64{RemapPending: 1}}, {Index: 1, UUID: "GPU-abc", Fault: FaultLost}}}
	h := Judge(s, Expectation{})
	if h.Verdict != Unfit || len(h.Findings) != 2 || h.Findings[0].GPU != 1 || h.Findings[1].Severity != Warning {
		t.Errorf("%+v", h)
	}
	if text := h.Reasons(); text != "GPU 1: it has fallen off the bus; GPU 0: a row of memory waits for a reset to be replaced" {
		t.Error(text)
	}
	if h := Judge(s, Expectation{GPUs: []string{"0"}}); h.Verdict != Warning || len(h.Findings) != 1 {
		t.Errorf("%+v", h)
	}
	if h := Judge(s, Expectation{GPUs: []string{"GPU-ab"}}); h.Verdict != Unfit || len(h.Findings) != 1 {
		t.Errorf("%+v", h)
	}
	for driver, fits := range map[string]bool{"580": true, "580.65": true, "580.65.06": true, "58": false, "570": false, "580.65.0": false} {
		if h := Judge(Snapshot{Driver: "580.65.06"}, Expectation{Driver: driver}); (h.Verdict == Fit) != fits {
			t.Errorf("%s: %+v", driver, h)
		}
	}
	if w := Worst(Finding{Severity: Warning, Rule: "a"}, Finding{Severity: Warning, Rule: "b"}); w.Rule != "a" {
		t.Errorf("%+v", w)
	}
	if w := Worst(Finding{}, Finding{Severity: Fit, Rule: "b"}); w.Rule != "b" {
		t.Errorf("%+v", w)
	}
}

// Readings that no stoke-gpu prints are rejected.
func TestMalformedReadings(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"too many GPUs":  {GPUs: make([]Reading, maxGPUs+1)},
		"a long text":    {Driver: strings.Repeat("x", maxText+1)},
		"unknown":        {GPUs: []Reading{{Values: map[string]float64{"height": 1}}}},
		"not a number":   {GPUs: []Reading{{Values: map[string]float64{Power: math.NaN()}}}},
		"negative":       {GPUs: []Reading{{Values: map[string]float64{Power: -1}}}},
		"a large number": {GPUs: []Reading{{Values: map[string]float64{Power: math.Inf(1)}}}},
		"an index":       {GPUs: []Reading{{Index: -1}}},
		"a long name":    {GPUs: []Reading{{Name: strings.Repeat("x", maxText+1)}}},
		"many XIDs":      {GPUs: []Reading{{XIDs: make([]uint64, maxEvents+1)}}},
	} {
		if s.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A run's history has curves, and counters that are not 0; merged samples have means
// and the newest counters.
func TestBriefAndMerged(t *testing.T) {
	a := Reading{Index: 3, Name: "n", UUID: "u", Values: map[string]float64{Power: 100, Temperature: 50, Corrected: 0, Uncorrected: 2, RemapPending: 1},
		XIDs: []uint64{63}, Throttle: []string{"idle"}, Processes: []Process{{PID: 1}}}
	want := Reading{Index: 3, UUID: "u", Values: map[string]float64{Power: 100, Temperature: 50, Uncorrected: 2, RemapPending: 1},
		XIDs: []uint64{63}, Throttle: []string{"idle"}}
	if d := cmp.Diff(want, a.Brief()); d != "" {
		t.Error(d)
	}
	b := Reading{Index: 3, UUID: "u", Values: map[string]float64{Power: 200, Uncorrected: 3}, XIDs: []uint64{63, 48}}
	want = Reading{Index: 3, UUID: "u", Values: map[string]float64{Power: 125, Temperature: 50, Uncorrected: 3}, XIDs: []uint64{48, 63}, Throttle: []string{"idle"}}
	if d := cmp.Diff(want, Merge(a.Brief(), 3, b, 1)); d != "" {
		t.Error(d)
	}
	lost := Reading{Index: 3, Fault: FaultLost}
	if m := Merge(lost, 1, b, 1); m.Fault != FaultLost {
		t.Errorf("%+v", m)
	}
}
