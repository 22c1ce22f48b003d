package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity is what a finding means for work on a GPU.
type Severity string

const (
	Fit     Severity = "fit"
	Warning Severity = "warning" // it can work
	Unfit   Severity = "unfit"   // work on it fails, or cannot be trusted
)

// rank orders severities; -1: it is none.
func (s Severity) rank() int { return slices.Index([]Severity{Fit, Warning, Unfit}, s) }

// IsKnown reports whether the text is a severity.
func (s Severity) IsKnown() bool { return s.rank() >= 0 }

// Expectation is what a caller expects of a machine.
type Expectation struct {
	Count  int      // GPUs at least; 0: no number is expected
	Driver string   // version, or its beginning: "580" or "580.65"; "": any
	Idle   bool     // no process computes on them
	GPUs   []string // only these are judged, by UUID, the beginning of one, or index; nil: all
}

// Finding is a broken rule.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	GPU      int      `json:"gpu"` // its index; -1: the machine
	UUID     string   `json:"uuid,omitempty"`
	Text     string   `json:"text"`
}

// String returns the finding for people.
func (f Finding) String() string {
	if f.GPU < 0 {
		return f.Text
	}
	return fmt.Sprintf("GPU %d: %s", f.GPU, f.Text)
}

// Health is the verdict about the GPUs of a machine.
type Health struct {
	Verdict  Severity  `json:"verdict"`
	Findings []Finding `json:"findings"` // the worst first
}

// Reasons returns the findings as one text.
func (h Health) Reasons() string {
	var all []string
	for _, f := range h.Findings {
		all = append(all, f.String())
	}
	return strings.Join(all, "; ")
}

// The rules' names. They are part of the contract: they never change.
const (
	RuleCount      = "count"
	RuleLost       = "lost"
	RuleReset      = "reset"
	RuleMismatch   = "driver-mismatch"
	RuleSilent     = "driver-silent"
	RuleRefused    = "driver-refused"
	RuleDriver     = "driver-version"
	RuleXIDUnfit   = "xid-unfit"
	RuleXIDWarning = "xid-warning"
	RuleECC        = "ecc-uncorrected"
	RulePending    = "remap-pending"
	RuleFailed     = "remap-failed"
	RuleThermal    = "thermal"
	RulePower      = "power"
	RuleSlowdown   = "slowdown"
	RuleInUse      = "in-use"
	RuleCompute    = "compute"
	RuleProduct    = "slow-product"
	RuleLink       = "slow-link"
)

// Sources of rules.
const (
	catalogue = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
	memory    = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
	returns   = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html"
	clocks    = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html"
	queries   = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html"
	dcgm      = "https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html"
)

// Rule is a row of the table of health.
type Rule struct {
	ID       string
	Severity Severity
	Proof    string // what breaks it
	Source   string
	machine  func(e Expectation, s *Snapshot) string // of the whole machine; "": it holds
	gpu      func(e Expectation, r *Reading) string  // of one GPU
}

// Rules returns the table of health.
func Rules() []Rule {
	return []Rule{
		{RuleSilent, Unfit, "the driver does not answer within 10 seconds", queries,
			driverFault(FaultSilent, "the driver does not answer"), nil},
		{RuleMismatch, Unfit,
			"the driver's library and kernel module have different versions: restart the machine",
			returns, driverFault(FaultMismatch, "the driver's library and kernel module differ in version; restart the machine"), nil},
		{RuleRefused, Unfit, "the driver, or a GPU, answers with another error", returns,
			driverFault(FaultRefused, "the driver returned an error"), fault(FaultRefused, "it returned an error")},
		{RuleDriver, Unfit, "the driver has another version than expected", queries, checkDriver, nil},
		{RuleCount, Unfit, "fewer GPUs answer than expected", queries, checkCount, nil},
		{RuleLost, Unfit, "the GPU answers NVML_ERROR_GPU_IS_LOST: it has fallen off the bus", returns,
			nil, fault(FaultLost, "it has fallen off the bus")},
		{RuleReset, Unfit, "the GPU answers NVML_ERROR_RESET_REQUIRED", returns, nil, fault(FaultReset, "it needs a reset")},
		{RuleXIDUnfit, Unfit, "an XID, as the table below has them: the GPU needs a reset, a restart or a repair", catalogue,
			nil, checkXIDs(Unfit)},
		{RuleECC, Unfit, "memory errors that ECC could not correct since the driver was loaded", memory, nil,
			exceeds(Uncorrected, "%.0f memory errors that ECC could not correct; reset it")},
		{RuleFailed, Unfit, "a row of memory could not be replaced: no spare row is left", memory, nil,
			exceeds(RemapFailed, "a row of memory could not be replaced; it may need a repair")},
		{RuleCompute, Unfit, "the trainer's measurement computes wrong numbers, ends with an error, or takes longer than a minute",
			dcgm, nil, checkCompute},
		{RulePending, Warning, "a row of memory is replaced at the next reset; until then its pages are not used", memory, nil,
			exceeds(RemapPending, "a row of memory waits for a reset to be replaced")},
		{RuleXIDWarning, Warning, "an XID, as the table below has them: the GPU works on", catalogue, nil, checkXIDs(Warning)},
		{RuleThermal, Warning, "the clocks are low because the GPU is too hot", clocks, nil, checkThrottle(RuleThermal)},
		{RulePower, Warning, "the clocks are low because the power supply asks for it", clocks, nil, checkThrottle(RulePower)},
		{RuleSlowdown, Warning, "the hardware has halved the clocks, or more", clocks, nil, checkThrottle(RuleSlowdown)},
		{RuleInUse, Warning, "another process computes on the GPU, where an idle one is expected", queries, nil, checkIdle},
		{RuleProduct, Warning, "a product of matrices has less than a quarter of the published speed, see below", dcgm, nil, checkProduct},
		{RuleLink, Warning, "copies to the host or from it have less than an eighth of the published speed, see below",
			dcgm, nil, checkLink},
	}
}

