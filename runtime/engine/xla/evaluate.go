package xla

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// Evaluate implements engine.Replica. Predictions are what the last layer gives, for
// classes logits; predictions for records of weight 0 are zeros.
func (r *replica) Evaluate(ctx context.Context, s engine.Staged, p engine.Pass, out []float32) (engine.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch, err := r.take(ctx, s)
	if err == nil {
		err = beginDeferred(r)
	}
	if err == nil && p.First {
		r.dropPass()
		r.total = engine.Result{Finite: true}
		r.stats, err = r.uploadFloats(make([]float32, r.source.stats()))
	}
	switch {
	case err != nil:
	case r.stats == nil:
		err = errors.New("no pass is under way: the first call must say First")
	default:
		err = r.evaluateAll(ctx, batch, out)
	}
	if err != nil {
		return engine.Result{}, fmt.Errorf("evaluate: %w", r.fail(err))
	}
	if !p.Last {
		return engine.Result{}, nil
	}
	stats, err := r.download(r.stats, r.source.stats(), nil)
	r.queue.end(time.Now())
	r.stats = nil
	if err != nil {
		return engine.Result{}, fmt.Errorf("evaluate: %w", r.fail(err))
	}
	return finish(r.total, stats), nil
}

// evaluateAll evaluates a batch's micro-batches one by one.
func (r *replica) evaluateAll(ctx context.Context, batch *staged, out []float32) error {
	program, err := r.compile("evaluate", r.evaluate)
	if err != nil {
		return err
	}
	size := r.outputs() // of a micro-batch
	if out != nil && len(out) != size*len(batch.weights) {
		return fmt.Errorf("room for %d predictions, want %d", len(out), size*len(batch.weights))
	}
	at := 0
	for _, p := range batch.pieces {
		for i := range p.count {
			if err := ctx.Err(); err != nil {
				return err
			}
			var part []float32
			if out != nil {
				part = out[at*size : (at+1)*size]
			}
			if err := r.evaluateOne(program, p, i, part); err != nil {
				return err
			}
			r.total.Weight += batch.weights[at]
			at++
		}
	}
	return nil
}

// outputs returns the number of predictions of a micro-batch.
func (r *replica) outputs() int {
	_, elements := r.model.Answer()
	return r.batch * elements * max(1, r.model.Classes)
}

func (r *replica) evaluateOne(program Program, p piece, index int, out []float32) error {
	inputs := p.inputs[:3] // without keys
	if p.count > 1 {
		write := func() string { return r.extract(p.count) }
		at, err := r.uploadIndex(index)
		if err != nil {
			return err
		}
		inputs, err = r.run(fmt.Sprintf("extract %d", p.count), write, append(inputs[:3:3], at)...)
		if err = errors.Join(err, at.Close()); err != nil {
			return err
		}
		defer closeAll(inputs)
	}
	arguments := append(append(append([]Buffer(nil), r.variables...), r.stats), inputs...)
	results, err := program.Run(arguments...)
	if err != nil {
		return err
	}
	r.stats = results[0]
	if out == nil {
		return errors.Join(results[1].Close(), r.throttle(r.stats))
	}
	_, err = r.download(results[1], len(out), out)
	return err
}

func (r *replica) uploadIndex(i int) (Buffer, error) {
	memory, err := r.host.take(4)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(memory, uint32(i))
	return r.device.Upload(stablehlo.I32, nil, memory, func() { r.host.give(memory) })
}
