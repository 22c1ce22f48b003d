//go:build cgo && linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/gpu/probe"
)

// Each shape of NVIDIA's mocks is listed and read, with all numbers of the table.
func TestShapes(t *testing.T) {
	memory := map[string]int64{"A100": 40, "H100": 80, "H200": 141}
	for name, from := range shapes() {
		m := newMachine(from)
		p, out, _ := m.program()
		if err := run(t, p, "list", "--json"); err != nil {
			t.Fatal(err)
		}
		var of gpu.Inventory
		if err := json.Unmarshal(out.Bytes(), &of); err != nil {
			t.Fatal(err)
		}
		if len(of.GPUs) != 8 || of.Driver != "550.54.15" || of.CUDA != "12.4" {
			t.Errorf("%s: %+v", name, of)
		}
		for i, d := range of.GPUs {
			if d.Index != i || !strings.Contains(d.Name, name) || d.Memory>>30 != memory[name] || d.UUID != m.cards[i].UUID || d.PCI != m.cards[i].PciBusID ||
				d.MIG || d.Capability == "" || !slices.Contains(d.Missing, "NVLink") {
				t.Errorf("%s: GPU %+v", name, d)
			}
		}
		out.Reset()
		if err := run(t, p, "list"); err != nil || strings.Count(out.String(), m.cards[7].UUID) != 1 || strings.Count(out.String(), "\n") != 11 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		s := m.read(t)
		if err := s.Validate(); err != nil || len(s.GPUs) != 8 {
			t.Fatalf("%s: %d GPUs, %v", name, len(s.GPUs), err)
		}
		want := slices.Sorted(func(yield func(string) bool) {
			for _, row := range gpu.Table() {
				yield(row.Key)
			}
		})
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(s.GPUs[3].Values))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if v := s.GPUs[3].Values; v[gpu.Power] != 412.345 || v[gpu.SMClock] != 1001 || v[gpu.MemoryClock] != 1002 || v[gpu.Utilization] != 97 {
			t.Errorf("%s: %v", name, v)
		}
		if h := gpu.Judge(s, gpu.Expectation{Count: 8, Driver: "550", Idle: true}); h.Verdict != gpu.Fit || len(h.Findings) > 0 {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// A GPU that MIG divides is listed with its instances.
func TestMIG(t *testing.T) {
	m := newMachine(dgxh100.New)
	d, part := m.cards[2], server.NewDeviceFromConfig(m.cards[2].Config, 0)
	part.UUID, part.MemoryInfo.Total = "MIG-1", 10<<30
	part.GetNameFunc = func() (string, nvml.Return) { return "NVIDIA H100 MIG 1g.10gb", nvml.SUCCESS }
	d.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i != 1 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return part, nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED }
	p, out, _ := m.program()
	if err := run(t, p, "list", "--json"); err != nil {
		t.Fatal(err)
	}
	var of gpu.Inventory
	if err := json.Unmarshal(out.Bytes(), &of); err != nil {
		t.Fatal(err)
	}
	want := []gpu.Instance{{Name: "NVIDIA H100 MIG 1g.10gb", UUID: "MIG-1", Memory: 10 << 30}}
	if is := of.GPUs[2]; !is.MIG || !cmp.Equal(is.Instances, want) || of.GPUs[1].MIG {
		t.Errorf("%+v", is)
	}
	s := m.read(t)
	if _, has := s.GPUs[2].Values[gpu.Utilization]; has || s.GPUs[2].Values[gpu.Temperature] != 61 {
		t.Errorf("%+v", s.GPUs[2])
	}
	if h := gpu.Judge(s, gpu.Expectation{Count: 8}); h.Verdict != gpu.Fit {
		t.Errorf("%+v", h)
	}
}

// Every rule has a GPU, or a driver, that breaks it and no other rule.
func TestEveryRule(t *testing.T) {
	xid := func(number uint64) func(m *machine) []nvml.EventData {
		return func(m *machine) []nvml.EventData {
			return []nvml.EventData{{Device: m.cards[5], EventType: nvml.EventTypeXidCriticalError, EventData: number}}
		}
	}
	throttle := func(bits uint64) func(m *machine) []nvml.EventData {
		return func(m *machine) []nvml.EventData {
			m.cards[5].GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return bits, nvml.SUCCESS }
			return nil
		}
	}
	rows := func(pending, failed bool) func(m *machine) []nvml.EventData {
		return func(m *machine) []nvml.EventData {
			m.cards[5].GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 1, pending, failed, nvml.SUCCESS }
			return nil
		}
	}
	handle := func(ret nvml.Return) func(m *machine) []nvml.EventData {
		return func(m *machine) []nvml.EventData {
			find := m.DeviceGetHandleByIndexFunc
			m.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if i == 5 {
					return nil, ret
				}
				return find(i)
			}
			return nil
		}
	}
	answer := func(ret nvml.Return) func(m *machine) []nvml.EventData {
		return func(m *machine) []nvml.EventData { lose(m.cards[5], ret); return nil }
	}
	start := func(ret nvml.Return) func(m *machine) []nvml.EventData {
		return func(m *machine) []nvml.EventData { m.InitFunc = func() nvml.Return { return ret }; return nil }
	}
	// TestHangingDriver and TestCheckMeasures have these.
	broken := []string{gpu.RuleSilent, gpu.RuleCompute, gpu.RuleProduct, gpu.RuleLink}
	for _, c := range []struct {
		name  string
		set   func(m *machine) []nvml.EventData
		e     gpu.Expectation
		rules []string
		index int
	}{
		{"all GPUs work", func(*machine) []nvml.EventData { return nil }, gpu.Expectation{Count: 8}, nil, 0},
		{"lost at work", answer(nvml.ERROR_GPU_IS_LOST), gpu.Expectation{}, []string{gpu.RuleLost}, 5},
		{"lost at the start", handle(nvml.ERROR_GPU_IS_LOST), gpu.Expectation{}, []string{gpu.RuleLost}, 5},
		{"lost, and counted", answer(nvml.ERROR_GPU_IS_LOST), gpu.Expectation{Count: 8}, []string{gpu.RuleCount, gpu.RuleLost}, -1},
		{"needs a reset", answer(nvml.ERROR_RESET_REQUIRED), gpu.Expectation{}, []string{gpu.RuleReset}, 5},
		{"refuses at work", answer(nvml.ERROR_UNKNOWN), gpu.Expectation{}, []string{gpu.RuleRefused}, 5},
		{"another error", handle(nvml.ERROR_UNKNOWN), gpu.Expectation{}, []string{gpu.RuleRefused}, 5},
		{"mismatch", start(nvml.ERROR_LIB_RM_VERSION_MISMATCH), gpu.Expectation{Count: 8}, []string{gpu.RuleMismatch}, -1},
		{"the driver refuses", start(nvml.ERROR_UNKNOWN), gpu.Expectation{Count: 8}, []string{gpu.RuleRefused}, -1},
		{"no driver", start(nvml.ERROR_LIBRARY_NOT_FOUND), gpu.Expectation{Count: 8}, []string{gpu.RuleCount}, -1},
		{"wrong driver", func(*machine) []nvml.EventData { return nil }, gpu.Expectation{Driver: "580"}, []string{gpu.RuleDriver}, -1},
		{"XID 79", xid(79), gpu.Expectation{}, []string{gpu.RuleXIDUnfit}, 5},
		{"XID 48", xid(48), gpu.Expectation{}, []string{gpu.RuleXIDUnfit}, 5},
		{"XID 63", xid(63), gpu.Expectation{}, []string{gpu.RuleXIDWarning}, 5},
		{"XID 94", xid(94), gpu.Expectation{}, []string{gpu.RuleXIDWarning}, 5},
		{"XID 31, of a program", xid(31), gpu.Expectation{}, nil, 0},
		{"uncorrected errors", func(m *machine) []nvml.EventData {
			m.cards[5].GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, of nvml.EccCounterType) (uint64, nvml.Return) {
				if kind == nvml.MEMORY_ERROR_TYPE_UNCORRECTED && of == nvml.VOLATILE_ECC {
					return 2, nvml.SUCCESS
				}
				return 7, nvml.SUCCESS // corrected
			}
			return nil
		}, gpu.Expectation{}, []string{gpu.RuleECC}, 5},
		{"a row waits", rows(true, false), gpu.Expectation{}, []string{gpu.RulePending}, 5},
		{"a row failed", rows(false, true), gpu.Expectation{}, []string{gpu.RuleFailed}, 5},
		{"hot", throttle(0x20), gpu.Expectation{}, []string{gpu.RuleThermal}, 5},
		{"hot, by the hardware", throttle(0x40), gpu.Expectation{}, []string{gpu.RuleThermal}, 5},
		{"power brake", throttle(0x80), gpu.Expectation{}, []string{gpu.RulePower}, 5},
		{"slowdown", throttle(0x8), gpu.Expectation{}, []string{gpu.RuleSlowdown}, 5},
		{"power cap and idle are usual", throttle(0x5), gpu.Expectation{}, nil, 0},
		{"in use", func(m *machine) []nvml.EventData {
			m.cards[5].GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
				return []nvml.ProcessInfo{{Pid: 4711, UsedGpuMemory: 1 << 30}}, nvml.SUCCESS
			}
			return nil
		}, gpu.Expectation{Idle: true}, []string{gpu.RuleInUse}, 5},
		{"not the chosen GPU", xid(79), gpu.Expectation{GPUs: []string{"0", "6"}, Count: 2}, nil, 0},
		{"the chosen GPU", xid(79), gpu.Expectation{GPUs: []string{"5"}, Count: 1}, []string{gpu.RuleXIDUnfit}, 5},
	} {
		for shape, from := range shapes() {
			m := newMachine(from)
			events := c.set(m)
			h := gpu.Judge(m.read(t, events...), c.e)
			var rules []string
			for _, f := range h.Findings {
				rules = append(rules, f.Rule)
			}
			if !slices.Equal(rules, c.rules) || len(rules) > 0 && h.Findings[0].GPU != c.index {
				t.Errorf("%s, %s: %+v, want %v of GPU %d", shape, c.name, h, c.rules, c.index)
			}
		}
		broken = append(broken, c.rules...)
	}
	for _, rule := range gpu.Rules() {
		if !slices.Contains(broken, rule.ID) {
			t.Errorf("no case breaks the rule %s", rule.ID)
		}
	}
}

