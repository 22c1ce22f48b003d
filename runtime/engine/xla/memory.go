package xla

import (
	"errors"
	"fmt"
)

// ErrMemory is what errors of a Device wrap where its memory does not suffice.
var ErrMemory = errors.New("out of memory")

// MemoryError reports too little memory of the device for a micro-batch.
type MemoryError struct {
	Err   error // of the device
	Batch int   // records of the micro-batch
	Fits  int   // about how many records would fit; 0: not known
}

func (e *MemoryError) Error() string {
	text := fmt.Sprintf("the GPU has too little memory for a micro-batch of %d records", e.Batch)
	if e.Fits > 0 {
		text += fmt.Sprintf(", about %d would fit: set micro_batch", e.Fits)
	} else {
		text += ": set a smaller micro_batch"
	}
	return fmt.Sprintf("%s (%s)", text, e.Err)
}

func (e *MemoryError) Unwrap() error { return e.Err }

// explain adds the largest micro-batch that would fit to an error of too little memory.
func (r *replica) explain(err error) error {
	if !errors.Is(err, ErrMemory) {
		return err
	}
	return &MemoryError{Err: err, Batch: r.batch, Fits: r.fits()}
}

// usable is the part of the free memory that a step is expected to get: the allocator has
// it in pieces. On an H200, 2.6 of 2.8 GB were not to be had.
const usable = 0.8

// freeMemory returns the bytes of the device that a step is expected to get; 0: not known.
func freeMemory(r *replica) float64 {
	used, limit, err := r.device.Memory()
	if err != nil || limit <= used {
		return 0
	}
	return usable * float64(limit-used)
}

// fits returns about how many records would fit. A step needs memory in addition to its
// arguments, which grows with the number of records, if not evenly. Where not even compiling
// the step has enough memory, as it tries algorithms, a smaller micro-batch tells how much a
// record needs.
func (r *replica) fits() int {
	free := freeMemory(r)
	for batch := r.batch; batch > 0 && free > 0; batch /= 2 {
		needs, err := r.needs(batch)
		if errors.Is(err, ErrMemory) {
			continue
		}
		if err != nil || needs <= 0 {
			return 0
		}
		fits := min(r.batch-1, int(float64(batch)*free/float64(needs)))
		if fits < 1 {
			return 0
		}
		switch again, err := r.needs(fits); {
		case errors.Is(err, ErrMemory) && float64(needs) <= free:
			return min(fits, batch)
		case errors.Is(err, ErrMemory):
			return fits / 2
		case err == nil && float64(again) > free:
			return max(1, int(float64(fits)*free/float64(again)))
		}
		return fits
	}
	return 0
}

// needs returns the bytes of a step of so many records in addition to its arguments.
func (r *replica) needs(batch int) (int64, error) {
	s := r.source
	s.batch = batch
	text, err := s.step(1)
	if err != nil {
		return 0, err
	}
	p, err := r.share(text, r.flags())
	if err != nil {
		return 0, err
	}
	return p.Memory()
}
