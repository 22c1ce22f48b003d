package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/cuda"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/engine/xla"
	"github.com/stokehq/stoke/runtime/engine/xla/xlatest"
	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/spec"
)

// A process of its own measures a GPU whose programs the interpreter runs.
func TestMeasureGPU(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	measure := func(name string) (m gpu.Measured) {
		cmd := exec.Command(self, "measure-gpu", name, "--rows", "16")
		cmd.Env = append(os.Environ(), asTrainer+"=1", pretended+"=2", pretendedHome+"="+filepath.Join(t.TempDir(), "slots"), interpreted+"=1")
		var out, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaint
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, &complaint)
		}
		if err := json.Unmarshal(out.Bytes(), &m); err != nil || m.Validate() != nil {
			t.Fatalf("%v: %s", err, out.Bytes())
		}
		return m
	}
	for _, name := range []string{"GPU-1", "0"} {
		if m := measure(name); m.Product <= 0 || m.Size != 16 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m := measure("GPU-7"); !strings.Contains(m.Unable, "does not see the GPU GPU-7") {
		t.Errorf("%+v", m)
	}
}

// A GPU that fails is told from a machine without the software, and from an engine that
// measures nothing.
func TestMeasureGPUThatCannotBeOpened(t *testing.T) {
	before := registerMore
	t.Cleanup(func() { registerMore = before })
	small := &xlatest.Device{Round: true, Limit: 100}
	for name, c := range map[string]struct {
		entry          engine.Entry
		unable, failed string
	}{
		"no software": {engine.Entry{Problem: func() error { return errors.New("no plugin") }}, "no plugin", ""},
		"a library": {engine.Entry{New: func(engine.Config) (engine.Engine, error) {
			return nil, &cuda.Fault{Kind: cuda.NoLibrary, Summary: "No cuDNN"}
		}}, "No cuDNN", ""},
		"bad": {engine.Entry{New: func(engine.Config) (engine.Engine, error) {
			return nil, &cuda.Fault{Kind: cuda.BadGPU, Summary: "It fails"}
		}}, "", "It fails"},
		"error": {engine.Entry{New: func(engine.Config) (engine.Engine, error) { return nil, errors.New("on fire") }}, "", "on fire"},
		"CPU":   {engine.Entry{New: func(engine.Config) (engine.Engine, error) { return cpu.New(), nil }}, "measures no devices", ""},
		"full":  {engine.Entry{New: func(engine.Config) (engine.Engine, error) { return xla.New(small), nil }}, "out of memory", ""},
	} {
		c.entry.Devices = func() []engine.Device { return []engine.Device{{UUID: "GPU-0"}} }
		if c.entry.New == nil {
			c.entry.New = func(engine.Config) (engine.Engine, error) { panic("opened") }
		}
		registerMore = func(r *engine.Registry) { r.Register(spec.EngineXLA, c.entry) }
		m := measureGPU(t.Context(), "GPU-0", 16)
		if m.Validate() != nil || (m.Unable == "") != (c.unable == "") || !strings.Contains(m.Unable, c.unable) || !strings.Contains(m.Failed, c.failed) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	registerMore = func(*engine.Registry) {}
	if m := measureGPU(t.Context(), "GPU-0", 16); !strings.Contains(m.Unable, "stoke-trainer-gpu") {
		t.Errorf("a trainer without the engine: %+v", m)
	}
}