// A reading that a GPU does not support is absent, and is not asked for again. A
// GPU that passes an error keeps its other readings.
func TestUnsupportedReading(t *testing.T) {
	m := newMachine(dgxa100.New)
	d := m.cards[0]
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	passes := true
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		if passes = !passes; passes {
			return 60, nvml.SUCCESS
		}
		return 0, nvml.ERROR_UNKNOWN
	}
	n, _ := openLibrary(m)
	first, second := n.snapshot().GPUs[0], n.snapshot().GPUs[0]
	_, has := second.Values[gpu.Power]
	if has || len(d.GetPowerUsageCalls()) != 1 || second.Fault != "" {
		t.Errorf("%+v after %d calls", second, len(d.GetPowerUsageCalls()))
	}
	if _, has := first.Values[gpu.Temperature]; has || second.Values[gpu.Temperature] != 60 || first.Values[gpu.SMClock] != 1001 {
		t.Errorf("%+v, then %+v", first, second)
	}
}

// A library without the newer calls is not asked for them: that would end the
// process.
func TestOlderLibrary(t *testing.T) {
	m := newMachine(dgxa100.New)
	m.LookupSymbolFunc = func(string) error { return errors.New("undefined symbol") }
	for _, d := range m.cards {
		d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0x40, nvml.SUCCESS }
	}
	s := m.read(t)
	d := m.cards[1]
	if len(d.GetRemappedRowsCalls())+len(d.GetMigModeCalls())+len(d.GetCurrentClocksEventReasonsCalls()) != 0 || s.GPUs[1].Throttle[0] != "hardware_thermal" {
		t.Errorf("%+v", s.GPUs[1])
	}
}

