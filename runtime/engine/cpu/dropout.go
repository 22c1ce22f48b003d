package cpu

import (
	"hash/fnv"

	"github.com/stokehq/stoke/runtime/model"
)

// dropout drops elements in training and scales up the rest, in place. Which
// ones follows from (seed, epoch, record, layer), whoever computes it.
type dropout struct {
	noParameters
	threads    *threads
	size       int
	y, dy      []float32
	layer      uint64
	threshold  uint32 // of 2³² draws, those below are dropped
	scale      float32
	kept       []bool
	drop, undo job
	pass       *pass
}

func newDropout(w wiring) *dropout {
	h := fnv.New64a()
	h.Write([]byte(w.spec.Name))
	l := &dropout{
		threads: w.threads, size: product(w.out), y: w.y, dy: w.dy,
		layer:     h.Sum64(),
		threshold: uint32(float64(w.spec.Rate) * (1 << 32)),
		scale:     1 / (1 - w.spec.Rate),
		kept:      make([]bool, len(w.y)),
	}
	l.drop, l.undo = l.dropPart, l.undoPart
	return l
}

func (l *dropout) forward(p *pass) {
	if !p.training || l.threshold == 0 {
		return
	}
	l.pass = p
	l.threads.run(p.n, l.drop)
}

func (l *dropout) backward(p *pass) {
	if l.threshold != 0 {
		l.threads.run(p.n, l.undo)
	}
}

func (l *dropout) dropPart(_, from, to int) {
	for r := from; r < to; r++ {
		state := model.Mix(model.Mix(model.Mix(model.Mix(l.pass.seed)^l.pass.epoch)^uint64(l.pass.records[r])) ^ l.layer)
		y := l.y[r*l.size : (r+1)*l.size]
		kept := l.kept[r*l.size : (r+1)*l.size]
		var draw uint64
		for i := range y {
			if i&1 == 0 {
				state += model.Golden
				draw = model.Mix(state)
			} else {
				draw >>= 32
			}
			kept[i] = uint32(draw) >= l.threshold
			if kept[i] {
				y[i] *= l.scale
			} else {
				y[i] = 0
			}
		}
	}
}

func (l *dropout) undoPart(_, from, to int) {
	dy := l.dy[from*l.size : to*l.size]
	for i, kept := range l.kept[from*l.size : to*l.size] {
		if kept {
			dy[i] *= l.scale
		} else {
			dy[i] = 0
		}
	}
}
