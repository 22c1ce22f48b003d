package gpu

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The text in testdata has the documented form of nvidia-smi's XML; no machine
// printed it.
func TestParseSMI(t *testing.T) {
	text, err := os.ReadFile("testdata/smi.xml")
	if err != nil {
		t.Fatal(err)
	}
	lost := "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
	s, err := ParseSMI(lost + string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Snapshot{Driver: "580.65.06", CUDA: "13.0", GPUs: []Reading{
		{Index: 0, UUID: "GPU-00000000-0000-0000-0000-000000000000", Name: "NVIDIA H100 80GB HBM3", Throttle: []string{"power_cap"}, Values: map[string]float64{
			Utilization: 97, MemoryTraffic: 40, MemoryUsed: 40000 << 20, MemoryTotal: 81559 << 20, Temperature: 61, Power: 412.35, PowerLimit: 700,
			SMClock: 1980, MemoryClock: 2619, Corrected: 3, Uncorrected: 0, RemappedSoft: 0, RemappedHard: 0, RemapPending: 0, RemapFailed: 0,
		}},
		{Index: 1, UUID: "GPU-00000000-0000-0000-0000-000000000001", Name: "NVIDIA A100-SXM4-40GB", Throttle: []string{"software_thermal"}, Values: map[string]float64{
			Uncorrected: 3, RemappedSoft: 0, RemappedHard: 1, RemapPending: 1, RemapFailed: 1, Power: 55, PowerLimit: 400,
		}},
		{Index: 2, Fault: FaultLost, Detail: "0000:3B:00.0: GPU is lost"},
	}}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	var rules []string
	for _, f := range Judge(s, Expectation{Count: 2, Driver: "580"}).Findings {
		rules = append(rules, f.Rule)
	}
	if d := cmp.Diff([]string{RuleLost, RuleECC, RuleFailed, RulePending, RuleThermal}, rules); d != "" {
		t.Error(d)
	}
	if s, err := ParseSMI(lost); err != nil || len(s.GPUs) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "NVIDIA-SMI has failed", "<nvidia_smi_log><gpu>", "<nvidia_smi_log></other>"} {
		if s, err := ParseSMI(bad); err == nil {
			t.Errorf("%q is %+v", bad, s)
		}
	}
}

func FuzzParseSMI(f *testing.F) {
	text, err := os.ReadFile("testdata/smi.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSMI(text)
		if err != nil {
			return
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		Judge(s, Expectation{Count: 1})
	})
}