// mostCalls is how many calls of the driver one reading of a GPU may take: at 2 µs
// each, as an H200 took, 8 GPUs take 0.2 ms of 5 s.
const mostCalls = 13

// The calls of one interval are counted: a lost GPU costs one.
func TestCallsOfAnInterval(t *testing.T) {
	m := newMachine(dgxh100.New)
	n, _ := openLibrary(m)
	n.watch()
	n.snapshot()
	before := m.calls()
	n.snapshot()
	if each := m.calls() - before; each > 8*mostCalls+1 || each < 8*mostCalls-8 {
		t.Errorf("%d calls for 8 GPUs", each)
	}
	lose(m.cards[0], nvml.ERROR_GPU_IS_LOST)
	n.snapshot()
	before = len(m.cards[0].GetUtilizationRatesCalls())
	calledBefore := calls(&m.cards[0].Device)
	n.snapshot()
	if calls(&m.cards[0].Device) != calledBefore || before == 0 {
		t.Error("a lost GPU is asked again")
	}
}

// BenchmarkWatch measures an interval of 8 GPUs without the driver's own time.
func BenchmarkWatch(b *testing.B) {
	m := newMachine(dgxh100.New)
	p, _, _ := m.program()
	n, _ := openLibrary(m)
	n.watch()
	began := cpuTime(b)
	for b.Loop() {
		if err := p.print(p.read(n)); err != nil {
			b.Fatal(err)
		}
	}
	each := (cpuTime(b) - began) / time.Duration(b.N)
	b.ReportMetric(100*float64(each)/float64(5*time.Second), "%core")
}

