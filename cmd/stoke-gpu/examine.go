package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/stokehq/stoke/runtime/gpu"
)

// examine reads the GPUs for a check. Where they are measured it reads them again
// afterwards, with the XID events of that time, and closes the driver.
func (p *program) examine(ctx context.Context, d driver, e gpu.Expectation) gpu.Snapshot {
	s := p.read(d)
	if p.measure != nil && !p.broken && p.await(d.watch) {
		s = p.measureAll(ctx, d, s, e)
	}
	if !p.broken {
		p.await(d.close)
	}
	return s
}

// measureAll measures the GPUs that a check is about, one after the other: together they
// would share the machine's buses.
func (p *program) measureAll(ctx context.Context, d driver, before gpu.Snapshot, e gpu.Expectation) gpu.Snapshot {
	divided := p.divided(d)
	results := make(map[int]*gpu.Measured)
	for _, r := range gpu.Choose(before.GPUs, e.GPUs) {
		if p.broken {
			return p.silent()
		}
		var m gpu.Measured
		switch {
		case r.Fault != "":
			continue
		case len(r.Processes) > 0:
			m = gpu.Unmeasured(false, "processes compute on it")
		case slices.Contains(divided, r.Index):
			m = gpu.Unmeasured(false, "MIG divides it")
		default:
			m = p.measure(ctx, cmp.Or(r.UUID, strconv.Itoa(r.Index)))
		}
		results[r.Index] = &m
	}
	after := p.read(d)
	for i := range after.GPUs {
		r := &after.GPUs[i]
		r.Measured = results[r.Index]
		for _, was := range before.GPUs {
			if was.Index == r.Index {
				r.Processes = was.Processes // the measurement's own may still end
			}
		}
	}
	return after
}

// divided lists the GPUs that MIG divides.
func (p *program) divided(d driver) (indices []int) {
	answers := make(chan gpu.Inventory, 1)
	if !p.await(func() { answers <- d.inventory() }) {
		return nil
	}
	for _, device := range (<-answers).GPUs {
		if device.MIG {
			indices = append(indices, device.Index)
		}
	}
	return indices
}
