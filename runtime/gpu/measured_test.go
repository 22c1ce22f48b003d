package gpu

import (
	"math"
	"strings"
	"testing"
)

// Names as NVML has them find the speed of their model, and no other one.
func TestSpeeds(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H200": "H200", "NVIDIA H200 NVL": "H200 NVL", "NVIDIA H100 80GB HBM3": "H100", "NVIDIA H100 PCIe": "H100 PCIe", "NVIDIA H100 NVL": "H100 NVL",
		"NVIDIA A100-SXM4-40GB": "A100", "NVIDIA A100-PCIE-40GB": "A100", "NVIDIA A100 80GB PCIe": "A100", "NVIDIA L40S": "L40S", "NVIDIA L4": "L4",
		"NVIDIA A10": "A10", "NVIDIA A10G": "", "NVIDIA L40": "", "NVIDIA GeForce RTX 4090": "", "": "",
	} {
		if s, known := speedOf(name); s.Name != want || known != (want != "") {
			t.Errorf("%q has the speed of %q", name, s.Name)
		}
	}
	for _, s := range Speeds() {
		if s.Product < 1e14 || s.Product > 1e16 || s.Link < 3e10 || !strings.HasPrefix(s.Source, "https://www.nvidia.com/") {
			t.Errorf("%+v", s)
		}
	}
}

// Rates below the least part of the published speed are warnings, a failure is unfit, and
// a GPU that was not measured, or whose speed is not published, breaks no rule.
func TestMeasuredRules(t *testing.T) {
	rates := func(up, down, product float64) *Measured {
		return &Measured{Upload: up, Download: down, Product: product, Size: 8192}
	}
	failed, unable := Unmeasured(true, "signal: killed"), Unmeasured(false, "no plugin")
	for _, c := range []struct {
		name string
		m    *Measured
		rule string
	}{
		{"NVIDIA H200", rates(47e9, 45e9, 700e12), ""},
		{"NVIDIA H200", rates(8e9, 8e9, 248e12), ""},
		{"NVIDIA H200", rates(47e9, 45e9, 247e12), RuleProduct},
		{"NVIDIA H200", rates(47e9, 7.9e9, 700e12), RuleLink},
		{"NVIDIA H200", rates(7.9e9, 45e9, 700e12), RuleLink},
		{"NVIDIA A100-SXM4-40GB", rates(4e9, 4e9, 78e12), ""},
		{"NVIDIA GeForce RTX 4090", rates(1, 1, 1), ""},
		{"NVIDIA H200", &failed, RuleCompute},
		{"NVIDIA GeForce RTX 4090", &failed, RuleCompute},
		{"NVIDIA H200", &unable, ""},
		{"NVIDIA H200", nil, ""},
	} {
		h := Judge(Snapshot{GPUs: []Reading{{Name: c.name, Measured: c.m}}}, Expectation{})
		rule := ""
		for _, f := range h.Findings {
			rule += f.Rule
		}
		if rule != c.rule || (h.Verdict == Unfit) != (rule == RuleCompute) {
			t.Errorf("%s, %+v: %+v", c.name, c.m, h)
		}
	}
}

// A measurement has all rates, or a reason.
func TestMalformedMeasurements(t *testing.T) {
	for name, m := range map[string]Measured{
		"nothing": {}, "a rate is missing": {Upload: 1, Product: 1}, "two reasons": {Unable: "a", Failed: "b"},
		"rates and a reason": {Upload: 1, Download: 1, Product: 1, Failed: "b"}, "a long text": {Unable: strings.Repeat("x", maxText+1)},
		"negative": {Upload: -1, Download: 1, Product: 1}, "not a number": {Upload: math.NaN(), Download: 1, Product: 1},
		"endless": {Upload: math.Inf(1), Download: 1, Product: 1},
	} {
		s := Snapshot{GPUs: []Reading{{Measured: &m}}}
		if s.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	long := Unmeasured(true, strings.Repeat("é\n", maxText))
	if err := long.Validate(); err != nil || strings.Contains(long.Failed, "\n") {
		t.Errorf("%v: %q", err, long.Failed)
	}
	if none := Unmeasured(true, "\n"); none.Validate() != nil {
		t.Errorf("%+v", none)
	}
}