// A driver that hangs is told within the limit, and ends the program.
func TestHangingDriver(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	stuck := func(m *machine) {
		m.cards[3].GetPowerUsageFunc = func() (uint32, nvml.Return) { <-hang; return 0, nvml.SUCCESS }
	}
	atStart := func(m *machine) { m.InitFunc = func() nvml.Return { <-hang; return nvml.ERROR_UNKNOWN } }
	for name, set := range map[string]func(*machine){"a reading": stuck, "the start": atStart} {
		for _, command := range [][]string{{"watch"}, {"check", "--json"}} {
			m := newMachine(dgxa100.New)
			set(m)
			p, out, _ := m.program()
			p.limit = 20 * time.Millisecond
			if err := run(t, p, command...); !errors.Is(err, status(exitUnfit)) {
				t.Errorf("%s, %v: %v", name, command, err)
			}
			var s gpu.Snapshot
			into := any(&s)
			var r probe.Report
			if command[0] == "check" {
				into = &r
			}
			if err := json.Unmarshal(out.Bytes(), into); err != nil {
				t.Fatalf("%s, %v: %v\n%s", name, command, err, out)
			}
			if command[0] == "check" {
				s = r.Snapshot
			}
			if h := gpu.Judge(s, gpu.Expectation{Count: 8}); h.Verdict != gpu.Unfit || len(h.Findings) != 1 || h.Findings[0].Rule != gpu.RuleSilent {
				t.Errorf("%s, %v: %+v", name, command, h)
			}
		}
	}
}

// A driver that hangs where XID events are asked for is told, too: at the start of a watch
// and at a reading.
func TestHangingEvents(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, set := range map[string]func(m *machine){
		"the start": func(m *machine) {
			m.cards[3].RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { <-hang; return nvml.SUCCESS }
		},
		"a reading": func(m *machine) {
			m.waits.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) { <-hang; return nvml.EventData{}, nvml.ERROR_TIMEOUT }
		},
	} {
		m := newMachine(dgxa100.New)
		set(m)
		p, out, _ := m.program()
		p.limit = 20 * time.Millisecond
		var s gpu.Snapshot
		if err := run(t, p, "watch"); !errors.Is(err, status(exitUnfit)) || json.Unmarshal(out.Bytes(), &s) != nil || s.Fault != gpu.FaultSilent {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// A driver that hangs is told before the parent stops to wait: nothing holds up a run for
// longer than ten seconds.
func TestLimits(t *testing.T) {
	if answerTime+time.Second > probe.Limit || probe.Limit > 10*time.Second {
		t.Errorf("the driver may take %v, this program %v", answerTime, probe.Limit)
	}
}

// The lines of a machine with one GPU lost, one hot and one with an XID are a file:
// the tests of runs take it in the place of a machine with GPUs.
func TestLinesOfAMachine(t *testing.T) {
	m := newMachine(dgxh100.New)
	for i, d := range m.cards {
		d.UUID = fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i)
	}
	m.cards[1].GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x44, nvml.SUCCESS }
	m.cards[2].GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	m.events <- nvml.EventData{Device: m.cards[3], EventData: 94}
	p, out, _ := m.program()
	n, _ := openLibrary(m)
	n.watch()
	for range 2 {
		if err := p.print(p.read(n)); err != nil {
			t.Fatal(err)
		}
		lose(m.cards[7], nvml.ERROR_GPU_IS_LOST)
	}
	got := out.String()
	const golden = "testdata/watch.jsonl"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("%v: %s", err, cmp.Diff(string(want), got))
	}
}

var update = flag.Bool("update", false, "write the golden file again")

// list of a driver that hangs says so.
func TestListOfAHangingDriver(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	m := newMachine(dgxa100.New)
	m.cards[3].GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) { <-hang; return 0, 0, nvml.SUCCESS }
	p, out, _ := m.program()
	p.limit = 20 * time.Millisecond
	if err := run(t, p, "list"); err != nil || !strings.Contains(out.String(), "the driver does not answer") {
		t.Errorf("%v\n%s", err, out)
	}
}

// watch prints a line at once and after each tick, keeps XIDs, and ends with its
// standard input.
func TestWatch(t *testing.T) {
	m := newMachine(dgxa100.New)
	p, out, ticks := m.program()
	in, hold := newPipe(t)
	p.in = in
	ended := make(chan error, 1)
	go func() { ended <- run(t, p, "watch", "--attached") }()
	ticks <- time.Time{}
	m.events <- nvml.EventData{Device: m.cards[7], EventData: 94}
	ticks <- time.Time{}
	ticks <- time.Time{}
	hold.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var at []time.Time
	var last gpu.Snapshot
	for line := range strings.Lines(out.String()) {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err)
		}
		at = append(at, last.At)
	}
	if len(at) != 4 || !slices.Equal(last.GPUs[7].XIDs, []uint64{94}) || at[1].Sub(at[0]) <= 0 {
		t.Errorf("lines of %v, the last one %+v", at, last.GPUs[7])
	}
	if len(m.ShutdownCalls()) != 1 {
		t.Error("the library is not closed")
	}
}
