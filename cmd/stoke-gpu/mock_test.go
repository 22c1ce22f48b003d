//go:build cgo && linux

package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/stokehq/stoke/runtime/gpu"
)

// machine is NVIDIA's mock of a server, with readings of a GPU at work, which
// tests change.
type machine struct {
	*server.Server
	cards  []*server.Device
	events chan nvml.EventData
	waits  *mock.EventSet
}

// shapes are the machines of NVIDIA's mocks.
func shapes() map[string]func() *server.Server {
	return map[string]func() *server.Server{"A100": dgxa100.New, "H100": dgxh100.New, "H200": dgxh200.New}
}

func newMachine(from func() *server.Server) *machine {
	m := &machine{Server: from(), events: make(chan nvml.EventData, 16)}
	m.waits = &mock.EventSet{WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
		select {
		case e := <-m.events:
			return e, nvml.SUCCESS
		default:
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		}
	}}
	m.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return m.waits, nvml.SUCCESS }
	m.ErrorStringFunc = func(ret nvml.Return) string { return fmt.Sprintf("error %d", ret) }
	for _, d := range m.Devices {
		card := d.(*server.Device)
		m.cards = append(m.cards, card)
		work(card)
	}
	return m
}

// work sets the readings of a GPU that works.
func work(d *server.Device) {
	number := func(v uint32) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) { return v, nvml.SUCCESS }
	}
	d.MemoryInfo.Used = d.MemoryInfo.Total / 2
	d.GetPciInfoFunc = func() (p nvml.PciInfo, ret nvml.Return) {
		for i, c := range []byte(d.PciBusID) {
			p.BusId[i] = int8(c)
		}
		return p, nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 97, Memory: 40}, nvml.SUCCESS
	}
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 61, nvml.SUCCESS }
	d.GetPowerUsageFunc, d.GetEnforcedPowerLimitFunc = number(412345), number(700000)
	d.GetClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(c), nvml.SUCCESS }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x4, nvml.SUCCESS }
	d.GetTotalEccErrorsFunc = func(_ nvml.MemoryErrorType, of nvml.EccCounterType) (uint64, nvml.Return) {
		if of != nvml.VOLATILE_ECC {
			return 9, nvml.SUCCESS // of the GPU's whole life
		}
		return 0, nvml.SUCCESS
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.SUCCESS }
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS }
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
	d.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED } // as an H200 answered
}

// lose has a GPU answer each call with an error.
func lose(d *server.Device, ret nvml.Return) {
	value := reflect.ValueOf(&d.Device).Elem()
	for i := range value.NumField() {
		f := value.Field(i)
		if f.Kind() != reflect.Func || !f.CanSet() {
			continue
		}
		kind := f.Type()
		f.Set(reflect.MakeFunc(kind, func([]reflect.Value) (out []reflect.Value) {
			for j := range kind.NumOut() {
				out = append(out, reflect.Zero(kind.Out(j)))
			}
			if n := len(out); n > 0 && kind.Out(n-1) == reflect.TypeFor[nvml.Return]() {
				out[n-1] = reflect.ValueOf(ret)
			}
			return out
		}))
	}
}

// calls counts the calls of a mock.
func calls(of any) (n int) {
	value := reflect.ValueOf(of)
	for i := range value.NumMethod() {
		if strings.HasSuffix(value.Type().Method(i).Name, "Calls") {
			n += value.Method(i).Call(nil)[0].Len()
		}
	}
	return n
}

// calls counts the calls of the driver, without the names of errors.
func (m *machine) calls() int {
	n := calls(&m.Interface) + calls(m.waits) - len(m.ErrorStringCalls())
	for _, d := range m.cards {
		n += calls(&d.Device)
	}
	return n
}

// program returns a program on the machine, whose clock is told by the test.
func (m *machine) program() (p *program, out *bytes.Buffer, ticks chan time.Time) {
	out, ticks = new(bytes.Buffer), make(chan time.Time)
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	return &program{
		open: func() (driver, gpu.Snapshot) { return openLibrary(m) }, limit: time.Minute, in: strings.NewReader(""), out: out,
		now:   func() time.Time { at = at.Add(5 * time.Second); return at },
		ticks: func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} },
	}, out, ticks
}

// run runs a command of the program.
func run(t *testing.T, p *program, args ...string) error {
	t.Helper()
	cmd := p.command()
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

// read returns a snapshot of the machine after some events.
func (m *machine) read(t *testing.T, events ...nvml.EventData) gpu.Snapshot {
	t.Helper()
	d, s := openLibrary(m)
	if d == nil {
		return s
	}
	d.watch()
	for _, e := range events {
		m.events <- e
	}
	return d.snapshot()
}
