package xla

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

const (
	// maxMicroBatch is the most records of a micro-batch.
	maxMicroBatch = 1 << 20
	// maxGroup is the most micro-batches of a batch, a power of two. A batch has about
	// groupBytes of records at most: with more of them, round trips cost little.
	maxGroup, groupBytes = 16, 8 << 20
)

// New returns the engine of a device. Its replicas ignore Options.Device and Threads.
func New(d Device) engine.Engine {
	return &maker{device: d, programs: make(map[string]Program), host: &host{device: d}}
}

// maker makes the replicas of a device.
type maker struct {
	device   Device
	host     *host
	mu       sync.Mutex
	programs map[string]Program // compiled, by their text
}

// Class implements engine.Classed.
func (e *maker) Class() string { return e.device.Class() }

// Build implements engine.Engine.
func (e *maker) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	if o.MicroBatch < 1 || o.MicroBatch > maxMicroBatch {
		return nil, fmt.Errorf("build model %q: micro-batch of %d records: want 1 to %d", m.Name, o.MicroBatch, maxMicroBatch)
	}
	kind := cmp.Or(o.ComputeType, spec.ComputeF32)
	numbers, ok := arithmetics[kind]
	if !ok {
		return nil, fmt.Errorf("build model %q: compute type %q: want %s, %s or %s",
			m.Name, kind, spec.ComputeF32, spec.ComputeTF32, spec.ComputeBF16)
	}
	vars, _, err := m.Layout()
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	r := &replica{
		programs: newPrograms(e, source{model: m, vars: vars, batch: o.MicroBatch, arithmetic: numbers, deterministic: o.Deterministic}),
		options:  o,
		vector:   make([]float32, model.Length(vars)),
	}
	bytes := 0
	for _, t := range r.inputs(true) {
		bytes += t.size()
	}
	for r.group = 1; r.group < maxGroup && 2*r.group*bytes <= groupBytes; {
		r.group *= 2
	}
	if err := m.Init(o.Seed, r.vector); err != nil {
		return nil, err
	}
	r.stale = true
	if err := r.prepare(); err != nil {
		return nil, r.explain(err)
	}
	return r, nil
}

// host lends the device's memory of the host.
type host struct {
	device Device
	mu     sync.Mutex
	free   map[int][][]byte // by size
}

func (h *host) take(bytes int) ([]byte, error) {
	if memory := h.reuse(bytes); memory != nil {
		return memory, nil
	}
	return h.device.Host(bytes) // unlocked: the device may need its threads, which give memory back
}

func (h *host) reuse(bytes int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	free := h.free[bytes]
	if len(free) == 0 {
		return nil
	}
	h.free[bytes] = free[:len(free)-1]
	return free[len(free)-1]
}

func (h *host) give(memory []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.free == nil {
		h.free = make(map[int][][]byte)
	}
	h.free[len(memory)] = append(h.free[len(memory)], memory)
}
