package cpu

import (
	"slices"
)

// wire makes buffers and layers. Values keep one buffer per layer that does not work
// in place; gradients share as few as can be.
func (r *replica) wire() error {
	sources, err := r.model.Sources()
	if err != nil {
		return err
	}
	wirings := r.wireValues(sources)
	r.wireGradients(wirings, sources)
	for _, w := range wirings {
		r.layers = append(r.layers, newLayer(w))
	}
	last := wirings[len(wirings)-1]
	r.outputs = last.y
	r.loss = newLoss(r.threads, r.model, last)
	r.convert, r.merge = r.convertPart, r.mergePart
	r.finite = make([]bool, r.threads.parts)
	return nil
}

// wireValues gives the outputs of each layer a buffer.
func (r *replica) wireValues(sources [][]int) []wiring {
	batch := r.options.MicroBatch
	readers := make(map[int]int) // of each layer; -1: of the input
	for _, from := range sources {
		for _, s := range from {
			readers[s]++
		}
	}
	r.input = make([]float32, batch*product(r.model.Input.Shape))
	wirings := make([]wiring, len(sources))
	for i, spec := range r.model.Layers {
		w := wiring{spec: spec, threads: r.threads, out: r.shapes[i], find: r.finder(spec)}
		for _, s := range sources[i] {
			x, in := r.input, r.model.InputShape()
			if s >= 0 {
				x, in = wirings[s].y, r.shapes[s]
			}
			w.xs, w.ins = append(w.xs, x), append(w.ins, in)
		}
		w.x, w.in = w.xs[0], w.ins[0]
		w.y = w.x
		if !inPlace(spec.Op) || readers[sources[i][0]] > 1 {
			w.y = make([]float32, batch*product(r.shapes[i]))
		}
		w.dxs = make([][]float32, len(w.xs))
		wirings[i] = w
		r.spans = append(r.spans, r.span(spec))
	}
	return wirings
}

// wireGradients gives each gradient that a variable needs a buffer. A layer's backward
// pass reads the gradient of its outputs and writes the gradients of its inputs. After
// that the first buffer is free.
func (r *replica) wireGradients(wirings []wiring, sources [][]int) {
	batch, last := r.options.MicroBatch, len(wirings)-1
	r.learns = make([]bool, len(wirings))
	for i, from := range sources {
		r.learns[i] = r.spans[i][0] >= 0 || slices.ContainsFunc(from, func(s int) bool { return s >= 0 && r.learns[s] })
	}
	size := func(i int) int { return batch * product(r.shapes[i]) }
	var plan slots
	outputs := make([][]int, len(wirings)) // slots with the gradient of a layer's outputs, one for each reader
	inputs := make([][]int, len(wirings))  // and of its inputs; -1: it is not needed
	outputs[last] = []int{plan.take(size(last))}
	for i := last; i >= 0; i-- {
		if !r.learns[i] {
			continue
		}
		dy, kept := outputs[i][0], false
		for _, other := range outputs[i][1:] {
			plan.give(other)
		}
		for k, s := range sources[i] {
			dx := -1
			switch {
			case s < 0 || !r.learns[s]:
			case k == 0 && gradientInPlace(wirings[i].spec.Op):
				dx, kept = dy, true
			default:
				dx = plan.take(size(s))
			}
			inputs[i] = append(inputs[i], dx)
			if dx >= 0 {
				outputs[s] = append(outputs[s], dx)
			}
		}
		if !kept {
			plan.give(dy)
		}
	}
	buffers := plan.fill()
	r.gathers = make([]*gather, len(wirings))
	for i := range wirings {
		w := &wirings[i]
		for k, slot := range outputs[i] {
			b := buffers[slot][:size(i)]
			if k == 0 {
				w.dy = b
				continue
			}
			r.gathers[i] = r.gathers[i].addGradient(r.threads, w.dy, b, product(r.shapes[i]))
		}
		for k, slot := range inputs[i] {
			if slot >= 0 {
				w.dxs[k] = buffers[slot][:size(sources[i][k])]
			}
		}
		w.dx = w.dxs[0]
	}
}

// slots are buffers that are planned before they are made.
type slots struct {
	sizes []int
	free  []int
}

// take returns the largest free buffer, which grows where it is too small.
func (s *slots) take(size int) int {
	best := -1
	for at, slot := range s.free {
		if best < 0 || s.sizes[slot] > s.sizes[s.free[best]] {
			best = at
		}
	}
	if best < 0 {
		s.sizes = append(s.sizes, size)
		return len(s.sizes) - 1
	}
	slot := s.free[best]
	s.free = slices.Delete(s.free, best, best+1)
	s.sizes[slot] = max(s.sizes[slot], size)
	return slot
}

// give frees a buffer.
func (s *slots) give(slot int) { s.free = append(s.free, slot) }

// fill makes the buffers.
func (s *slots) fill() [][]float32 {
	all := make([][]float32, len(s.sizes))
	for i, size := range s.sizes {
		all[i] = make([]float32, size)
	}
	return all
}