// Judge applies the rules to the readings of a machine.
func Judge(s Snapshot, e Expectation) Health {
	h := Health{Verdict: Fit, Findings: []Finding{}}
	s.GPUs = e.choose(s.GPUs)
	for _, rule := range Rules() {
		if rule.machine != nil {
			h.note(rule, -1, "", rule.machine(e, &s))
		}
		if rule.gpu == nil {
			continue
		}
		for i := range s.GPUs {
			h.note(rule, s.GPUs[i].Index, s.GPUs[i].UUID, rule.gpu(e, &s.GPUs[i]))
		}
	}
	slices.SortStableFunc(h.Findings, func(a, b Finding) int { return cmp.Compare(b.Severity.rank(), a.Severity.rank()) })
	return h
}

func (h *Health) note(rule Rule, index int, uuid, text string) {
	if text == "" {
		return
	}
	h.Findings = append(h.Findings, Finding{rule.ID, rule.Severity, index, uuid, text})
	if rule.Severity.rank() > h.Verdict.rank() {
		h.Verdict = rule.Severity
	}
}

// choose returns the readings of the expected GPUs.
func (e Expectation) choose(all []Reading) []Reading {
	if e.GPUs == nil {
		return all
	}
	var chosen []Reading
	for _, r := range all {
		if slices.ContainsFunc(e.GPUs, func(name string) bool { return r.isNamed(name) }) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// Choose returns the readings of some GPUs, by UUID, the beginning of one, or
// index, as CUDA_VISIBLE_DEVICES names them. nil names all.
func Choose(all []Reading, names []string) []Reading { return Expectation{GPUs: names}.choose(all) }

func (r *Reading) isNamed(name string) bool {
	return name == fmt.Sprint(r.Index) || strings.HasPrefix(name, "GPU-") && strings.HasPrefix(r.UUID, name)
}

func driverFault(f Fault, text string) func(Expectation, *Snapshot) string {
	return func(_ Expectation, s *Snapshot) string {
		if s.Fault != f {
			return ""
		}
		return withDetail(text, s.Detail)
	}
}

func fault(f Fault, text string) func(Expectation, *Reading) string {
	return func(_ Expectation, r *Reading) string {
		if r.Fault != f {
			return ""
		}
		return withDetail(text, r.Detail)
	}
}

func withDetail(text, detail string) string {
	if detail != "" {
		text += " (" + detail + ")"
	}
	return text
}

func checkDriver(e Expectation, s *Snapshot) string {
	if e.Driver == "" || s.Driver == "" || s.Driver == e.Driver || strings.HasPrefix(s.Driver, e.Driver+".") {
		return ""
	}
	return fmt.Sprintf("the driver is %s; %s is expected", s.Driver, e.Driver)
}

func checkCount(e Expectation, s *Snapshot) string {
	answer := 0
	for i := range s.GPUs {
		if s.GPUs[i].Fault == "" {
			answer++
		}
	}
	if answer >= e.Count || s.Fault != "" {
		return ""
	}
	return withDetail(fmt.Sprintf("%d GPUs answer; %d are expected", answer, e.Count), s.Absent)
}

func checkXIDs(of Severity) func(Expectation, *Reading) string {
	return func(_ Expectation, r *Reading) string {
		var all []string
		for _, number := range r.XIDs {
			if x, ok := classOf(number); ok && x.Severity == of {
				all = append(all, fmt.Sprintf("XID %d, %s", number, x.About))
			}
		}
		return strings.Join(all, "; ")
	}
}

func exceeds(key, text string) func(Expectation, *Reading) string {
	return func(_ Expectation, r *Reading) string {
		v := r.Values[key]
		switch {
		case v <= 0:
			return ""
		case strings.Contains(text, "%"):
			return fmt.Sprintf(text, v)
		}
		return text
	}
}

func checkThrottle(rule string) func(Expectation, *Reading) string {
	return func(_ Expectation, r *Reading) string {
		var all []string
		for _, reason := range Reasons() {
			if reason.Rule == rule && slices.Contains(r.Throttle, reason.Name) {
				all = append(all, fmt.Sprintf("its clocks are low: %s", reason.About))
			}
		}
		return strings.Join(all, "; ")
	}
}

func checkIdle(e Expectation, r *Reading) string {
	if !e.Idle || len(r.Processes) == 0 {
		return ""
	}
	var all []string
	for _, p := range r.Processes[:min(len(r.Processes), 8)] {
		all = append(all, fmt.Sprint(p.PID))
	}
	return "processes compute on it: " + strings.Join(all, ", ")
}

// Worst returns the worse of two verdicts of a run; the first one where they are
// equal. An empty verdict is none.
func Worst(a, b Finding) Finding {
	if b.Severity.rank() > a.Severity.rank() {
		return b
	}
	return a
}
