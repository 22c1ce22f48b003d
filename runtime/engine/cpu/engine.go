package cpu

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

const (
	// deterministicParts is how many parts a micro-batch has, at any number
	// of threads, when sums must not depend on it.
	deterministicParts = 8
	// maxBuffer is the most elements that a replica's activations may have.
	maxBuffer = 1 << 31
)

// New returns the engine. Its replicas ignore Options.Device.
func New() engine.Engine { return maker{} }

type maker struct{}

// Build makes a replica; its goroutines (Threads-1) live until Close.
func (maker) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	if o.MicroBatch < 1 || o.MicroBatch > 1<<20 {
		return nil, fmt.Errorf("build model %q: micro-batch of %d records: want 1 to %d", m.Name, o.MicroBatch, 1<<20)
	}
	if o.ComputeType != "" && o.ComputeType != "f32" {
		return nil, fmt.Errorf("build model %q: the cpu engine computes in f32, not in %s", m.Name, o.ComputeType)
	}
	if o.Threads < 0 {
		return nil, fmt.Errorf("build model %q: %d threads", m.Name, o.Threads)
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	vars, _, err := m.Layout()
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	shapes, err := m.Shapes()
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	total := product(m.Input.Shape)
	for i, s := range shapes {
		total += product(s)
		if l := m.Layers[i]; l.Op == model.Attention {
			total += l.Heads * s[0] * s[0]
		}
	}
	if total > maxBuffer/o.MicroBatch {
		return nil, fmt.Errorf("build model %q: %d activations per record do not fit a micro-batch of %d: use a smaller one", m.Name, total, o.MicroBatch)
	}
	parts := min(o.Threads, o.MicroBatch)
	if o.Deterministic {
		parts = min(deterministicParts, o.MicroBatch)
	}
	o.Threads = min(o.Threads, parts)
	r := &replica{
		model: m, options: o, vars: vars, shapes: shapes,
		factor:  m.InputFactor(),
		threads: newThreads(o.Threads, parts),
		vector:  make([]float32, model.Length(vars)),
	}
	for v := range r.bytes {
		r.bytes[v] = float32(v) * r.factor
	}
	for range parts {
		r.sums = append(r.sums, make([]float32, len(r.vector)))
	}
	r.ownSums = r.sums[0]
	if err := r.wire(); err != nil {
		r.threads.close()
		return nil, fmt.Errorf("build: %w", err)
	}
	if err := m.Init(o.Seed, r.vector); err != nil {
		r.threads.close()
		return nil, err
	}
	r.dirty = true
	return r, nil
}

// finder returns the layer's variables by name.
func (r *replica) finder(spec model.Layer) func(string) *parameter {
	return func(variable string) *parameter {
		p := new(parameter)
		for _, v := range r.vars {
			if v.Name == spec.Name+"/"+variable {
				p.value = r.vector[v.Offset : v.Offset+v.Len]
				for _, sums := range r.sums {
					p.sums = append(p.sums, sums[v.Offset:v.Offset+v.Len])
				}
				r.extents = append(r.extents, extent{p, v.Offset, v.Offset + v.Len})
			}
		}
		return p
	}
}

// span is where the layer's trained variables lie: from, to.
func (r *replica) span(spec model.Layer) [2]int {
	span := [2]int{-1, -1}
	for _, v := range r.vars {
		if v.Kind == model.Trained && strings.HasPrefix(v.Name, spec.Name+"/") {
			if span[0] < 0 {
				span[0] = v.Offset
			}
			span[1] = v.Offset + v.Len
		}
	}
	return span
}
