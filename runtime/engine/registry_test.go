package engine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRegistry(t *testing.T) {
	open := func(Config) (Engine, error) { return nil, nil }
	broken := errors.New("no driver")
	var r Registry
	r.Register("cpu", Entry{New: open})
	r.Register("xla", Entry{New: open, Problem: func() error { return broken }, Devices: func() []Device { return []Device{{Index: 0}} }})
	if diff := cmp.Diff([]string{"cpu", "xla"}, r.Names()); diff != "" {
		t.Error(diff)
	}
	cpu, ok := r.Find("cpu")
	if !ok || cpu.Problem() != nil || cpu.Devices() != nil {
		t.Errorf("cpu: found %v, problem %v, devices %v; want an engine that works and needs no device", ok, cpu.Problem(), cpu.Devices())
	}
	xla, ok := r.Find("xla")
	if !ok || !errors.Is(xla.Problem(), broken) || len(xla.Devices()) != 1 {
		t.Errorf("xla: found %v, problem %v, devices %v", ok, xla.Problem(), xla.Devices())
	}
	if _, ok := r.Find("tpu"); ok {
		t.Error("found an engine that was not registered")
	}
	for name, wrong := range map[string]func(){
		"twice":       func() { r.Register("cpu", Entry{New: open}) },
		"without New": func() { r.Register("tpu", Entry{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: registered without a panic", name)
				}
			}()
			wrong()
		}()
	}
}
