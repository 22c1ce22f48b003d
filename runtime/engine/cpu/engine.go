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
	for _, s := range shapes {
		total += product(s)
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
		threads: newThreads(o.Threads, parts),
		vector:  make([]float32, model.Length(vars)),
	}
	for range parts {
		r.sums = append(r.sums, make([]float32, len(r.vector)))
	}
	r.wire()
	if err := m.Init(o.Seed, r.vector); err != nil {
		r.threads.close()
		return nil, err
	}
	r.dirty = true
	return r, nil
}

// wire makes buffers and layers. Values keep one buffer per layer that does
// not work in place; gradients need only two, used in turn.
func (r *replica) wire() {
	batch := r.options.MicroBatch
	widest := 0
	for _, s := range r.shapes {
		widest = max(widest, product(s))
	}
	gradients := [2][]float32{make([]float32, batch*widest), make([]float32, batch*widest)}
	r.input = make([]float32, batch*product(r.model.Input.Shape))
	x, in, turn := r.input, r.model.InputShape(), 0
	r.learns = -1
	var wirings []wiring
	for i, spec := range r.model.Layers {
		size := batch * product(r.shapes[i])
		w := wiring{spec: spec, threads: r.threads, in: in, out: r.shapes[i], x: x, y: x, find: r.finder(spec)}
		if !inPlace(spec.Op) {
			w.y = make([]float32, size)
		}
		// Where gradients of inputs go, unless nothing below learns.
		if r.learns >= 0 {
			w.dx = gradients[turn][:batch*product(in)]
		}
		if !gradientInPlace(spec.Op) {
			turn = 1 - turn
		}
		w.dy = gradients[turn][:size]
		if r.learns < 0 && (spec.Op == model.Dense || spec.Op == model.Conv2D || spec.Op == model.BatchNorm) {
			r.learns = i
		}
		wirings = append(wirings, w)
		x, in = w.y, w.out
	}
	for _, w := range wirings {
		r.layers = append(r.layers, newLayer(w))
		r.spans = append(r.spans, r.span(w.spec))
	}
	r.logits = x
	r.loss = newCrossEntropy(r.threads, r.model.Classes, x, gradients[turn][:batch*r.model.Classes])
	r.convert, r.merge = r.convertPart, r.mergePart
	r.finite = make([]bool, r.threads.parts)
}

// finder returns the layer's variables by name.
func (r *replica) finder(spec model.Layer) func(string) parameter {
	return func(variable string) parameter {
		var p parameter
		for _, v := range r.vars {
			if v.Name == spec.Name+"/"+variable {
				p.value = r.vector[v.Offset : v.Offset+v.Len]
				for _, sums := range r.sums {
					p.sums = append(p.sums, sums[v.Offset:v.Offset+v.Len])
				}
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
